"""Implementations that the specs are held against."""
