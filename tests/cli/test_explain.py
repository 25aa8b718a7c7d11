"""``batsched-py explain`` and what it needs: remarks beside the other files, asked for by ``--remarks``."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import batsched_py as bp
from batsched_py.cli.main import batsched_py
from tests.processes import call

ROOT = Path(__file__).parents[2]
LOG = ROOT / "workloads" / "sample.swf"
GOLDEN = ROOT / "tests" / "data" / "golden"
POWER60 = ["-w", GOLDEN / "power60_sleeper" / "power60.json", "-p", GOLDEN / "power60_sleeper" / "power8.xml"]
RIGID200 = ["-w", GOLDEN / "outage_filler" / "rigid200.json", "-p", GOLDEN / "outage_filler" / "flat16.xml"]
OUTAGE = GOLDEN / "outage_filler" / "outage.txt"


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(batsched_py, [str(each) for each in arguments])


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    prefix = tmp_path_factory.mktemp("explain") / "out"
    result = invoke("run", "-w", LOG, "--hosts", "64", "-s", "easy", "-e", prefix, "--remarks", "--json")
    assert result.exit_code == 0
    assert f"{prefix}_remarks.csv" in result.stdout
    return prefix


def test_it_tells_the_story_of_each_job(out: Path) -> None:
    lines = invoke("explain", out, "412", "w0!2").stdout.splitlines()
    assert lines[0] == (
        "job w0!412, 4 hosts for 2.00 h at most, submitted at 633400: "
        "waited 2.35 h, started at 641878 on 14-15 19-20"
    )
    labels = [line[2:11].strip() for line in lines[1:-1]]
    assert list(filter(None, labels)) == ["queue", "free", "held", "overtaken"]
    assert "not after the only protected job w0!385's reservation for 5.24 h" in "\n".join(lines)
    assert lines[-1].endswith("started at once on 0")


def test_without_remarks_it_tells_what_the_schedule_tells(out: Path, tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    (tmp_path / "plain_jobs.csv").write_bytes(Path(f"{out}_jobs.csv").read_bytes())
    lines = invoke("explain", plain, "412", "--hosts", "64").stdout.splitlines()
    assert any("too few for w0!412" in line for line in lines)
    assert not any("reservation" in line for line in lines)


def test_remarks_change_no_other_file(out: Path, tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    assert invoke("run", "-w", LOG, "--hosts", "64", "-s", "easy", "-e", plain).exit_code == 0
    for name in ("jobs", "schedule"):
        assert Path(f"{plain}_{name}.csv").read_bytes() == Path(f"{out}_{name}.csv").read_bytes()
    assert not Path(f"{plain}_remarks.csv").exists()


def test_python_tells_the_same(out: Path) -> None:
    result = bp.simulate(LOG, "easy", hosts=64, remarks=True, progress=False)
    told = invoke("explain", out, "412").stdout.replace(", counting any that were away", "")
    assert f"{result.explain('412')}\n" == told
    assert result.explain("412").facts.waited == 641878 - 633400


# --- hosts that cannot be used -------------------------------------------------------------------


def told_of(label: str, lines: str) -> list[str]:
    """What stands in the lines of a label."""
    found, current = [], ""
    for line in lines.splitlines()[1:]:
        current = line[2:11].strip() or current
        if current == label:
            found.append(line[13:])
    return found


@pytest.fixture(scope="module")
def outage(tmp_path_factory: pytest.TempPathFactory) -> Path:
    prefix = tmp_path_factory.mktemp("outage") / "out"
    result = invoke("run", *RIGID200, "--events", OUTAGE, "-s", "easy", "-e", prefix)
    assert result.exit_code == 0
    return prefix


def test_hosts_that_were_away_are_named_and_are_not_free(outage: Path) -> None:
    told = invoke("explain", outage, "12", "--events", OUTAGE).stdout
    assert told_of("free", told) == ["0 of 16 hosts when it came, at most 8 until it started: never enough"]
    assert told_of("unusable", told) == ["4 hosts away (0-3), from 1.56 min before until 6.78 min"]


def test_where_nothing_tells_who_was_away_it_says_so(outage: Path) -> None:
    told = invoke("explain", outage, "12").stdout
    (free,) = told_of("free", told)
    assert free.startswith("3 of 16 hosts when it came, counting any that were away; enough for ")
    assert told_of("unusable", told) == []


def test_a_schedule_alone_tells_neither_who_was_away_nor_who_slept(outage: Path, tmp_path: Path) -> None:
    (tmp_path / "jobs.csv").write_bytes(Path(f"{outage}_jobs.csv").read_bytes())
    (free,) = told_of("free", invoke("explain", tmp_path / "jobs.csv", "12").stdout)
    assert "counting any that were away or asleep;" in free


def test_the_manifest_of_a_run_tells_who_was_away_while_the_events_are_the_same(tmp_path: Path) -> None:
    events, log, machine = tmp_path / "outage.txt", tmp_path / "log.json", tmp_path / "flat16.xml"
    events.write_bytes(OUTAGE.read_bytes())
    log.write_bytes(RIGID200[1].read_bytes())
    machine.write_bytes(RIGID200[3].read_bytes())
    plan = tmp_path / "plan.toml"
    plan.write_text(
        '[logs]\nlog = { file = "log.json" }\n'
        '[platforms]\nflat = { file = "flat16.xml", events = "outage.txt" }\n[schedulers]\neasy = {}\n'
    )
    assert invoke("campaign", "run", plan, "-d", tmp_path / "out").exit_code == 0
    (jobs_file,) = tmp_path.glob("out/runs/*/*_jobs.csv")
    told = invoke("explain", jobs_file, "12").stdout
    assert told_of("unusable", told) == ["4 hosts away (0-3), from 1.56 min before until 6.78 min"]
    assert "counting" not in told
    events.write_text("")
    assert "counting any that were away;" in invoke("explain", jobs_file, "12").stdout


@pytest.fixture(scope="module")
def sleepy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    prefix = tmp_path_factory.mktemp("sleepy") / "out"
    options = ["--energy", "-s", "sleeper", "-o", "idle_time=30", "-e", prefix]
    assert invoke("run", *POWER60, *options).exit_code == 0
    return prefix


def test_hosts_that_were_asleep_or_switching_are_named_and_are_not_free(sleepy: Path) -> None:
    told = invoke("explain", sleepy, "14").stdout
    assert told_of("free", told) == [
        "0 of 8 hosts when it came, counting any that were away, at most 0 until it started: never enough"
    ]
    assert told_of("unusable", told) == [
        "4 hosts asleep (4-7), from 3.31 min before until 1.13 min",
        "2 hosts waking up (2-3), from 0 s until 20 s",
    ]


def test_without_the_changes_of_power_states_it_says_so(sleepy: Path, tmp_path: Path) -> None:
    for name in ("jobs", "schedule"):
        (tmp_path / f"out_{name}.csv").write_bytes(Path(f"{sleepy}_{name}.csv").read_bytes())
    assert "any that were away or asleep" in invoke("explain", tmp_path / "out", "14").stdout


def test_nonsense_for_power_states_is_named_with_its_line(sleepy: Path, tmp_path: Path) -> None:
    (tmp_path / "out_jobs.csv").write_bytes(Path(f"{sleepy}_jobs.csv").read_bytes())
    (tmp_path / "out_pstate_changes.csv").write_text("time,machine_id,new_pstate\n0,0-7,0\nsoon,0-7,-2\n")
    result = invoke("explain", tmp_path / "out", "14")
    assert (result.exit_code, result.stderr.count("\n")) == (1, 1)
    assert "out_pstate_changes.csv:3: this is no change of a power state" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere", "1"], "cannot be read"),
        (["{out}", "0815"], "there is no job '0815'"),
        (["{out}", "1", "--events", "nowhere.txt"], "nowhere.txt: cannot read this event file"),
    ],
)
def test_mistakes_are_one_line(out: Path, arguments: list[str], words: str) -> None:
    result = invoke("explain", *(each.format(out=out) for each in arguments))
    assert (result.exit_code, result.stderr.count("\n")) == (1, 1)
    assert words in result.stderr


def test_nonsense_for_remarks_is_named_with_its_line(out: Path, tmp_path: Path) -> None:
    (tmp_path / "out_jobs.csv").write_bytes(Path(f"{out}_jobs.csv").read_bytes())
    (tmp_path / "out_remarks.csv").write_text("time,job_id,start,text\n1,w0!1,soon,why\n")
    result = invoke("explain", tmp_path / "out", "1")
    assert "out_remarks.csv:2: this is no line of remarks" in result.stderr


# --- what a policy says itself -------------------------------------------------------------------

CHATTY = '''
import logging

from batsched_py.schedulers import Scheduler


class Chatty(Scheduler):
    """Says what it thinks."""

    name = "chatty"

    def schedule(self, cluster):
        logging.getLogger("a.name.of.its.own").info("asked at %g", cluster.now)
        for job in cluster.fitting():
            cluster.start(job)
        if cluster.queue:
            cluster.remark(cluster.queue.head, "is too wide, alas")
'''


def test_verbose_shows_what_a_policy_logs_and_remarks(tmp_path: Path) -> None:
    (tmp_path / "chatty.py").write_text(CHATTY)
    run = ["run", "-w", LOG, "--hosts", "64", "-s", f"{tmp_path}/chatty.py:Chatty", "-e", tmp_path / "out"]
    _, _, told = call(["-v", *run])
    lines = told.splitlines()
    assert "batsched-py: info: asked at 1091" in lines
    assert "batsched-py: debug: at 13942, job w0!9: is too wide, alas" in lines
    assert call(run)[2] == ""


#: A distribution of somebody else's: a policy and users in a package, and a library that they use.
INSTALLED = {
    "chatty/__init__.py": "",
    "chatty/policy.py": CHATTY.replace("import logging\n", "import logging\nimport library\n").replace(
        "        for job", "        library.help()\n        for job"
    ),
    "chatty/crowd.py": """
import logging

from batsched_py.users.rigid import Rigid


class Crowd(Rigid):
    name = "crowd"

    def users(self, workload):
        logging.getLogger("crowd").info("here we come")
        return super().users(workload)
""",
    "library.py": "import logging\ndef help(): logging.getLogger(__name__).info('noise')\n",
    "chatty-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: chatty\nVersion: 1.0\n",
    "chatty-1.0.dist-info/entry_points.txt": (
        "[batsched_py.schedulers]\nchatty = chatty.policy:Chatty\n"
        "[batsched_py.users]\ncrowd = chatty.crowd:Crowd\n"
    ),
}


@pytest.fixture
def installed(tmp_path: Path) -> str:
    """Where Python finds it."""
    site = tmp_path / "lib" / "site-packages"
    for name, text in INSTALLED.items():
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_text(text)
    return f"{site}:{ROOT}"


def test_verbose_shows_what_installed_policies_and_users_log(tmp_path: Path, installed: str) -> None:
    run = ["run", "-w", LOG, "--hosts", "64", "-s", "chatty", "--users", "crowd", "-e", tmp_path / "out"]
    _, _, told = call(["-v", *run], PYTHONPATH=installed)
    lines = told.splitlines()
    assert "batsched-py: info: asked at 1091" in lines
    assert "batsched-py: info: here we come" in lines
    assert "noise" not in told
    assert call(run, PYTHONPATH=installed)[2] == ""


def test_an_installed_policy_that_fails_is_told_its_own_line(tmp_path: Path, installed: str) -> None:
    site = Path(installed.partition(":")[0])
    (site / "library.py").write_text("def help(): 1 / 0\n")
    run = ["run", "-w", LOG, "--hosts", "64", "-s", "chatty", "-e", tmp_path / "out"]
    code, _, told = call(run, PYTHONPATH=installed)
    assert code == 1
    line = (site / "chatty" / "policy.py").read_text().splitlines().index("        library.help()") + 1
    assert f"({site / 'chatty' / 'policy.py'}:{line})" in told


def test_moments_have_no_digits_that_nobody_reads(tmp_path: Path) -> None:
    """Under another load jobs are submitted at times like 199950.364964, and started at such."""
    log, prefix = tmp_path / "log.swf", tmp_path / "out"
    assert invoke("change", LOG, log, "load", "factor=1.37", "first", "jobs=220").exit_code == 0
    run = invoke("run", "-w", log, "--hosts", "64", "-s", "easy", "-e", prefix, "--remarks")
    assert run.exit_code == 0, run.output
    told = invoke("explain", prefix, "200").stdout
    assert "submitted at 199950.4: waited 17.67 h, started at 263546.4 on " in told
