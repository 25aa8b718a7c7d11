"""What options of commands are made of: settings of an experiment, fields of a class, pairs, runs.

The settings are declared once, as fields of structs. Their options are made from these fields, and the
command is handed the struct itself.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import wraps
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import click
import msgspec
from msgspec import NODEFAULT, Meta, Struct

from batsched_py.analysis.windows import Window
from batsched_py.api import lazy
from batsched_py.api.terminal import say, waiting
from batsched_py.cli.told import Helpful, Told
from batsched_py.errors import InputError, did_you_mean
from batsched_py.input_files import open_input
from batsched_py.settings import Option, Setting, settings_of, struct_from

if TYPE_CHECKING:
    from batsched_py.experiment import Choice

Command = TypeVar("Command", bound=Callable[..., Any])
Found = TypeVar("Found")


def parse_pairs(ctx: click.Context, option: click.Parameter, texts: Sequence[str]) -> dict[str, str]:
    """Read the pairs, for click."""
    pairs: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key:
            writes = any("--output" in each.opts for each in ctx.command.params)
            hint = f"; what is written goes by --output {text}" if writes and "-o" in option.opts else ""
            raise click.BadParameter(f"{text!r} is not of the form KEY=VALUE{hint}")
        if key in pairs:
            raise click.BadParameter(f"{key!r} is given twice")
        pairs[key] = value
    return pairs


#: What gives a command an option, or several.
Decorator = Callable[[Command], Command]

#: A time in seconds.
SECONDS = click.FloatRange(min=0, min_open=True, max=1e6)

#: The name of a file exactly as it was given, and the same as a path; a file or a folder, a file, a folder.
NAME = click.Path()
PATH = click.Path(path_type=Path)
FILE = click.Path(path_type=Path, dir_okay=False)
FOLDER = click.Path(path_type=Path, file_okay=False)


def option(usage: str, help: str, name: str = "", **given: Any) -> Decorator[Any]:
    """An option of a command, such as ``-w, --workload FILE``, and what it means.

    One without a value is a flag, and one with a default shows it. ``name`` is that of the parameter, if the
    first long flag is not. What else is given is for click.
    """
    told = Option(usage, help)
    given = {"cls": Told, "metavar": told.metavar, **given}
    if given.get("default", "") != "":
        given["show_default"] = True
    if given["metavar"] is None and "type" not in given:
        given["is_flag"] = True
    return click.option(*told.flags, name or told.word, help=help, **given)


class OneOf(click.Choice):
    """Some words to choose from; for another one it says which may have been meant."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The word, if it is one of these."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as fault:
            meant = did_you_mean(str(value), map(str, self.choices))
            self.fail(f"{fault.message.removesuffix('.')}{meant}.", param, ctx)


class OutputOption(Told):
    """The option ``--output``, which says where something is written.

    ``-o`` is an option of the scheduler, everywhere. Until 0.2.0 it was this one in commands without a
    scheduler; they still take it, and say so in one line.
    """

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        """Read ``--output``, and ``-o``."""
        super().add_to_parser(parser, ctx)
        action = "append" if self.multiple else "store"
        parser.add_option(obj=self, opts=["-o"], dest="-o", action=action, nargs=1)

    def handle_parse_result(
        self, ctx: click.Context, opts: Mapping[str, Any], args: list[str]
    ) -> tuple[Any, list[str]]:
        """Take what ``-o`` was given for what ``--output`` is given."""
        assert self.name is not None
        if (given := opts.get("-o")) is not None:
            opts = {**opts, self.name: [*opts.get(self.name, ()), *given] if self.multiple else given}
            if not ctx.resilient_parsing:
                click.echo(
                    "batsched-py: warning: -o FILE is --output FILE now, for -o is an option of schedulers; "
                    "a later version no longer takes it",
                    err=True,
                )
        return super().handle_parse_result(ctx, opts, args)


def output_option(metavar: str, help: str, name: str = "output", **given: Any) -> Decorator[Any]:
    """Where a command writes what ``help`` says; ``name`` is that of the parameter."""
    return option(f"--output {metavar}", help, name, cls=OutputOption, **given)


measure_option = option(
    "--measure FROM:TO",
    "Measure a window only, like 7d:300d, 7d: or :300d: the jobs that are submitted then, and the machine "
    "meanwhile. Times count from the first submission.  [default: the whole run, from an empty machine on]",
    callback=lambda ctx, parameter, text: None if text is None else Window.parse(text),
)


#: Whether what was found is printed for programs.
json_option = option("--json", "Print all figures as JSON.", "as_json")


def pairs_option(usage: str, name: str, help: str) -> Decorator[Any]:
    """An option that may be given several times, each time as ``KEY=VALUE``."""
    several = f"{help} May be given several times."
    return option(f"{usage} KEY=VALUE", several, name, multiple=True, callback=parse_pairs)


def timeout_option(whose: str) -> Decorator[Any]:
    """How long to wait for the other side of a conversation."""
    help = f"Give up when {whose} is silent for S seconds.  [default: wait for ever]"
    return option("--timeout S", help, type=SECONDS)


def struct_options(
    name: str, kind: type[Struct], required: Collection[str] = (), **defaults: bool
) -> Decorator[Any]:
    """Give a command the options of all settings of a struct, and hand it the struct as ``name``.

    The settings in ``required`` must be given, like those without a default; the help shows these first.
    ``defaults`` replace those of the struct.
    """
    options = [
        click.option(*flags, cls=GroupedOption, **given)
        for setting, is_needed in _needed_first(kind, required)
        for flags, given in _click_options(setting, is_needed, defaults.get(setting.name))
    ]
    return _handing(name, _making(kind), options)


def _needed_first(kind: type[Struct], required: Collection[str]) -> list[tuple[Setting, bool]]:
    """The settings of a struct, and whether they must be given."""
    settings = settings_of(kind)
    needed = {setting.name for setting in settings if setting.default is NODEFAULT}.union(required)
    both = [(setting, setting.name in needed) for setting in settings]
    return sorted(both, key=lambda each: not each[1])


def _making(kind: type[Struct]) -> Callable[[dict[str, Any]], Struct]:
    """What makes a struct of the values of options, which are taken away."""
    settings = settings_of(kind)
    return lambda values: struct_from(kind, {each.name: _taken(each, values) for each in settings})


def setting_options(kind: type[Struct], name: str) -> Decorator[Any]:
    """Give a command the options of one setting of a struct, and hand it the value as ``name``."""
    setting = next(setting for setting in settings_of(kind) if setting.name == name)
    options = [
        click.option(*flags, cls=GroupedOption, **given)
        for flags, given in _click_options(setting, required=False)
    ]
    return _handing(name, lambda values: _taken(setting, values), options)


def _handing(
    name: str, made: Callable[[dict[str, Any]], Any], options: Sequence[Decorator[Any]]
) -> Decorator[Any]:
    """Give a command options, and hand it what is made of their values, which are taken away."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def with_value(*arguments: Any, **values: Any) -> Any:
            value = made(values)
            return command(*arguments, **values, **{name: value})

        decorated: Callable[..., Any] = with_value
        for option in reversed(options):
            decorated = option(decorated)
        return decorated

    return decorate


class GroupedOption(Told):
    """An option with the heading under which the help shows it."""

    def __init__(self, *arguments: Any, group: str, **given: Any) -> None:
        super().__init__(*arguments, **given)
        self.group = group


#: The heading of options of a command that belong to no setting.
OWN_OPTIONS = "This command"


#: The words among the arguments of a command that look like options, if each is the flag of one.
_FLAGS = f"{__name__}.flags"


class Grouped(Helpful):
    """A command that has the options of all settings of a struct, and is handed the struct.

    They are many. The help shows those first that matter first, and the others in groups. Where only flags
    are given, and no help is asked for, the options that are not given are not even made.
    """

    def __init__(
        self,
        *arguments: Any,
        struct: tuple[str, type[Struct]],
        required: Collection[str],
        first: Sequence[str],
        callback: Callable[..., Any],
        **given: Any,
    ) -> None:
        name, kind = struct
        given["callback"] = _handing(name, _making(kind), ())(callback)
        super().__init__(*arguments, **given)
        self._first = first
        self._settings = [(*each, frozenset(flags_of(each[0]))) for each in _needed_first(kind, required)]
        self._made: dict[str, list[click.Parameter]] = {}
        """The options of each setting, by its name."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments."""
        flags = {word.partition("=")[0] for word in args if word.startswith("-")}
        known = {flag for each in self.params for flag in (*each.opts, *each.secondary_opts)}
        if flags <= known.union(*(flags for _, _, flags in self._settings)):
            ctx.meta[_FLAGS] = flags
        return super().parse_args(ctx, args)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """All options, or at least those that are given or must be."""
        given: set[str] | None = ctx.meta.get(_FLAGS)
        options: list[click.Parameter] = []
        for setting, is_needed, flags in self._settings:
            if given is None or is_needed or not given.isdisjoint(flags):
                options += self._options_of(setting, is_needed)
        return [*options, *super().get_params(ctx)]

    def _options_of(self, setting: Setting, is_needed: bool) -> list[click.Parameter]:
        if setting.name not in self._made:
            self._made[setting.name] = [
                GroupedOption(flags, **given) for flags, given in _click_options(setting, is_needed)
            ]
        return self._made[setting.name]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options."""
        groups: dict[str, list[tuple[str, str]]] = {"What matters first": [], OWN_OPTIONS: []}
        for option in self.get_params(ctx):
            if (record := option.get_help_record(ctx)) is None:
                continue
            group = getattr(option, "group", OWN_OPTIONS)
            is_first = any(flag in self._first for flag in option.opts)
            groups.setdefault("What matters first" if is_first else group, []).append(record)
        own = groups.pop(OWN_OPTIONS)
        for heading, records in (groups | {OWN_OPTIONS: own}).items():
            with formatter.section(heading):
                formatter.write_dl(records)


# --- from a setting to its options ---------------------------------------------------------------


def flags_of(setting: Setting) -> list[str]:
    """All flags of a setting, also those that turn it off or say more about it."""
    option = setting.option
    return [
        *option.flags,
        *filter(None, [option.off]),
        *(flag for each in option.further for flag in each.flags),
    ]


def _click_options(
    setting: Setting, required: bool, default: bool | None = None
) -> Iterator[tuple[list[str], dict[str, Any]]]:
    """What the option of a setting is made of, and those that say more about it: flags, and the rest."""
    option, flags = setting.option, setting.option.flags
    usual = option.usual if default is None else "enabled" if default else "disabled"
    given: dict[str, Any] = {"help": option.help + (f"  [default: {usual}]" if usual else "")}
    if setting.type is bool:
        flags = [f"{flag}/{option.off}" if option.off else flag for flag in flags]
        given |= {"is_flag": True, "default": default if option.off else False}
    else:
        given |= {"type": _click_type(setting), "metavar": option.metavar}
        given |= {"multiple": setting.is_several, "required": required}
        if isinstance(setting.default, int | float | str):
            given |= {"default": setting.default, "show_default": bool(setting.default)}
    yield [*flags, option.word], given | {"group": setting.group}
    for each in option.further:
        pairs: dict[str, Any] = {"multiple": True, "callback": parse_pairs} if each is option.pairs else {}
        yield (
            [*each.flags, each.word],
            {"metavar": each.metavar, "help": each.help, "group": setting.group} | pairs,
        )


def _click_type(setting: Setting) -> Any:
    kind, bounds = setting.type, setting.bounds
    if setting.option.names_files:
        return NAME
    if get_origin(kind) is Literal:
        return OneOf(get_args(kind))
    if bounds is not None:
        limits: dict[str, Any] = {"min": bounds.ge, "max": bounds.le}
        return click.IntRange(**limits) if kind is int else click.FloatRange(**limits)
    return kind if kind in (int, float) else str


# --- from options to a setting -------------------------------------------------------------------


def _taken(setting: Setting, values: dict[str, Any]) -> Any:
    """The value of a setting, of which the options are taken away."""
    option = setting.option
    if option.word not in values:  # nobody gave any of them, so they were not made
        return setting.default
    value = values.pop(option.word)
    further = [values.pop(each.word) for each in option.further]
    if setting.is_choice:
        return _choice(setting, value, *further)
    if option.from_file and further[0] is not None:
        if value:
            flags = f"{option.flags[0]} and {option.from_file.flags[0]}"
            raise InputError(f"both {flags} are given; give one of them")
        return text_in(further[0])
    return not value if setting.turns_off else value


def _choice(
    setting: Setting, name: str | None, pairs: dict[str, str], short: str | None = None
) -> Choice | None:
    option, options = setting.option, dict(pairs)
    if option.short and option.pairs and short is not None:
        key = option.short.word
        if key in options:
            raise InputError(
                f"both --{key} and {option.pairs.flags[0]} {key}=... are given; give one of them"
            )
        options[key] = short
    if name is not None:
        from batsched_py.experiment import Choice

        return Choice(name, options)
    if options:
        raise InputError(
            f"{' and '.join(options)}: options for {setting.name}, but no --{option.word} was given"
        )
    return None


def text_in(file: str) -> str:
    """The text in a file that an option names."""
    try:
        with TextIOWrapper(open_input(file), encoding="utf-8") as stream:
            return stream.read()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file}: cannot be read: {getattr(error, 'strerror', None) or error}") from None


def field_options(cls: type[Any]) -> list[click.Option]:
    """An option for each field; its value is text, which is converted when the object is made.

    What a field means is in ``Annotated[..., Meta(description=...)]``, what its value is called in
    ``Meta(title=...)``. A field that holds several values may be given several times.
    """
    hints = get_type_hints(cls, include_extras=True)
    return [_option(field, hints[field.name]) for field in dataclasses.fields(cls)]


def _option(field: dataclasses.Field[Any], hint: Any) -> click.Option:
    bare, meta = get_args(hint)[0], next(each for each in get_args(hint) if isinstance(each, Meta))
    several = get_origin(bare) is tuple
    notes = [meta.description]
    if several:
        notes.append("May be given several times.")
    usual: Any = field.default
    if usual not in (None, ()):
        notes.append(f" [default: {', '.join(map(str, usual)) if several else usual}]")
    return click.Option(
        [f"--{field.name.replace('_', '-')}"],
        type=OneOf(get_args(bare)) if get_origin(bare) is Literal else str,
        metavar=meta.title,
        multiple=several,
        help=" ".join(filter(None, notes)),
    )


def read_runs(
    texts: Sequence[str], log: lazy.swf_log.SwfLog | None = None, distinct: bool = True
) -> Iterator[lazy.plot_runs.Run]:
    """The runs that were given; no two have one label, unless it need not be ``distinct``.

    ``log`` is the one that they replay.
    """
    labels = {"recorded"}
    for text in texts:
        label, equals, file = text.partition("=")
        if not equals:
            label, file = _default_label(Path(text)), text
        if distinct and label in labels:
            raise InputError(f"{text}: the label {label!r} is taken; give another one, as in LABEL={file}")
        labels.add(label)
        recorded = _read_log(file)
        runs = lazy.plot_runs
        yield runs.read_run(file, label, log) if recorded is None else runs.recorded_run(recorded, label)


def _read_log(file: str) -> lazy.swf_log.SwfLog | None:
    """The log in a file, if it is one: of the Standard Workload Format, or a table with a column submit."""
    path = Path(file)
    if file.lower().endswith((".swf", ".swf.gz")):
        return lazy.swf_reader.read_swf(path)
    try:
        with path.open("rb") as opened:
            beginning = opened.read(1 << 16)
    except OSError:
        return None
    return lazy.sources.read_log(path, "csv") if lazy.sources_table.Table().recognises(beginning) else None


def _default_label(path: Path) -> str:
    """The prefix of a ``PREFIX_jobs.csv``, the name of a log, or the folder of a ``jobs.csv`` alone."""
    if ".swf" in path.name.lower():
        return path.name[: path.name.lower().index(".swf")]
    return path.name.removesuffix("jobs.csv").removesuffix("_") or path.absolute().parent.name


def print_json(value: Any) -> None:
    """Print something as JSON, for programs."""
    say(msgspec.json.format(msgspec.json.encode(value)))


def tell(
    found: Found,
    as_json: bool,
    page: Path | None,
    write_page: Callable[[Path, Found], None],
    print_text: Callable[[Found], None],
) -> None:
    """Write a page if one is wanted, and print what was found, as JSON or as text."""
    if page is not None:
        with waiting(f"Writing {page.name}"):
            write_page(page, found)
    if as_json:
        return print_json(found)
    print_text(found)
    if page is not None:
        say(f"\n{page}")
