"""Unmodified vLLM releases: fetched or found in place, and imported on a CPU without being installed."""
