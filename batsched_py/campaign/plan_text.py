"""The text of a plan, which can tell where in it a mistake is."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import msgspec
from msgspec import Struct

from batsched_py.campaign.folders import is_name
from batsched_py.campaign.toml_lines import Path as KeyPath
from batsched_py.campaign.toml_lines import line_of
from batsched_py.campaign.toml_text import to_toml
from batsched_py.errors import InputError

_AT = re.compile(r"^(?P<message>.*?)(?: - at `\$(?P<place>.*)`)?$", re.DOTALL)

#: How many characters a plan may have; the paper's has a thousand.
LONGEST = 1 << 20

Entry = TypeVar("Entry", bound=Struct)


class PlanText:
    """The text of a plan and what it says."""

    def __init__(self, file: Path, text: str, content: dict[str, Any]) -> None:
        self.file = file
        """Where it stands, or would; what it names is looked for beside it."""
        self.text = text
        self.content = content

    @classmethod
    def read(cls, file: Path) -> PlanText:
        """The plan in a TOML file."""
        try:
            with file.open(encoding="utf-8") as stream:
                text = stream.read(LONGEST + 1)
        except OSError as error:
            raise InputError(f"{file}: cannot be read: {error.strerror}") from None
        except UnicodeDecodeError:
            raise InputError(f"{file}: is not text in UTF-8") from None
        if len(text) > LONGEST:
            raise InputError(f"{file}: is longer than the {LONGEST} characters that a plan may have")
        try:
            return cls(file, text, tomllib.loads(text))
        except (ValueError, RecursionError) as error:
            raise InputError(f"{file}: is not TOML: {error}") from None

    @property
    def name(self) -> str:
        """What the results are called: as the plan says, or as its file."""
        name = self.content.get("name") or self.file.stem
        if not (isinstance(name, str) and is_name(name)):
            self.fail(("name",), "must be a text that can be the name of a folder")
        return name

    def fail(self, path: KeyPath, message: str) -> NoReturn:
        """Say what is wrong with the value at ``path``."""
        key = ".".join(str(part) for part in path)
        raise InputError(f"{self._place(path)}: {key}: {message}" if path else f"{self.file}: {message}")

    def _place(self, path: KeyPath) -> str:
        return f"{self.file}:{line_of(self.text, path)}"

    @contextmanager
    def blaming(self, *path: str | int) -> Iterator[None]:
        """Whatever cannot be used meanwhile is a mistake of the value at ``path``."""
        try:
            yield
        except InputError as error:
            self.fail(path, str(error))

    def convert(self, value: Any, kind: type[Entry], path: KeyPath) -> Entry:
        """The value at ``path``, as what it is to be."""
        try:
            return msgspec.convert(value, kind)
        except msgspec.ValidationError as error:
            found = _AT.match(str(error))
            assert found is not None
            message = found["message"]
            place: list[str | int] = [
                part for part in re.split(r"[.\[\]]+", found["place"] or "") if part and part != "..."
            ]
            if unknown := re.match(r"Object contains unknown field `(.*)`", message):
                place.append(unknown[1])
                message = f"there is no such key; known are {', '.join(kind.__struct_fields__)}"
            self.fail((*path, *place), message)


class PlanWords(PlanText):
    """A plan that was made in Python, whose mistakes stand on no line."""

    def __init__(self, words: dict[str, Any], name: str) -> None:
        super().__init__(Path(f"{name}.toml"), to_toml(words), words)

    def _place(self, path: KeyPath) -> str:
        return "plan"
