"""Tables of ``sacctmgr -P show assoc``, ``sacctmgr -P show qos`` and ``sshare -P``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from batsched_py.schedulers.slurm.settings.associations import ROOT
from batsched_py.slurm.accounting.fields import ASSOCIATION, QOS, field_name
from batsched_py.slurm.accounting.listing import Accounting, read_values
from batsched_py.slurm.findings import Findings

#: A place and the line there.
Line = tuple[str, str]


def read_table(lines: Sequence[Line], findings: Findings) -> Accounting:
    """What a table says, whose first line has the titles of its columns."""
    where, head = lines[0]
    titles = head.rstrip("|").split("|")
    keys = [field_name(title) for title in titles]
    accounting = Accounting()
    if "account" in keys:
        _read_associations(titles, lines[1:], accounting, findings)
    elif "name" in keys:
        for place, row in _rows(titles, lines[1:], findings):
            accounting.add_qos(read_values(row, QOS, place, findings), place, findings)
    else:
        findings.mistake(where, "has neither a column Account nor a column Name, as sacctmgr -P prints them")
    return accounting


def _read_associations(
    titles: list[str], lines: Sequence[Line], accounting: Accounting, findings: Findings
) -> None:
    """Associations; an account that names no parent is below the last one that is less indented."""
    above: list[tuple[int, str]] = []
    account_title = next(title for title in titles if field_name(title) == "account")
    user_title = next((title for title in titles if field_name(title) == "user"), "")
    tells_parents = False
    accounting.of_sshare = any(field_name(title) == "rawshares" for title in titles)
    for where, row in _rows(titles, lines, findings):
        if accounting.of_sshare:  # it has shares and a factor called FairShare
            row.pop("FairShare", None)
        values = read_values(row, ASSOCIATION, where, findings)
        if "account" not in values:
            findings.mistake(where, "names no account")
            continue
        if not row.get(user_title, "").strip():
            text = row[account_title]
            indent = len(text) - len(text.lstrip())
            above = [(depth, name) for depth, name in above if depth < indent]
            tells_parents = tells_parents or indent > 0 or "parent" in values
            if "parent" not in values and above:
                values["parent"] = above[-1][1]
            above.append((indent, values["account"]))
        if values["account"] == ROOT and "user" not in values:
            values.pop("parent", None)
        accounting.add_association(values, where, findings)
    accounts = [each for each in accounting.associations.values() if not each.user and each.account != ROOT]
    if len(accounts) > 1 and not tells_parents:
        findings.left_out(
            lines[0][0], "no parents are told, so all accounts are taken to be below root; add `tree`"
        )


def _rows(
    titles: list[str], lines: Sequence[Line], findings: Findings
) -> Iterator[tuple[str, dict[str, str]]]:
    for where, line in lines:
        cells = line.split("|")
        if len(cells) == len(titles) + 1 and not cells[-1]:
            cells.pop()
        if len(cells) == len(titles):
            yield where, dict(zip(titles, cells, strict=True))
        else:
            findings.mistake(where, f"has {len(cells)} fields instead of {len(titles)}")
