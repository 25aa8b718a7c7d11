"""The small faults that can be put into a file, in Python or in C++."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.In: "not in",
    ast.NotIn: "in",
    ast.Is: "is not",
    ast.IsNot: "is",
}
_OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "/",
    ast.Div: "*",
    ast.FloorDiv: "*",
    ast.Mod: "+",
}
_FUNCTIONS = {"min": "max", "max": "min", "any": "all", "all": "any", "floor": "ceil", "ceil": "floor"}

#: In C++: what is looked for, and what it becomes. Templates and streams have no blanks around them.
_IN_CPP = [
    (re.compile(rf"(?<= ){re.escape(old)}(?= )"), new)
    for old, new in {
        "<": "<=",
        "<=": "<",
        ">": ">=",
        ">=": ">",
        "==": "!=",
        "!=": "==",
        "+": "-",
        "-": "+",
        "&&": "||",
        "||": "&&",
        "+=": "-=",
    }.items()
]


@dataclass(frozen=True)
class Fault:
    """A piece of a file, and what takes its place."""

    path: Path
    begin: int
    end: int
    new: str
    line: str
    """The whole line with the fault in it, by which it is known when the file has changed elsewhere."""
    expression: tuple[int, int] | None = None
    """The piece that is computed there, if another one may stand around it."""

    @property
    def name(self) -> str:
        """What tells it from others, whichever line it is on."""
        return f"{self.path}: {self.line}"

    def into(self, folder: Path) -> str:
        """Put it into a copy of the checkout; what the file contained."""
        file = folder / self.path
        content = file.read_text(encoding="utf-8")
        file.write_text(content[: self.begin] + self.new + content[self.end :], encoding="utf-8")
        return content


#: Where a change begins and ends, what it puts there, and in which expression that is.
_Piece = tuple[int, int, str, tuple[int, int] | None]


def faults_in(root: Path, path: Path) -> list[Fault]:
    """All that can be put into a file."""
    text = (root / path).read_text(encoding="utf-8")
    pieces = _in_python(text) if path.suffix == ".py" else _in_cpp(text)
    found = []
    for begin, end, new, expression in pieces:
        first = text.rfind("\n", 0, begin) + 1
        line = text[first:begin] + new + text[end:].partition("\n")[0]
        found.append(Fault(path, begin, end, new, " ".join(line.split()), expression))
    return found


def _in_cpp(text: str) -> Iterator[_Piece]:
    place = 0
    for line in text.splitlines(keepends=True):
        code = line.partition("//")[0]
        if not code.lstrip().startswith(("*", "/*", "#", "template", "static_assert")) and '"' not in code:
            for pattern, new in _IN_CPP:
                for found in pattern.finditer(code):
                    yield place + found.start(), place + found.end(), new, None
        place += len(line)


def _in_python(text: str) -> Iterator[_Piece]:
    lines = text.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))

    def place(line: int, column: int) -> int:
        return starts[line - 1] + len(lines[line - 1].encode()[:column].decode())

    def span(node: ast.expr) -> tuple[int, int]:
        assert node.end_lineno is not None and node.end_col_offset is not None
        return place(node.lineno, node.col_offset), place(node.end_lineno, node.end_col_offset)

    tree = ast.parse(text)
    of_patterns = {node.value for node in ast.walk(tree) if isinstance(node, ast.MatchValue)}
    for node in _executed(tree):
        changed = node.test if isinstance(node, ast.If | ast.IfExp | ast.While) else node
        if isinstance(changed, ast.expr):
            for begin, end, new in _changes(text, node, span):
                yield begin, end, new, None if node in of_patterns else span(changed)


def _changes(
    text: str, node: ast.AST, span: Callable[[ast.expr], tuple[int, int]]
) -> Iterator[tuple[int, int, str]]:
    def between(left: ast.expr, right: ast.expr, new: str) -> tuple[int, int, str]:
        """The new operator with the brackets and blanks that are around the old one."""
        begin, end = span(left)[1], span(right)[0]
        old = text[begin:end]
        closing = old[: len(old) - len(old.lstrip(" )\n"))]
        opening = old[len(old.rstrip(" (\n")) :]
        return begin, end, f"{closing or ' '}{new}{opening or ' '}"

    match node:
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            yield between(left, right, _COMPARISONS[type(op)])
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            if not (isinstance(left, ast.Constant) and isinstance(left.value, str)):
                yield between(left, right, _OPERATORS[type(op)])
        case ast.BoolOp(op=op, values=[left, right, *_]):
            yield between(left, right, "or" if isinstance(op, ast.And) else "and")
        case ast.Constant(value=bool() as value):
            yield *span(node), str(not value)
        case ast.Constant(value=int() | float() as value):
            yield *span(node), str(value + 1)
        case ast.UnaryOp(op=ast.Not()):
            yield span(node)[0], span(node)[0] + len("not "), ""
        case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test):
            begin, end = span(test)
            yield begin, end, f"not ({text[begin:end]})"
        case ast.Call(func=ast.Name(id=name) as called) if name in _FUNCTIONS:
            yield *span(called), _FUNCTIONS[name]


def _executed(tree: ast.Module) -> Iterator[ast.AST]:
    """What a program computes with: no annotations, no texts about options, no errors."""
    for child in ast.iter_child_nodes(tree):
        yield from _within(child)


def _within(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.Raise() | ast.Assert() | ast.Import() | ast.ImportFrom() | ast.JoinedStr():
            return
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return
        case ast.AnnAssign(value=value):
            if value is not None:
                yield from _within(value)
            return
        case ast.FunctionDef(body=body) | ast.ClassDef(body=body):
            for statement in body:
                yield from _within(statement)
            return
    yield node
    for child in ast.iter_child_nodes(node):
        yield from _within(child)
