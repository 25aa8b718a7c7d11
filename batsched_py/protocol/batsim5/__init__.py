"""The dialect of Batsim 5: JSON over ZeroMQ, as in its release candidates and PyBatsim 4."""
