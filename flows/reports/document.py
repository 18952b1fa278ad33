"""Parts of a report in any format: headings, sentences, tables and charts, in order."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from flows.reports.plot import Plot

MOST_ROWS = 1000
"""Rows of a table that are written; scripts and SQL have all of them."""
LONG = 24
"""Rows from which on a table is folded."""


@dataclass(frozen=True, kw_only=True)
class Heading:
    """A heading; level 1 is the title of the report."""

    text: str
    level: int = 2


@dataclass(frozen=True, kw_only=True)
class Paragraph:
    """A paragraph; what stands between backticks is something to type."""

    text: str


@dataclass(frozen=True, kw_only=True)
class TextTable:
    """A table of texts, of which long ones are folded and very long ones cut.

    Attributes:
        title: What its rows are.
        names: Of its columns.
        rows: As many texts each.
        fold: Whether it is folded though it is not long.
    """

    title: str
    names: Sequence[str]
    rows: Sequence[Sequence[str]]
    fold: bool = False

    @property
    def shown(self) -> Sequence[Sequence[str]]:
        """The rows that are written."""
        return self.rows[:MOST_ROWS]

    @property
    def left_out(self) -> str:
        """What is said of the rows that are not written, or nothing."""
        more = len(self.rows) - len(self.shown)
        return f"... and {more} more rows: `privsweep lookup` and `privsweep sql` print them." if more else ""

    @property
    def folded(self) -> bool:
        """Whether it is too long to be read through, or said to be."""
        return self.fold or len(self.rows) >= LONG

    @property
    def numeric(self) -> list[bool]:
        """Which columns hold numbers alone, and go to the right."""
        return [
            bool(self.rows) and all(_is_number(row[k]) for row in self.shown) for k in range(len(self.names))
        ]


Block = Heading | Paragraph | TextTable | Plot


@dataclass(frozen=True, kw_only=True)
class Document:
    """A report.

    Attributes:
        name: Of its files.
        blocks: From the top; the first is the heading of level 1.
        incomplete: Sentences about what is missing or failed: the end of the command says them again.
        source: Where its numbers come from, in a line for each of its figures.
    """

    name: str
    blocks: Sequence[Block]
    incomplete: Sequence[str] = field(default=())
    source: str = ""

    @property
    def title(self) -> str:
        """The text of its first heading."""
        return next(block.text for block in self.blocks if isinstance(block, Heading))

    @property
    def plots(self) -> Iterator[Plot]:
        """Its charts, from the top."""
        return (block for block in self.blocks if isinstance(block, Plot))


def counted(number: int, word: str) -> str:
    """Return a number of things in words.

    Example:
        >>> counted(1, "point"), counted(2, "point")
        ('1 point', '2 points')
    """
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def _is_number(cell: str) -> bool:
    try:
        float(cell.removesuffix("%").removeprefix("<"))
    except ValueError:
        return not cell
    return True
