"""Priorities and fair shares as ``sprio -l`` and ``sshare -l`` printed them.

The states were recorded with a real Slurm and its database: six users in four accounts, two partitions, two
QOS; with the fair tree, and with classic fair share.
"""

from __future__ import annotations

import json

import pytest

from batsched_py.slurm.policy.fair_share import Branch, FairShare
from batsched_py.slurm.policy.priorities import JobFacts, Scale, weighted
from batsched_py.slurm.policy.settings import Association, Priority
from tests.slurm.scenario import RECORDED

SETTINGS = Priority(
    type="multifactor",
    weight_age=1000,
    max_age=7200.0,
    weight_fairshare=5000,
    weight_job_size=700,
    weight_partition=300,
    weight_qos=900,
    weight_tres={"cpu": 150.0, "mem": 250.0},
    decay_half_life=3600.0,
    calc_period=60.0,
)
SCALE = Scale(nodes=4, cpus=16, partition_factor=4, qos_priority=40)
PARTITION_FACTORS = {"batch": 1, "fast": 4}
PARTITION_TRES = {"cpu": 16.0, "mem": 32000.0}

KINDS = ("fair-tree", "classic")


def states(kind: str) -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads((RECORDED / f"{kind}.json").read_text(encoding="utf-8"))
    return found


def rows(table: object, separator: str | None) -> list[dict[str, str]]:
    head, *lines = str(table).splitlines()
    names = head.split(separator)
    names = [
        f"{name} {names[:place].count(name)}" if name in names[:place] else name
        for place, name in enumerate(names)
    ]
    return [dict(zip(names, line.split(separator), strict=False)) for line in lines if line.strip()]


@pytest.mark.parametrize("kind", KINDS)
def test_priorities_are_those_that_sprio_prints(kind: str) -> None:
    nb_jobs = 0
    for state in states(kind):
        factors = {line.split("|")[0]: line.split("|") for line in str(state["factors"]).splitlines()}
        jobs = state["jobs"]
        assert isinstance(jobs, dict)
        for row in rows(state["sprio"], None):
            job = jobs[row["JOBID"]]
            tres = dict(each.split("=") for each in job["tres"].split(","))
            _, age, fair_share, _, _, qos = factors[row["JOBID"]]
            found = weighted(
                SETTINGS,
                JobFacts(
                    age=round(float(age) * SETTINGS.max_age),
                    nodes=1,
                    cpus=int(tres["cpu"]),
                    nice=int(row["NICE"]),
                    fair_share=float(fair_share) if kind == "classic" else round(float(fair_share) * 7) / 7,
                    partition_factor=PARTITION_FACTORS[row["PARTITION"]],
                    qos_priority=round(float(qos) * SCALE.qos_priority),
                    tres={"cpu": float(tres["cpu"]), "mem": float(tres["mem"].removesuffix("M"))},
                    partition_tres=PARTITION_TRES,
                ),
                SCALE,
            )
            assert f"{found.age:.0f}" == row["AGE"]
            assert f"{found.fair_share:.0f}" == row["FAIRSHARE"]
            assert f"{found.job_size:.0f}" == row["JOBSIZE"]
            assert f"{found.partition:.0f}" == row["PARTITION 1"]
            assert f"{found.qos:.0f}" == row["QOS"]
            assert ",".join(f"{name}={part:.0f}" for name, part in found.tres.items()) == row["TRES"]
            assert str(found.priority) == row["PRIORITY"]
            nb_jobs += 1
    assert nb_jobs > 5


@pytest.mark.parametrize("flag", ["no_normal_qos", "no_normal_all"])
def test_that_factors_are_not_divided_with_a_flag(flag: str) -> None:
    settings = Priority(type="multifactor", weight_qos=3, flags=(flag,))
    assert weighted(settings, JobFacts(qos_priority=5), SCALE).qos == 15


def test_fair_shares_of_the_tree_are_those_that_sshare_prints() -> None:
    tables = [rows(state["sshare"], "|") for state in states("fair-tree")]
    settled = [table for table in tables if is_settled(table)]
    assert len(settled) > 1
    for table in settled:
        tree = FairShare(SETTINGS, associations(table))
        rounding = 2 / float(table[0]["RawUsage"])
        for row in table[1:]:
            branch = find(tree, row)
            assert f"{branch.shares:.6f}" == row["NormShares"]
            assert branch.usage_part == pytest.approx(float(row["NormUsage"]), abs=rounding)
            assert branch.effective == pytest.approx(float(row["EffectvUsage"]), abs=20 * rounding)
            if row["User"]:
                assert f"{branch.factor:.6f}" == row["FairShare"]


def test_classic_fair_shares_are_those_that_sshare_prints() -> None:
    """From the parts of the usage as they are printed: those of some lines are a minute older than others."""
    settings = Priority(type="multifactor", weight_fairshare=5000, flags=("no_fair_tree",))
    for state in states("classic"):
        table = rows(state["sshare"], "|")
        tree = FairShare(settings, associations(table))
        tree.root.usage = 1.0
        for row in table[1:]:
            find(tree, row).usage = float(row["NormUsage"])
        tree.compute()
        compared = [(find(tree, row), row) for row in table[1:]]
        assert len(compared) > 9
        for branch, row in compared:
            assert f"{branch.shares:.6f}" == row["NormShares"]
            assert branch.effective == pytest.approx(float(row["EffectvUsage"]), abs=2e-6)
            assert branch.factor == pytest.approx(float(row["FairShare"]), abs=2e-5)


def test_far_from_its_share_an_account_counts_more_than_its_users_where_depth_does_not() -> None:
    """Two levels: physics and chemistry have half of the shares each, ada and ben half of those of physics.

    By hand: physics has used 0.25 of all, which is half of its share. Ada has used 0.2, which is 0.8 of her
    share and 0.8 / 0.5 = 1.6 times as much as others of her level. As one is below and the other above 1, her
    1.6 counts with the exponent 1 / (1 + (5 ln 0.5)^2) = 1 / 13.011 = 0.076856, which makes it 1.036783:
    her usage is 0.5 * 1.036783 * 0.25. Ben's 0.05 is 0.4 of his level and counts as it is.
    """
    settings = Priority(type="multifactor", flags=("no_fair_tree", "depth_oblivious"))
    tree = FairShare(
        settings,
        [
            Association(account="physics", shares=1),
            Association(account="chemistry", shares=1),
            Association(account="physics", user="ada", shares=1, usage=200.0),
            Association(account="physics", user="ben", shares=1, usage=50.0),
            Association(account="chemistry", user="cy", shares=1, usage=750.0),
        ],
    )
    ada, ben = (tree.find("physics", name, "") for name in ("ada", "ben"))
    assert ada is not None and ben is not None
    assert (ada.effective, ada.factor) == pytest.approx((0.129598, 0.698150), abs=1e-6)
    assert (ben.effective, ben.factor) == pytest.approx((0.05, 0.870551), abs=1e-6)


def is_settled(table: list[dict[str, str]]) -> bool:
    """Whether no job has ended since factors were computed: its usage is added at once, all else later."""
    total = float(table[0]["RawUsage"])
    return all(abs(float(row["RawUsage"]) / total - float(row["NormUsage"])) < 2 / total for row in table[1:])


def associations(table: list[dict[str, str]]) -> list[Association]:
    """The tree of a listing, in which what is below an account stands one space further in."""
    found, above = [], {-1: "root"}
    for row in table[1:]:
        depth, name = len(row["Account"]) - len(row["Account"].lstrip()), row["Account"].strip()
        above[depth] = name
        shares, usage = int(row["RawShares"]), float(row["RawUsage"])
        if row["User"]:
            found.append(Association(account=name, user=row["User"], shares=shares, usage=usage))
        else:
            parent = "root" if depth == 1 else above[depth - 1]
            found.append(Association(account=name, parent=parent, shares=shares, usage=usage))
    return found


def find(tree: FairShare, row: dict[str, str]) -> Branch:
    waiting = [tree.root]
    while waiting:
        branch = waiting.pop()
        waiting += branch.children
        if branch.settings.account == row["Account"].strip() and branch.settings.user == row["User"]:
            return branch
    raise AssertionError(row)


def test_who_has_no_share_has_the_lowest_factor() -> None:
    settings = Priority(type="multifactor", flags=("no_fair_tree",))
    tree = FairShare(settings, [Association(account="a", shares=0), Association(account="a", user="ada")])
    tree.compute()
    ada = tree.find("a", "ada", "")
    assert ada is not None
    assert (ada.shares, ada.factor) == (0.0, 0.0)
