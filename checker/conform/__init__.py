"""Lockstep: a spec and an implementation, held against each other event by event."""
