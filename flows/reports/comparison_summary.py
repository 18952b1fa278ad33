"""Summaries of the comparisons of labels and of audits: all schemes at one typical setting, in a sentence."""

import math
from collections.abc import Iterator, Mapping, Sequence

from flows.answers.show import certain, sure
from flows.answers.typical import typical_row
from flows.printing import listed, rounded_down, rounded_up
from flows.reports.comparison import Entry, fits, imported_text
from flows.reports.document import Block, Heading, Paragraph, counted
from flows.reports.summary import EPSILON, assumed, tables_of
from privcore import Bracket, Problem
from privcore.parameter import Value
from storage.marks import origin_text, tables_text

REFUTED = "refuted, "
"""Beginning of the names of schemes that are audits."""

_RESPONSE = (
    "Randomized response publishes each label, wrong with probability 1 / (1 + e^epsilon): the smaller the "
    "epsilon, the better the labels are hidden."
)
_LOWER = (
    "A refuted epsilon is a lower bound of the true epsilon, at the confidence of the audit; a small one "
    "does not prove privacy."
)


def summary_of_bags(kind: type[Problem], entries: Sequence[Entry]) -> Iterator[Block]:
    """Yield the summary of bags of labels: the equal epsilon of one bag size, by each measure.

    Args:
        kind: Problem of the bags.
        entries: Equal epsilons at each setting; the schemes are the measures.
    """
    schemes = typical_schemes(kind, entries)
    if not schemes:
        return
    (name, entry), *others = schemes.items()
    yield Heading(text="Summary")
    yield Paragraph(
        text=f"A bag of {counted(int(entry.fields['bag_size']), 'label')} reveals as much as randomized "
        f"response whose epsilon is {ends_text(entry.bracket)}, at prior={entry.fields['prior']}."
        f"{_proved({name: entry}, kind)}",
        lead=True,
    )
    more = [
        f" By the {other}, this epsilon is {ends_text(each.bracket)}{imported_text(each.bracket)}."
        for other, each in others
    ]
    yield Paragraph(text=f"The measure is the {name}.{''.join(more)} {_RESPONSE}")
    yield Paragraph(text=f"The assumption that matters most: {assumed(kind)}")


def summary_of_audits(known: Mapping[str, tuple[type[Problem], Sequence[Entry]]]) -> Iterator[Block]:
    """Yield the summary of audits: one sentence for each kind, with the refuted and the true epsilon.

    Args:
        known: Problem of the audits and epsilons at each setting, by the name of an audit in a sentence; the
            first kind gives the headline.
    """
    found = {name: typical_schemes(kind, entries) for name, (kind, entries) in known.items()}
    said = [_audited(name, known[name][0], schemes) for name, schemes in found.items() if schemes]
    if not said:
        return
    kinds = [known[name][0] for name, schemes in found.items() if schemes]
    yield Heading(text="Summary")
    for number, text in enumerate(said):
        yield Paragraph(text=text, lead=number == 0)
    yield Paragraph(text=f"{EPSILON} {_LOWER}")
    yield Paragraph(text=f"The assumption that matters most: {assumed(kinds[0])}")


def _audited(audit: str, kind: type[Problem], schemes: Mapping[str, Entry]) -> str:
    """Return the sentence about the audits at one setting, and the epsilon without an audit."""
    audits = {name: entry for name, entry in schemes.items() if name.startswith(REFUTED)}
    fields: dict[str, Value] = {}
    for entry in audits.values():
        fields |= {**entry.fields, **entry.more}
    refuted = " and ".join(
        f"{ends_text(entry.bracket)} ({name.removeprefix(REFUTED)})" for name, entry in audits.items()
    )
    others = "".join(
        f"; the {name if name.endswith('epsilon') else f'{name} epsilon'} is {ends_text(entry.bracket)}"
        for name, entry in schemes.items()
        if name not in audits
    )
    said = f"The epsilon that {audit} refutes is {refuted}{others}, at {listed(fields)}."
    return said + _proved(schemes, kind)


def typical_schemes(kind: type[Problem], entries: Sequence[Entry]) -> Mapping[str, Entry]:
    """Return the entries of a typical setting, by scheme; settings with fewer schemes are not typical.

    Args:
        kind: The problem; fields that the settings lack do not matter.
        entries: Entries of all settings. Those without any bound are left out.
    """
    schemes: dict[tuple[Value, ...], dict[str, Entry]] = {}
    for entry in entries:
        if entry.bracket.lower > 0.0 or entry.bracket.upper < math.inf:
            of_setting = schemes.setdefault(entry.setting, {})
            if fits(entry, of_setting):
                of_setting[entry.scheme] = entry
    most = max(map(len, schemes.values()), default=0)
    first = [next(iter(each.values())) for each in schemes.values() if len(each) == most]
    if not first:
        return {}
    columns = {name: [entry.fields.get(name, "") for entry in first] for name in kind.parameters}
    ends = {end: [getattr(entry.bracket, end) for entry in first] for end in ("lower", "upper")}
    return schemes[first[typical_row(kind, columns | ends)].setting]


def ends_text(bracket: Bracket) -> str:
    """Return the ends of a bracket, rounded outwards, with a confidence below 1.

    Example:
        >>> ends_text(Bracket(lower=1.0, confidence=0.95)), ends_text(Bracket(lower=0.5, upper=1.0))
        ('at least 1 with confidence 0.95', 'in [0.5, 1]')
    """
    if bracket.upper == math.inf:
        said = f"at least {rounded_down(bracket.lower)}"
    elif bracket.lower == 0.0:
        said = f"at most {rounded_up(bracket.upper)}"
    else:
        said = f"in [{rounded_down(bracket.lower)}, {rounded_up(bracket.upper)}]"
    return said if bracket.confidence == 1.0 else f"{said} with confidence {sure(bracket.confidence)}"


def _proved(schemes: Mapping[str, Entry], kind: type[Problem]) -> str:
    """Return a further sentence if all ends are proved, or some of them imported."""
    imported = tables_of(schemes.values())
    if any(each.bracket.confidence < 1.0 for each in schemes.values()):
        return f" Some of it is {origin_text(imported)}." if imported else ""
    assuming = any(kind.assumed_by(each.fields) for each in schemes.values())
    return f" This is {certain(assuming=assuming, imported=imported)}{tables_text(imported)}."
