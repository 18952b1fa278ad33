"""Captions below a chart: instructions for reading it, and points beyond the range of its axis."""

from flows.reports.axes import LEAST, Ends
from flows.reports.plot import DOUBTFUL, Form, Plot
from storage.marks import origin_text


def captions(plot: Plot) -> list[str]:
    """Return the sentences below a chart: instructions for reading it, then its notes.

    Args:
        plot: The chart, with at least one mark.
    """
    said = []
    if not plot.intervals and Form.BRACKET in plot.forms:
        said.append(
            "Bands reach from the lower to the upper end, and lines join the upper ends. Both ends are "
            "proved at the dots; between the dots, bands and lines only guide the eye. They break off "
            "where an end is unknown."
        )
    if Form.LEAST in plot.forms or Form.MOST in plot.forms:
        said.append(
            "A triangle pointing up is a lower bound without an upper bound; a triangle pointing down is "
            "an upper bound without a lower bound."
        )
    if set(DOUBTFUL) & set(plot.forms):
        said.append(
            "Diamonds are not proofs: they come from simulations or data, and hold with a confidence below 1."
        )
    if {Form.DOUBTFUL_LEAST, Form.DOUBTFUL_MOST} & set(plot.forms):
        said.append(
            "Arrows are not proofs either: an arrow pointing up is a lower bound, an arrow pointing down an "
            "upper bound, with a confidence below 1."
        )
    if Form.IMPORTED in plot.forms:
        tables = dict.fromkeys(table for mark in plot.marks for table in mark.bracket.imported)
        said.append(
            f"A triangle pointing right is {origin_text(list(tables))}: an upper end, a lower end without "
            "an upper end, the middle of an interval with a confidence, or an estimate."
        )
    if Form.ESTIMATE in plot.forms:
        said.append("Crosses are estimates under an assumption, without proof.")
    if Form.CONFLICT in plot.forms:
        said.append(
            "Squares are contradictions: the lower bound of one method exceeds the upper bound of another "
            "method, so one of the two is wrong."
        )
    return [*said, *_beyond(plot), *plot.notes]


def _beyond(plot: Plot) -> list[str]:
    """Return sentences about numbers beyond the edges of the axis, which readers must not read off there."""
    ends, said = Ends(plot), []
    places = [(mark, *ends.edges[mark.setting]) for mark in plot.marks]
    if any(mark.shown < floor for mark, floor, _ in places):
        said.append(
            f"Numbers that are 0, or less than {LEAST:g} of the largest number, are drawn at the lower edge "
            "of the logarithmic axis."
        )
    bars = [place for place in places if plot.intervals or place[0].has_bar]
    if any(mark.bracket.lower < floor <= mark.shown <= ceiling for mark, floor, ceiling in bars) or any(
        mark.bracket.upper > ceiling >= mark.shown for mark, _, ceiling in bars
    ):
        said.append("Bars and bands that reach an edge of the chart continue beyond it.")
    if any(mark.shown > ceiling for mark, _, ceiling in places):
        said.append("Infinite numbers are drawn at the upper edge.")
    return said
