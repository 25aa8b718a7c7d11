"""Files that describe the nodes of a machine, each format in a file of its own."""
