"""The native search engine."""
