"""Parts of a report in any format: headings, paragraphs, tables and charts, in order."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from flows.reports.plot import Plot

MOST_ROWS = 1000
"""Most rows of a table that are written; `lookup` and `sql` print all rows."""
WORDS = 40
"""Letters of a few words."""
LONG = 24
"""Least number of rows of a folded table."""


@dataclass(frozen=True, kw_only=True)
class Heading:
    """A heading; level 1 is the title of the report."""

    text: str
    level: int = 2


@dataclass(frozen=True, kw_only=True)
class Headline:
    """The numbers at the top of a report, at most three.

    Attributes:
        numbers: Each with its words.
    """

    numbers: Sequence[tuple[str, str]]


@dataclass(frozen=True, kw_only=True)
class Paragraph:
    """A paragraph; text between backticks is code.

    Attributes:
        text: Its text.
        lead: Whether it is the most important sentence of the report.
    """

    text: str
    lead: bool = False


@dataclass(frozen=True, kw_only=True)
class TextTable:
    """A table of strings; long tables are folded, and very long tables are cut.

    Attributes:
        title: Description of the rows.
        names: Names of the columns.
        rows: One string for each column.
        fold: Whether the table is folded even if it is short.
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
        """Sentence about the rows that are not written, or ""."""
        more = len(self.rows) - len(self.shown)
        return f"... and {more} more rows: `privsweep lookup` and `privsweep sql` print them." if more else ""

    @property
    def folded(self) -> bool:
        """Whether the table is folded, by its length or by `fold`."""
        return self.fold or len(self.rows) >= LONG

    @property
    def numeric(self) -> list[bool]:
        """Whether each column has only numbers, and is aligned to the right."""
        return [
            bool(self.rows) and all(_is_number(row[k]) for row in self.shown) for k in range(len(self.names))
        ]

    @property
    def long(self) -> list[bool]:
        """Whether each column has a text of more than a few words."""
        return [any(len(row[k]) > WORDS for row in self.shown) for k in range(len(self.names))]


Block = Heading | Headline | Paragraph | TextTable | Plot


@dataclass(frozen=True, kw_only=True)
class Document:
    """A report.

    Attributes:
        name: Name of its files, without suffix.
        blocks: Blocks from the top; the first is the heading of level 1.
        incomplete: Sentences about missing or failed points, which the command also prints at its end.
        source: One line about the origin of the numbers, for each figure.
    """

    name: str
    blocks: Sequence[Block]
    incomplete: Sequence[str] = field(default=())
    source: str = ""

    @property
    def title(self) -> str:
        """Text of the first heading."""
        return next(block.text for block in self.blocks if isinstance(block, Heading))

    @property
    def arranged(self) -> Iterator[Block]:
        """The blocks as readers meet them: after the title, the numbers and the first chart."""
        title, *rest = self.blocks
        kinds = (Headline, Plot)
        above = [next((each for each in rest if isinstance(each, kind)), None) for kind in kinds]
        yield title
        yield from filter(None, above)
        yield from (each for each in rest if not any(each is one for one in above))

    @property
    def plots(self) -> Iterator[Plot]:
        """The charts, from the top."""
        return (block for block in self.blocks if isinstance(block, Plot))


def _is_number(cell: str) -> bool:
    try:
        float(cell.removesuffix("%").removeprefix("<"))
    except ValueError:
        return not cell
    return True
