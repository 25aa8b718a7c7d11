"""Finding classes by name, above all in files whose names others have too."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from batsched_py.errors import InputError
from batsched_py.schedulers import SCHEDULERS
from batsched_py.users import USERS
from tests.processes import environment

#: Its annotations can be understood only in the module that defines what they mention.
POLICY = '''
from __future__ import annotations
from dataclasses import dataclass
from typing import Annotated, Literal
from msgspec import Meta, Struct
from batsched_py.schedulers import Cluster, Scheduler

{kind} = Literal["{choice}"]
Depth = Annotated[int, Meta(ge=1)]


class Note(Struct):
    kind: {kind} = "{choice}"


@dataclass
class Mine(Scheduler):
    """Mine."""

    name = "mine"
    kind: {kind} = "{choice}"
    depth: Depth = 1

    def schedule(self, cluster: Cluster) -> None:
        self.note = Note()
'''


def policy(path: Path, choice: str) -> str:
    """Write a policy that has one choice; the name by which it is called."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(POLICY.format(kind=f"Kind{choice.title()}", choice=choice))
    return f"{path}:Mine"


@pytest.mark.parametrize("name", ["mine.py", "queue.py", "my.policy.py"])
def test_files_of_one_name_do_not_get_into_each_others_way(tmp_path: Path, name: str) -> None:
    one, other = policy(tmp_path / "one" / name, "left"), policy(tmp_path / "other" / name, "right")
    left, right = SCHEDULERS.create(one, {"depth": "3"}), SCHEDULERS.create(other, {"depth": "4"})
    assert (left.kind, left.depth, right.kind, right.depth) == ("left", 3, "right", 4)
    with pytest.raises(InputError, match=r"Invalid enum value 'right' - at `\$.kind`; choose among left"):
        SCHEDULERS.create(one, {"kind": "right"})


def test_a_file_named_like_a_module_leaves_that_alone(tmp_path: Path) -> None:
    import queue

    SCHEDULERS.create(policy(tmp_path / "queue.py", "left"), {})
    assert sys.modules["queue"] is queue


def test_what_a_file_defines_can_be_pickled(tmp_path: Path) -> None:
    made = SCHEDULERS.create(policy(tmp_path / "my.policy.py", "left"), {"depth": "7"})
    assert pickle.loads(pickle.dumps(made)) == made


def test_a_file_is_read_as_it_is_now(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    assert SCHEDULERS.create(policy(path, "left"), {}).kind == "left"
    assert SCHEDULERS.create(policy(path, "deft"), {}).kind == "deft"


def test_annotations_of_a_file_without_the_future_import_are_evaluated(tmp_path: Path) -> None:
    path = tmp_path / "eager.py"
    path.write_text(POLICY.replace("from __future__ import annotations\n", "").format(kind="K", choice="c"))
    hints = SCHEDULERS.find(f"{path}:Mine").__annotations__
    assert not any(isinstance(hint, str) for hint in hints.values())


MISTAKES = {
    "an error": ("1 / 0\n", r"mine.py cannot be loaded: ZeroDivisionError\('division by zero'\)"),
    "an exit": ("raise SystemExit(0)\n", r"mine.py cannot be loaded: SystemExit\(0\)"),
    "no Python": ("class\n", "mine.py cannot be loaded: SyntaxError"),
    "no such class": ("", r"defines no scheduler 'Mine' \(it defines none\)"),
    "an annotation of nothing": (
        POLICY.replace('{kind} = Literal["{choice}"]', "").format(kind="Kind", choice="c"),
        "cannot be made with its options: NameError",
    ),
    "an error in the making": (
        POLICY.format(kind="Kind", choice="c") + "\n    def __post_init__(self) -> None:\n        1 / 0\n",
        "cannot be made with its options: ZeroDivisionError",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_a_file_is_one_line(tmp_path: Path, mistake: str) -> None:
    text, message = MISTAKES[mistake]
    path = tmp_path / "mine.py"
    path.write_text(text)
    before = set(sys.modules)
    with pytest.raises(InputError, match=message) as raised:
        SCHEDULERS.create(f"{path}:Mine", {"depth": "1"})
    assert "\n" not in str(raised.value)
    if "cannot be loaded" in str(raised.value):
        assert not [name for name in set(sys.modules) - before if name.startswith("mine@")]


@pytest.mark.parametrize("registry", [SCHEDULERS, USERS], ids=lambda registry: registry.kind)
def test_a_class_is_found_whatever_its_module_is_called(registry: object) -> None:
    assert {name: registry.find(name) for name in registry.all()} == registry.all()  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["", "..", "a.b", "base", "easy ", "class", "no-such"])
def test_what_does_not_exist_is_told_with_what_does(name: str) -> None:
    with pytest.raises(InputError, match=f"there is no scheduler {name!r}.*; known are capped, conservative"):
        SCHEDULERS.find(name)


def test_a_shipped_class_is_found_without_looking_at_others() -> None:
    check = (
        "import sys; from batsched_py.schedulers import SCHEDULERS; SCHEDULERS.find('easy'); "
        "print(*sorted({'importlib.metadata', 'batsched_py.schedulers.sleeper'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", check], env=environment(), capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == ""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A distribution of somebody else's, with two policies, one of them under a name that is taken."""
    policy(tmp_path / "stranger.py", "theirs")
    info = tmp_path / "stranger-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: stranger\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[batsched_py.schedulers]\nstrange = stranger:Mine\neasy = stranger:Mine\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    sys.modules.pop("stranger", None)


@pytest.mark.usefixtures("installed")
def test_an_installed_class_is_found_unless_its_name_is_taken() -> None:
    assert SCHEDULERS.find("strange").name == "mine"
    assert SCHEDULERS.all()["strange"].name == "mine"
    assert SCHEDULERS.find("easy").name == SCHEDULERS.all()["easy"].name == "easy"
