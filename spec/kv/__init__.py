"""What the scheduler, the block pool, the transfers and the device do."""
