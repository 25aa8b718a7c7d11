"""When the waiting jobs of a live cluster will start."""
