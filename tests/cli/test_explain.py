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
    assert f"{result.explain('412')}\n" == invoke("explain", out, "412").stdout
    assert result.explain("412").facts.waited == 641878 - 633400


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(["nowhere", "1"], "cannot be read"), (["{out}", "0815"], "there is no job '0815'")],
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
