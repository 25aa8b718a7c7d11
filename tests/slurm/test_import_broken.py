"""Files with mistakes, unknown words or a missing end: one line for each thing, with its place."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batsched_py.errors import InputError
from batsched_py.slurm.reading import Findings, Mistakes
from batsched_py.slurm.scenario import Sources, read_scenario
from tests.processes import call_here
from tests.slurm import files

GOOD = "NodeName=n[1-4] CPUs=4\nPartitionName=batch Nodes=ALL Default=YES\n"

#: What is wrong in a slurm.conf, with the line and words that tell of it.
BROKEN_CONFS = [
    ("NodeName=n[1-4 CPUs=4", 1, "not a list of nodes"),
    ("NodeName=n[4-1] CPUs=4", 1, "goes backwards"),
    ("NodeName=n[1-9999999] CPUs=4", 1, "goes backwards or is too long"),
    ("NodeName=x CPUs=zero", 1, "not a positive whole number"),
    ("NodeName=x RealMemory=-5", 1, "not a positive whole number"),
    ("NodeName=x Gres=gpu:many", 1, "does not end in a number"),
    ("NodeName=x Weight=heavy", 1, "not a whole number"),
    ("NodeName=x State=ONFIRE", 1, "the twin knows"),
    ("PartitionName=p Nodes=nowhere", 1, "which has no NodeName"),
    ("PartitionName=p Nodes=n[1-", 1, "not a list of nodes"),
    ("PartitionName=p MaxTime=tomorrow", 1, "not a time"),
    ("PartitionName=p MaxTime=1:2:3:4", 1, "not a time"),
    ("PartitionName=p State=SIDEWAYS", 1, "Invalid enum value 'sideways'"),
    ("PartitionName=p Default=MAYBE", 1, "neither YES nor NO"),
    ("PartitionName=p OverSubscribe=SOMETIMES", 1, "none of NO, EXCLUSIVE"),
    ("PartitionName=p PriorityTier=-3", 1, "not a whole number"),
    ("PartitionName=p TRESBillingWeights=CPU", 1, "NAME=NUMBER"),
    ("PartitionName=batch", 3, "two partitions called 'batch'"),
    ("SchedulerType=sched/magic", 1, "none that the twin knows"),
    ("SchedulerParameters=bf_interval=often", 1, "not a whole number"),
    ("SchedulerParameters=bf_window", 1, "needs a value"),
    ("SchedulerParameters=bf_continue=yes", 1, "takes no value"),
    ("SchedulerParameters=bf_max_job_test=0", 1, "Expected `int` >= 1"),
    ("SelectType=select/random", 1, "none that the twin knows"),
    ("SelectTypeParameters=CR_Everything", 1, "none that the twin knows"),
    ("PriorityType=priority/whim", 1, "none that the twin knows"),
    ("PriorityWeightAge=lots", 1, "not a whole number"),
    ("PriorityMaxAge=old", 1, "not a time"),
    ("PriorityFlags=FAIREST", 1, "Invalid enum value"),
    ("PriorityUsageResetPeriod=HOURLY", 1, "Invalid enum value"),
    ("PriorityWeightTRES=cpu=x", 1, "not a weight like"),
    ("PreemptMode=POLITELY", 1, "none that the twin knows"),
    ("PreemptType=preempt/dice", 1, "none that the twin knows"),
    ("AccountingStorageEnforce=everything", 1, "none of associations"),
    ("Licenses=a:b:c", 1, "NAME:COUNT"),
    ("DefMemPerCPU=big", 1, "not a size of memory"),
    ("JobRequeue=2", 1, "neither YES nor NO"),
    ("just some words", 1, "not of the form Name=Value"),
    ('ClusterName="toy', 1, "no second quotation mark"),
    ("KillWait=1 KillWait=2", 1, "given twice"),
    ("Include nowhere.conf", 1, "cannot read"),
    ("Include slurm.conf", 1, "includes itself"),
    ("= 5", 1, "not of the form Name=Value"),
    ("NodeName=x[1-900000,1-900000] CPUs=4", 1, "goes backwards or is too long"),
    ("NodeName=x[0-9][0-9][0-9][0-9][0-9][0-9][0-9] CPUs=4", 1, "means more than 1048576 nodes"),
    (f"NodeName=x[1-{'9' * 5000}] CPUs=4", 1, "not a range of nodes"),
    ("NodeName= CPUs=4", 1, "'CPUs=4' is not the name of a node"),
    ("NodeName=a/b CPUs=4", 1, "'a/b' is not the name of a node"),
    ("NodeName=x,y,x CPUs=4", 1, "two nodes called 'x'"),
    ("NodeName=n3 CPUs=4", 3, "two nodes called 'n3'"),
    (f"NodeName=x CPUs={'9' * 5000}", 1, "not a positive whole number"),
    ("NodeName=x CPUs=4.5", 1, "not a positive whole number"),
    ("NodeName=x CPUs=NaN", 1, "not a positive whole number"),
    ("NodeName=x Gres=gpu:a100:4,nvme:x", 1, "does not end in a number"),
    ("NodeName=x Gres=gpu=4", 1, "does not end in a number"),
    ("NodeName=x Gres=speed:4", 0, "cannot be called 'speed'"),
    ("PartitionName=p Nodes=n[1-9]", 1, "partition 'p' has node 'n5', which has no NodeName"),
    ("PartitionName=p TRESBillingWeights=cpu=NaN", 1, "not a weight like"),
    ("PartitionName=p TRESBillingWeights=cpu=1e3", 1, "not a weight like"),
    ("PartitionName=p MaxTime=0", 1, "Expected `float` > 0.0"),
    ("PriorityWeightAge=-1", 1, "not a whole number"),
    ("PriorityMaxAge=NaN", 1, "not a time"),
    ("Licenses=a:-1", 1, "NAME:COUNT"),
    ("SchedulerParameters=bf_interval=4.5", 1, "not a whole number"),
    ("Include .", 1, "cannot read"),
    ("Include loop.conf", 1, "cannot read"),
]


def mistakes_of(sources: Sources) -> list[str]:
    with pytest.raises(Mistakes) as caught:
        read_scenario(sources)
    return [str(mistake) for mistake in caught.value.found]


@pytest.mark.parametrize(("line", "number", "words"), BROKEN_CONFS)
def test_that_each_mistake_of_a_conf_is_one_line_with_its_place(
    tmp_path: Path, line: str, number: int, words: str
) -> None:
    conf = tmp_path / "slurm.conf"
    (tmp_path / "loop.conf").symlink_to("loop.conf")
    conf.write_text(GOOD + line + "\n" if number == 3 else line + "\n" + GOOD)
    (told,) = mistakes_of(Sources(conf=conf))
    assert told.startswith(f"{conf}, line {number}: " if number else f"{conf}: ")
    assert words in told and "\n" not in told


def test_that_all_mistakes_of_a_file_are_told_at_once_and_nothing_is_written(tmp_path: Path) -> None:
    conf = tmp_path / "slurm.conf"
    conf.write_text("PriorityWeightAge=x\nPriorityMaxAge=y\nNodeName=n[1 CPUs=4\n" + GOOD)
    code, out, err = call_here(["slurm", "import", conf, tmp_path / "twin"])
    assert (code, out) == (1, "")
    lines = err.splitlines()
    assert len(lines) == 3 and all(line.startswith("batsched-py: error: ") for line in lines)
    assert [re.search(r"line (\d)", line)[1] for line in lines] == ["1", "2", "3"]  # type: ignore[index]
    assert not (tmp_path / "twin").exists()


def test_that_mistakes_of_which_there_are_many_are_counted(tmp_path: Path) -> None:
    conf = tmp_path / "slurm.conf"
    conf.write_text(GOOD + "PriorityWeightAge=x\n" * 1000)
    code, _, err = call_here(["slurm", "import", conf, tmp_path / "twin"])
    assert code == 1 and len(err.splitlines()) == 101
    assert err.endswith("batsched-py: error: 900 more mistakes like these\n")


def test_that_a_conf_that_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    (told,) = mistakes_of(Sources(conf=tmp_path / "slurm.conf"))
    assert told == f"{tmp_path / 'slurm.conf'}: cannot read this file (No such file or directory)"


@pytest.mark.parametrize(("times", "words"), [(1, "more than 50 deep"), (2, "more than 50 deep")])
def test_that_files_that_include_too_many_others_are_told(tmp_path: Path, times: int, words: str) -> None:
    for number in range(60):
        (tmp_path / f"{number}.conf").write_text(f"Include {number + 1}.conf\n" * times)
    assert words in mistakes_of(Sources(conf=tmp_path / "0.conf"))[0]


def test_that_files_that_are_included_too_often_are_told(tmp_path: Path) -> None:
    for number in range(14):
        (tmp_path / f"{number}.conf").write_text(f"Include {number + 1}.conf\n" * 2)
    (tmp_path / "14.conf").write_text("KillWait=5\n")
    assert mistakes_of(Sources(conf=tmp_path / "0.conf"))[0].endswith("more than 10000 files are included")


@pytest.mark.parametrize("change", ["\r\n", "\ufeff"])
def test_that_marks_of_other_editors_do_not_matter(tmp_path: Path, change: str) -> None:
    text = GOOD + "SchedulerParameters=bf_continue,\\\nbf_interval=45\n"
    text = text.replace("\n", change) if change == "\r\n" else change + text
    (tmp_path / "slurm.conf").write_bytes(text.encode())
    found = read_scenario(Sources(conf=tmp_path / "slurm.conf"))
    assert found.configuration.scheduling.bf_interval == 45 and found.findings.unmodelled == []


def test_that_unknown_keys_are_listed_and_the_rest_is_imported(tmp_path: Path) -> None:
    conf = tmp_path / "slurm.conf"
    conf.write_text(
        "Frobnicate=1\nSchedulerParameters=bf_frobnicate=2\n" + GOOD.replace(" CPUs", " Fro=3 CPUs")
    )
    found = read_scenario(Sources(conf=conf)).findings
    assert [str(each) for each in found.unmodelled] == [
        f"{conf}, line 1: Frobnicate=1 is not known, neither here nor to Slurm 22.05 to 24.11",
        f"{conf}, line 2: bf_frobnicate is not known, neither here nor to Slurm 22.05 to 24.11",
        f"{conf}, line 3: Fro of nodes is not known",
    ]


@pytest.mark.parametrize(
    "line",
    [
        "PreemptMode=SUSPEND,GANG", "SelectType=select/cray_aries", "SelectTypeParameters=OTHER_CONS_RES",
        "TopologyPlugin=topology/3d_torus", "NodeName=c[1-2] CPUs=2 State=CLOUD", "JobSubmitPlugins=lua",
        "DownNodes=n1 State=DOWN", "PartitionName=p PreemptMode=SUSPEND", "SuspendExcNodes=n1:1",
    ],
)  # fmt: skip
def test_that_what_slurm_knows_and_the_twin_does_not_is_listed(tmp_path: Path, line: str) -> None:
    conf = tmp_path / "slurm.conf"
    conf.write_text(line + "\n" + GOOD)
    (found,) = read_scenario(Sources(conf=conf)).findings.unmodelled
    assert found.where == f"{conf}, line 1"


@pytest.mark.parametrize("text", ["", "# nothing\n", "NodeName=n1 CPUs=4\n", "PartitionName=a Nodes=ALL\n"])
def test_that_a_conf_without_nodes_or_partitions_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "slurm.conf").write_text(text)
    assert all("there is no line" in told for told in mistakes_of(Sources(conf=tmp_path / "slurm.conf")))


def test_that_a_line_that_goes_on_at_the_end_of_a_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "slurm.conf").write_text(GOOD + "SchedulerParameters=bf_continue,\\\n")
    (told,) = mistakes_of(Sources(conf=tmp_path / "slurm.conf"))
    assert told.endswith("line 3: the file ends where the line goes on")


@pytest.mark.parametrize(
    ("text", "number", "words"),
    [
        ("", 0, "no line of a listing"),
        ("something else\n", 1, "neither a column Account nor a column Name"),
        ("Cluster - 'toy':Fairshare=1\nnonsense\n", 2, "does not begin with"),
        ("Cluster - 'toy':Fairshare=1\nParent - 'physics'\n", 2, "no account 'physics'"),
        ("Cluster - 'toy':Fairshare=1\nUser - 'ada':MaxJ", 2, "cut short"),
        ("Cluster - 'toy':Fairshare=1\nUser - 'ada':QOS='nor", 2, "cut short"),
        ("Cluster - 'toy':Fairshare=1\nUser - \n", 2, "cut short"),
        ("Cluster - 'toy':Fairshare=many\n", 1, "not a whole number"),
        ("Cluster - 'toy':GrpTRES=cpu\n", 1, "NAME=NUMBER"),
        ("Cluster - 'toy':GrpWall=soon\n", 1, "not a time"),
        ("Name|Priority\nnormal|0\nhigh\n", 3, "1 fields instead of 2"),
        ("Name|Priority\nnormal|most\n", 2, "not a whole number"),
        ("Name|Preempt|Priority\nnormal|\n", 2, "2 fields instead of 3"),
        ("Name|PreemptMode\nnormal|gently\n", 2, "none that the twin knows"),
        ("Account|User|Share\n|ada|1\n", 2, "names no account"),
        ("Account|User|Share\nphysics|ada|1|2|3\n", 2, "5 fields instead of 3"),
    ],
)
def test_that_each_mistake_of_a_listing_is_one_line(
    tmp_path: Path, text: str, number: int, words: str
) -> None:
    (tmp_path / "slurm.conf").write_text(GOOD)
    listing = tmp_path / "listing.txt"
    listing.write_text(text)
    told = mistakes_of(Sources(conf=tmp_path / "slurm.conf", accounting=(listing,)))
    assert told[0].startswith(f"{listing}, line {number}: " if number else f"{listing}: ")
    assert words in told[0]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("StartTime=now Nodes=n1\n", "stands before any ReservationName"),
        ("ReservationName=a StartTime=now+1hour Nodes=n1\n", "neither EndTime nor Duration"),
        ("ReservationName=a Nodes=n1 Duration=5\n", "no StartTime"),
        ("ReservationName=a StartTime=now EndTime=now Nodes=n1\n", "ends before it begins"),
        ("ReservationName=a StartTime=now Duration=5\n", "neither Nodes nor NodeCnt"),
        ("ReservationName=a StartTime=now+3moons Duration=5 Nodes=n1\n", "no unit of time"),
        ("ReservationName=a StartTime=2026-13-45 Duration=5 Nodes=n1\n", "not a moment"),
        (
            "ReservationName=a StartTime=2026-01-01T00:00:00 Duration=5 Nodes=n1\n",
            "nothing says on which date",
        ),
        ("ReservationName=a StartTime=now Duration=5 Nodes=n[1\n", "not a list of nodes"),
        ("ReservationName=a StartTime=now Duration=x Nodes=n1\n", "not a time"),
        ("hello\n", "not of the form Name=Value"),
    ],
)
def test_that_each_mistake_of_a_reservation_is_one_line(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "slurm.conf").write_text(GOOD)
    (tmp_path / "res.txt").write_text(text)
    sources = Sources(conf=tmp_path / "slurm.conf", reservations=(tmp_path / "res.txt",))
    (told,) = mistakes_of(sources)
    assert told.startswith(f"{tmp_path / 'res.txt'}, line 1: ") and words in told


@pytest.mark.parametrize(
    ("text", "number", "words"),
    [
        ("", 1, "no column at"),
        ("at,run\n1,2\n", 1, "no column args"),
        ("at,run,args\n1,2\n", 2, "2 fields instead of 3"),
        ("at,run,args\nx,2,-n 1\n", 2, "not a number"),
        ("at,run,args\n1,-2,-n 1\n", 2, "not a number"),
        ("at,run,args\n1,2,-n none\n", 2, "not a whole number"),
        ("at,run,args\n1,2,-N 4-2\n", 2, "not a range of nodes"),
        ("at,run,args\n1,2,-n\n", 2, "has no value"),
        ("at,run,args\n1,2,n4\n", 2, "is no option"),
        ("at,run,args\n1,2,-t soon\n", 2, "not a time"),
        ("at,run,args\n1,2,-p nowhere\n", 2, "no partition nowhere"),
        ("at,run,args\n1,2,--dependency=afterok:%1\n", 2, "no job above this line"),
        ("at,run,args\n1,2,--dependency=whenever:7\n", 2, "none of afterok"),
        ('at,run,args\n1,2,"--dependency=after:7?after:8,after:9"\n', 2, "both , (all of them) and ?"),
        ("at,run,args\n1,NaN,-n 1\n", 2, "not a number"),
        ("at,run,args\n1,2,--gpus=a:b:c\n", 2, "[TYPE:]COUNT"),
        ("at,run,args\n1,2,-L a:0\n", 2, "not a positive number"),
        ("at,run,args\n1,2,--array=a-b\n", 2, "not of the form 1-10"),
        ("at,run,args\n1,2,--array=0-99999999\n", 2, "too many tasks"),
        ("at,run,args\n1,2,--begin=later\n", 2, "not a moment"),
        ("at,run,args\n1,2,--gres=gpu:\n", 2, "NAME[:TYPE][:COUNT]"),
        ("at,run,args\n1,2,-J 'a\n", 2, "No closing quotation"),
        ("at,run,args\n1,2,-w n[1\n", 2, "not a list of nodes"),
    ],
)
def test_that_each_mistake_of_a_list_of_jobs_is_one_line(
    tmp_path: Path, text: str, number: int, words: str
) -> None:
    (tmp_path / "slurm.conf").write_text(GOOD)
    jobs = tmp_path / "jobs.csv"
    jobs.write_text(text)
    (told,) = mistakes_of(Sources(conf=tmp_path / "slurm.conf", jobs=jobs))
    assert told.startswith(f"{jobs}, line {number}: ") and words in told


@pytest.mark.parametrize("name", ["slurm.conf", "listing.txt", "jobs.csv", "reservations.txt"])
def test_that_files_that_are_no_text_or_are_missing_are_told(tmp_path: Path, name: str) -> None:
    for content in (b"\xff\xfe\x00binary", None):
        (tmp_path / "slurm.conf").write_text(GOOD)
        (tmp_path / "listing.txt").write_text("Name|Priority\nnormal|0\n")
        (tmp_path / "jobs.csv").write_text("at,run,args\n")
        (tmp_path / "reservations.txt").write_text("No reservations in the system\n")
        if content is None:
            (tmp_path / name).unlink()
        else:
            (tmp_path / name).write_bytes(content)
        sources = Sources(
            conf=tmp_path / "slurm.conf",
            accounting=(tmp_path / "listing.txt",),
            reservations=(tmp_path / "reservations.txt",),
            jobs=tmp_path / "jobs.csv",
        )
        told = mistakes_of(sources)[0]
        assert name in told and ("no text in UTF-8" in told or "read" in told)


@given(st.data())
def test_that_files_cut_short_anywhere_or_with_odd_letters_never_end_in_a_traceback(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = files.write_cluster(tmp_path_factory.mktemp("cut"))
    name = data.draw(
        st.sampled_from(
            ["slurm.conf", "nodes.conf", "parts-toy.conf", "dump.cfg", "qos.txt", "reservations.txt"]
        )
    )
    text = (folder / name).read_text()
    place = data.draw(st.integers(0, len(text)))
    odd = data.draw(st.sampled_from(["", "\0", "'", '"', "[", "=", "\\", "|", "%", "\x1b[2J", "é", "-1"]))
    (folder / name).write_text(text[:place] + odd + (text[place:] if odd else ""))
    try:
        scenario = read_scenario(
            Sources(
                conf=folder / "slurm.conf",
                accounting=(folder / "dump.cfg", folder / "qos.txt"),
                reservations=(folder / name,) if name == "reservations.txt" else (),
                jobs=folder / "jobs.sacct" if name == "reservations.txt" else None,
            )
        )
        assert isinstance(scenario.findings, Findings)
    except Mistakes as mistakes:
        assert all("\n" not in str(each) and str(each).isprintable() for each in mistakes.found)
    except InputError as error:
        assert "\n" not in str(error)
