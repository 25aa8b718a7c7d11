"""The page of settings, made from their declaration."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

from msgspec import NODEFAULT

from batsched_py.experiment import Experiment
from batsched_py.settings import Option, Setting, settings_of

#: The tables of a plan, in the order of the page.
TABLES = ("logs", "platforms", "schedulers", "users")

HEADER = "| option | Python | key in the plan | default | what it says |\n| --- | --- | --- | --- | --- |"


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Put the tables where the page has room for them."""
    if page.file.src_uri != "settings.md":
        return markdown
    return markdown.replace("<!-- settings -->", tables())


def tables() -> str:
    """All settings, in a table for each table of a plan."""
    return "\n\n".join("\n".join([f"## `[{table}]`\n", HEADER, *_rows(table)]) for table in TABLES)


def _rows(table: str) -> Iterator[str]:
    for setting in settings_of(Experiment):
        option, (place, key) = setting.option, setting.plan_key
        if place == table:
            yield _row(option, option.word, key, _default(setting), among=get_args(setting.type))
            for each in option.further:
                word = f"{each.word}s" if each is option.pairs else each.word
                yield _row(each, "" if each.names_files else word, each.plan.partition(".")[2])


def _row(option: Option, word: str, key: str, default: str = "", among: tuple[Any, ...] = ()) -> str:
    code = [f"`{cell}`" if cell else "" for cell in (option.usage, word, key, default)]
    names = ", ".join(f"`{each}`" for each in among if isinstance(each, str))
    return f"| {' | '.join([*code, f'{option.help} {names}'.strip()])} |"


def _default(setting: Setting) -> str:
    if setting.default is NODEFAULT or setting.default in (None, (), ""):
        return setting.option.usual
    return str(setting.default).lower()
