"""What benchmarks/run.py is made of: running commands, reading what each tool says, one function a row."""
