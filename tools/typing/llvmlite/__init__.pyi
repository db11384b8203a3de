# The part of llvmlite that checker/explore/native/machine.py uses; the package itself has no annotations.
__version__: str
