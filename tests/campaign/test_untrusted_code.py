"""Code of others: whichever way a campaign names it, it is executed only by those who trust it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from batsched_py.campaign.archive import export_campaign, import_campaign
from batsched_py.campaign.plan_file import read_plan
from batsched_py.errors import InputError
from batsched_py.plugins import Registry
from batsched_py.trust import NotTrusted, check_code, distrusting, trusting
from batsched_py.workload.recipe import load_model
from tests.campaign.test_hostile_archives import RUN, forge, invoke
from tests.campaigns import conducted

#: A file that leaves a trace as soon as it is loaded.
EVIL = """from pathlib import Path

Path(__file__).with_name("executed").touch()


class X:
    pass
"""

#: A fitted model that names code, as JSON.
FITTED = json.dumps(
    {
        "format": "batsched-py model",
        "version": 1,
        "model": "inputs/evil.py:X",
        "options": {},
        "parameters": {},
    }
)

SMALL = '[logs]\nx = { file = "small.swf" }\n'
EASY = "[schedulers]\neasy = {}\n"


def made(recipe: str) -> str:
    """A plan with a log that is made by a recipe."""
    return f"[logs]\nx = {{ {recipe} }}\n{EASY}"


#: Each way in which a plan can name code.
WAYS = {
    "scheduler": f'{SMALL}[schedulers]\ne = {{ name = "inputs/evil.py:X" }}\n',
    "pybatsim": f'{SMALL}[schedulers]\ne = {{ name = "pybatsim:inputs/evil.py" }}\n',
    "users": f'{SMALL}{EASY}[users]\ne = {{ name = "inputs/evil.py:X" }}\n',
    "inner users": f'{SMALL}{EASY}[users]\ne = {{ name = "patience(inputs/evil.py:X)" }}\n',
    "changes": made('model = "lublin", jobs = 9, changes = ["inputs/evil.py:X"]'),
    "a change among others": made('file = "small.swf", changes = ["first jobs=9 inputs/evil.py:X"]'),
    "model": made('model = "inputs/evil.py:X", jobs = 9'),
    "kind": made('file = "small.swf", kind = "inputs/evil.py:X"'),
    "attributes": f'[logs]\nx = {{ file = "small.swf", attributes = "inputs/evil.py:X" }}\n{EASY}',
    "sessions": f'{SMALL}{EASY}[users.think-time]\noptions = {{ sessions = "inputs/evil.py:X" }}\n',
    "monitors": f'{SMALL}[schedulers]\neasy = {{ monitors = "inputs/evil.py:X" }}\n',
    "data": f'{SMALL}[schedulers]\neasy = {{ data = ["inputs/evil.py:X"] }}\n',
    "allocators": f'{SMALL}{EASY}[allocators]\nmine = {{ allocator = "inputs/evil.py:X" }}\n',
    "allocator": f'{SMALL}[schedulers.easy]\noptions = {{ allocator = "inputs/evil.py:X" }}\n',
    "figures": f'figures = ["inputs/evil.py:X"]\n{SMALL}{EASY}',
    "fitted": made('model = "naive", fitted = "inputs/fitted.json", jobs = 9'),
}


@pytest.fixture
def imported(folder: Path, tmp_path: Path) -> Callable[[str], Path]:
    """Imports a campaign whose plan is another one, and which has code; where its plan is."""
    archive = tmp_path / "good.zip"
    export_campaign(conducted(folder, [RUN]), archive)

    def plant(plan: str) -> Path:
        again = tmp_path / "again"
        import_campaign(archive, again)
        (again / "plan.toml").write_text(plan)
        (again / "small.swf").write_bytes((folder / "small.swf").read_bytes())
        (again / "inputs").mkdir(exist_ok=True)
        (again / "inputs" / "evil.py").write_text(EVIL)
        (again / "inputs" / "fitted.json").write_text(FITTED)
        return again / "plan.toml"

    return plant


@pytest.mark.parametrize("way", WAYS)
def test_code_of_an_imported_plan_is_not_executed(
    imported: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    plan = imported(WAYS[way])
    monkeypatch.chdir(plan.parent)
    for command in ("plan", "status", "run"):
        result = invoke("campaign", command, "plan.toml")
        assert result.exit_code in (0, 1) if command == "plan" else result.exit_code == 1
        assert result.stderr.count("\n") <= 1 + (command == "plan")
    assert "--trust" in result.stderr or "fitted model" in result.stderr
    assert not (plan.parent / "inputs" / "executed").exists()
    invoke("campaign", "run", "plan.toml", "--trust", "-j", "1")
    assert (plan.parent / "inputs" / "executed").exists()


def test_an_archive_with_code_among_its_results_is_refused(folder: Path, tmp_path: Path) -> None:
    """Its manifest tells of the file, with the right checksum."""
    export_campaign(conducted(folder, [RUN]), tmp_path / "good.zip")

    def plant(files: dict[str, bytes]) -> None:
        import hashlib

        files[f"runs/{RUN}/evil.py"] = EVIL.encode()
        manifest = json.loads(files[f"runs/{RUN}/manifest.json"])
        manifest["results"].append(
            {"path": "evil.py", "sha256": hashlib.sha256(EVIL.encode()).hexdigest(), "size": len(EVIL)}
        )
        files[f"runs/{RUN}/manifest.json"] = json.dumps(manifest).encode()

    forged = forge(tmp_path / "good.zip", tmp_path / "forged.zip", plant)
    with pytest.raises(
        InputError, match=r"has a file 'runs/small_full_fcfs/evil\.py', which no campaign has"
    ):
        import_campaign(forged, tmp_path / "again")
    assert not (tmp_path / "again").exists()


@pytest.mark.parametrize("name", ["inputs/evil.py", "inputs/../evil.py", "inputs/a/b.py"])
def test_an_archive_brings_no_code_that_its_list_does_not_tell_of(
    folder: Path, tmp_path: Path, name: str
) -> None:
    export_campaign(conducted(folder, [RUN]), tmp_path / "good.zip")
    forged = forge(
        tmp_path / "good.zip", tmp_path / "forged.zip", lambda files: files.update({name: EVIL.encode()})
    )
    with pytest.raises(InputError, match=r"does not tell of inputs/evil\.py|which no campaign has"):
        import_campaign(forged, tmp_path / "again")


def test_code_in_an_imported_folder_is_not_executed_directly_either(
    imported: Callable[[str], Path], tmp_path: Path
) -> None:
    evil = imported(WAYS["model"]).parent / "inputs" / "evil.py"
    (tmp_path / "link.py").symlink_to(evil)
    for name in (evil, tmp_path / "link.py"):
        result = invoke("run", "-w", tmp_path / "small.swf", "-s", f"{name}:X", "-e", tmp_path / "o")
        assert (result.exit_code, result.stderr.count("\n")) == (1, 1)
        assert "was imported; to execute code in it, import it with --trust" in result.stderr
    assert not (evil.parent / "executed").exists()


def test_a_fitted_model_executes_no_code_that_it_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "inputs").mkdir()
    (tmp_path / "inputs" / "evil.py").write_text(EVIL)
    (tmp_path / "fitted.json").write_text(FITTED)
    with pytest.raises(NotTrusted, match=r"inputs/evil\.py is not executed: fitted\.json is a fitted model"):
        load_model("fitted.json")
    result = invoke("generate", "naive", "--model", "fitted.json", "--jobs", "9", "--output", "x.swf")
    assert (result.exit_code, result.stderr.count("\n")) == (1, 1)
    assert not (tmp_path / "inputs" / "executed").exists()


def test_a_kind_of_plugin_that_is_new_obeys_the_same_rule(tmp_path: Path) -> None:
    (tmp_path / "evil.py").write_text(EVIL)
    registry = Registry("novelty", object, package="batsched_py.users", group="none")
    with distrusting("who knows"), pytest.raises(NotTrusted, match=r"evil\.py is not executed: who knows"):
        registry.find(f"{tmp_path / 'evil.py'}:X")
    assert not (tmp_path / "executed").exists()
    with distrusting("who knows"), trusting():
        assert registry.find(f"{tmp_path / 'evil.py'}:X").__name__ == "X"


def test_only_two_modules_execute_files(root: Path) -> None:
    """Both ask first whether they may: the registry of plugins, and the way to PyBatsim's own loader.

    ``cli/__init__.py`` loads modules of the library of Python that it names itself.
    """
    words = ("exec(", "spec_from_file_location", "exec_module", "run_path", "instanciate_scheduler")
    sources = {path: path.read_text() for path in (root / "batsched_py").rglob("*.py")}
    del sources[root / "batsched_py" / "cli" / "__init__.py"]
    found = {path.name for path, text in sources.items() if any(word in text for word in words)}
    assert found == {"plugins.py", "pybatsim.py"}
    for path, text in sources.items():
        assert path.name not in found or "check_code(" in text


def test_a_folder_is_trusted_from_its_import_on(folder: Path, tmp_path: Path) -> None:
    export_campaign(conducted(folder, [RUN]), tmp_path / "good.zip")
    import_campaign(tmp_path / "good.zip", tmp_path / "trusted", trust=True)
    (tmp_path / "trusted" / "mine.py").write_text("")
    check_code(tmp_path / "trusted" / "mine.py")
    (tmp_path / "trusted" / "imported.json").write_text("damaged")
    with pytest.raises(NotTrusted):
        check_code(tmp_path / "trusted" / "mine.py")


def test_the_name_of_a_plan_is_no_path(tmp_path: Path) -> None:
    for name in ("../outside", "/outside", "a\\u001b[2J"):
        (tmp_path / "plan.toml").write_text(f'name = "{name}"\n{WAYS["model"]}')
        with pytest.raises(InputError, match=r"plan\.toml:1: name: must be a text that can be the name of a"):
            read_plan(tmp_path / "plan.toml")
