"""Searches, proves and compares specs, and shows the result."""
