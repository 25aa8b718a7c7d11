"""XML of which each element knows its line."""

from __future__ import annotations

from xml.etree import ElementTree
from xml.parsers import expat


class _Element(ElementTree.Element):
    line = 0


def line_of(element: ElementTree.Element) -> int:
    """The line in which an element begins."""
    assert isinstance(element, _Element)
    return element.line


def parse_xml(text: bytes, lines_before: int = 0) -> ElementTree.Element:
    """The root of an XML document, in front of which so many lines were left out; nothing else is fetched."""
    parser = expat.ParserCreate()
    builder = ElementTree.TreeBuilder(element_factory=_Element)

    def start(tag: str, attributes: dict[str, str]) -> None:
        element = builder.start(tag, attributes)
        assert isinstance(element, _Element)
        element.line = parser.CurrentLineNumber + lines_before

    parser.StartElementHandler = start
    parser.EndElementHandler = builder.end
    parser.Parse(text, True)
    return builder.close()
