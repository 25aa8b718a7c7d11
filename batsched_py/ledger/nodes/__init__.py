"""Machines of nodes: who waits for and who has cores, memory, GPUs and other resources of which nodes."""
