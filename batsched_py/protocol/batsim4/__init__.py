"""The dialect of Batsim 4: JSON over ZeroMQ, as in Batsim 4.2."""
