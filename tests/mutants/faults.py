"""The small faults that can be put into a file, in Python or in C++."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
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


def faults_in(root: Path, path: Path) -> list[Fault]:
    """All that can be put into a file."""
    text = (root / path).read_text(encoding="utf-8")
    pieces = _in_python(text) if path.suffix == ".py" else _in_cpp(text)
    found = []
    for begin, end, new in pieces:
        first = text.rfind("\n", 0, begin) + 1
        line = text[first:begin] + new + text[end:].partition("\n")[0]
        found.append(Fault(path, begin, end, new, " ".join(line.split())))
    return found


def _in_cpp(text: str) -> Iterator[tuple[int, int, str]]:
    place = 0
    for line in text.splitlines(keepends=True):
        code = line.partition("//")[0]
        if not code.lstrip().startswith(("*", "/*", "#", "template", "static_assert")) and '"' not in code:
            for pattern, new in _IN_CPP:
                for found in pattern.finditer(code):
                    yield place + found.start(), place + found.end(), new
        place += len(line)


def _in_python(text: str) -> Iterator[tuple[int, int, str]]:
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    lines = text.splitlines(keepends=True)

    def place(line: int, column: int) -> int:
        return starts[line - 1] + len(lines[line - 1].encode()[:column].decode())

    def span(node: ast.expr) -> tuple[int, int]:
        assert node.end_lineno is not None and node.end_col_offset is not None
        return place(node.lineno, node.col_offset), place(node.end_lineno, node.end_col_offset)

    for node in _executed(ast.parse(text)):
        match node:
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                yield span(left)[1], span(right)[0], _between(text, left, right, span, _COMPARISONS[type(op)])
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
                if not (isinstance(left, ast.Constant) and isinstance(left.value, str)):
                    yield (
                        span(left)[1],
                        span(right)[0],
                        _between(text, left, right, span, _OPERATORS[type(op)]),
                    )
            case ast.BoolOp(op=op, values=[left, right, *_]):
                word = "or" if isinstance(op, ast.And) else "and"
                yield span(left)[1], span(right)[0], _between(text, left, right, span, word)
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


def _between(text: str, left: ast.expr, right: ast.expr, span: object, new: str) -> str:
    """The new operator with the brackets and blanks that were around the old one."""
    assert callable(span)
    old = text[span(left)[1] : span(right)[0]]
    closing = old[: len(old) - len(old.lstrip(" )\n"))]
    opening = old[len(old.rstrip(" (\n")) :]
    return f"{closing or ' '}{new}{opening or ' '}"


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
