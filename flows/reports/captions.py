"""Captions below a chart: instructions for reading it, and the points that its axis cannot show."""

from flows.reports.axes import LEAST, Ends
from flows.reports.plot import DOUBTFUL, Form, Plot

_BARS = (Form.BRACKET, Form.DOUBTFUL, Form.CONFLICT)
"""What is drawn from one end to the other one."""


def captions(plot: Plot) -> list[str]:
    """Return sentences: how to read a chart, then its notes.

    Args:
        plot: The chart; it has marks.
    """
    said = []
    if not plot.intervals and Form.BRACKET in plot.forms:
        said.append(
            "Bands reach from the lower to the upper end, and lines join upper ends; both are proved at "
            "the dots, between which they guide the eye, and break off where an end is not known."
        )
    if Form.LEAST in plot.forms or Form.MOST in plot.forms:
        said.append(
            "A triangle that points up is a lower bound alone, one that points down an upper bound alone."
        )
    if set(DOUBTFUL) & set(plot.forms):
        said.append("Diamonds are no proofs: simulated or from data, they hold with a confidence below 1.")
    if {Form.DOUBTFUL_LEAST, Form.DOUBTFUL_MOST} & set(plot.forms):
        said.append("Arrows are no proofs either: bounds on the side alone that they point to.")
    if Form.ESTIMATE in plot.forms:
        said.append("Crosses are estimates that rest on an assumption, without any proof.")
    if Form.CONFLICT in plot.forms:
        said.append(
            "Squares are contradictions: one method proved more than another one allows, so that one of "
            "them is wrong."
        )
    return [*said, *_beyond(plot), *plot.notes]


def _beyond(plot: Plot) -> list[str]:
    """Return sentences about what lies beyond the edges of the axis, so that nobody reads it off there."""
    ends, said = Ends(plot), []
    places = [(mark, *ends.edges[mark.setting]) for mark in plot.marks]
    if any(mark.shown < floor for mark, floor, _ in places):
        said.append(
            f"What is 0, or less than {LEAST:g} of the largest number, is drawn at the lower edge of the "
            "logarithmic axis."
        )
    bars = [place for place in places if plot.intervals or place[0].form in _BARS]
    if any(mark.bracket.lower < floor <= mark.shown <= ceiling for mark, floor, ceiling in bars) or any(
        mark.bracket.upper > ceiling >= mark.shown for mark, _, ceiling in bars
    ):
        said.append("What reaches from a mark to an edge goes on beyond it.")
    if any(mark.shown > ceiling for mark, _, ceiling in places):
        said.append("What is infinite is drawn at the upper edge.")
    return said
