"""What is not collected as tests."""

collect_ignore_glob = ["batsched_py/_native*"]
