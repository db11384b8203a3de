"""The trace format, and the corpus of recorded traces."""
