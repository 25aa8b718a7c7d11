"""XML of which each element knows its line."""

from __future__ import annotations

from xml.etree import ElementTree
from xml.parsers import expat


class Element(ElementTree.Element):
    """An XML element."""

    line = 0


def parse_xml(text: bytes, lines_before: int = 0) -> Element:
    """The root of an XML document, in front of which so many lines were left out; nothing else is fetched."""
    parser = expat.ParserCreate()
    builder = ElementTree.TreeBuilder(element_factory=Element)

    def start(tag: str, attributes: dict[str, str]) -> None:
        element = builder.start(tag, attributes)
        assert isinstance(element, Element)
        element.line = parser.CurrentLineNumber + lines_before

    parser.StartElementHandler = start
    parser.EndElementHandler = builder.end
    parser.Parse(text, True)
    root = builder.close()
    assert isinstance(root, Element)
    return root
