"""Which listing a file is, and what it says."""

from __future__ import annotations

from pathlib import Path

import msgspec

from batsched_py.slurm.accounting.dump import TITLE, read_dump
from batsched_py.slurm.accounting.listing import Accounting
from batsched_py.slurm.accounting.tables import read_table
from batsched_py.slurm.findings import Findings
from batsched_py.slurm.texts import read_text


def read_accounting(path: Path, findings: Findings) -> Accounting:
    """A dump of ``sacctmgr``, or a table of ``sacctmgr -P`` or ``sshare -P``."""
    text = read_text(path, findings)
    lines = [
        (f"{path}, line {number}", line)
        for number, line in enumerate(text.splitlines(), start=1)
        if line.strip() and not line.lstrip().startswith("#")
    ]
    if not lines:
        findings.mistake(str(path), "has no line of a listing of sacctmgr")
        return Accounting()
    if TITLE.match(lines[0][1]):
        return read_dump(lines, findings)
    return read_table(lines, findings)


def together(listings: list[Accounting], findings: Findings) -> Accounting:
    """What several listings say, the last one of them first."""
    whole = Accounting()
    for listing in listings:
        whole.qos |= listing.qos
        users = {(account, user) for account, user, _ in whole.associations}
        for key, association in listing.associations.items():
            if listing.of_sshare and key not in whole.associations and key[:2] in users:
                findings.left_out(f"user {key[1]}", "has associations by partition; their usage is not told")
                continue
            whole.add_association(msgspec.to_builtins(association), f"user {key[1]}", findings)
    whole.check(findings)
    return whole
