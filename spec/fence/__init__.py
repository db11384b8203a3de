"""Protocols for any number of requests, blocks and steps: the fence that defers frees, and the free queue."""
