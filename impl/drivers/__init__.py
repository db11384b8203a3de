"""Adapters from implementations to the `Driver` protocol of `fencepost.traces.driver`, one a target."""
