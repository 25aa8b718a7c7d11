"""Accounts, users, shares, limits and QOS, from what ``sacctmgr`` and ``sshare`` print."""
