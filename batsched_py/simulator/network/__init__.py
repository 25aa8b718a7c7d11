"""The network of a platform, and tasks that share its links: SimGrid's model of parallel tasks (L07)."""
