"""What a journal may ask of a figure: how wide it is, in which letters and inks."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated, Any, Final, Literal

from msgspec import Meta


@dataclass(frozen=True)
class Look:
    """The look of a figure."""

    width: Annotated[
        Literal["page", "column"], Meta(description="As wide as a page's text, or as one of two columns.")
    ] = "page"
    font: Annotated[Literal["sans", "serif"], Meta(description="Letters without serifs, or with.")] = "sans"
    ink: Annotated[
        Literal["colour", "grey"],
        Meta(description="Colours that everybody can tell apart, or shades of grey."),
    ] = "colour"

    @classmethod
    def taken_from(cls, options: dict[str, Any]) -> Look:
        """The look that is among the options of a figure, which are taken away."""
        return cls(**{field.name: options.pop(field.name) for field in fields(cls) if field.name in options})

    @property
    def inches(self) -> float:
        """How wide a figure is."""
        return 7.2 if self.width == "page" else 3.5


#: What figures look like unless told otherwise.
PAGE: Final = Look()
