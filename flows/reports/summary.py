"""Summaries: the headline number of a report, its meaning, and all schemes at one typical setting."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence

from flows.answers.catalogue import meaning_of, typical_row
from flows.answers.explain import NEIGHBOUR_FIELDS
from flows.answers.show import bracket_text, certain, certainty, sure
from flows.answers.sweep_table import Line
from flows.answers.training.compare_output import brief
from flows.printing import counted, exactly, listed, rounded_down, rounded_up
from flows.reports.comparison import Entry, fits, tables_in
from flows.reports.document import Block, Heading, Headline, Paragraph, TextTable
from privcore import Bracket, Problem
from privcore.answer import tables_of
from privcore.parameter import Value
from storage.schema import origin_text, tables_text

EPSILON = (
    "Epsilon bounds how much one example can change the published results: with the example and without it, "
    "the probabilities of every set of results differ by a factor of at most e^epsilon, apart from delta."
)
MEANS: Mapping[tuple[str, str], str] = {
    ("allocation", "epsilon"): EPSILON,
    ("training", "epsilon"): EPSILON,
    ("labels", "advantage"): "The advantage is how much more often a private label is guessed right with the "
    "published results than without them: 0 is not at all.",
    ("membership", "advantage"): "The advantage is the largest difference between the true and the false "
    "positive rate of a membership test: 0 is guessing, 1 is certainty.",
}
"""Meaning of a quantity in one sentence, by topic; other quantities have the sentence of their problem."""

_SAMPLED = (
    "the training code chooses the examples of each step as the problem says, with a secret seed. Many data "
    "loaders shuffle instead, and have another epsilon."
)
ASSUMED: Mapping[str, str] = {
    "allocation": _SAMPLED,
    "training": _SAMPLED,
    "labels": "the prior describes the data, and labels are independent given the features.",
    "auditing": "the canaries are chosen by independent fair coins, and the number of guesses and the "
    "confidence are fixed before the result is read.",
    "membership": "the records are independent draws from one distribution.",
}
"""Assumption that matters most, by topic."""
UNSAMPLED = (
    "gradients are clipped to a fixed norm, and sigma is the standard deviation of the noise divided by it."
)
"""The same without sampling."""
PRIVATE = "the learner satisfies the claimed epsilon and delta."
"""The same for membership in the data of a differentially private learner."""

ADDED = ("add-remove", "zero-out")
"""Neighbouring relations about the use of one example."""


def summary(lines: Sequence[Line]) -> Iterator[Block]:
    """Yield the summary of a sweep; nothing if no bracket is proved.

    Args:
        lines: All problems of the sweep with their proved brackets.
    """
    proved = [line for line in lines if line.stored and not line.bracket.crossed]
    kinds = dict.fromkeys(type(line.problem) for line in proved)
    known = {kind: [line for line in proved if type(line.problem) is kind] for kind in kinds}
    typical = {kind: some[_typical(kind, some)] for kind, some in known.items()}
    if not typical:
        return
    first, line = next(iter(typical.items()))
    yield Heading(text="Summary")
    ends = brief(line.bracket.lower, line.bracket.upper)
    numbers = [(ends, f"{first.name} at {_varied(line.problem, ())}{origin_text(line.bracket.tables, ', ')}")]
    numbers += [(f"{share} %", "right guesses of an attacker, at most")] if (share := guessed(line)) else []
    what = "bounds" if any(one.bracket.tables for one in proved) else "proved bounds"
    yield Headline(numbers=[*numbers, (str(len(proved)), f"problems with {what}")])
    yield Paragraph(text=_headline(line), lead=True)
    said = [MEANS.get((first.topic, first.asks)) or meaning_of(first), coin(line)]
    yield Paragraph(text=" ".join(filter(None, said)))
    if sentence := assumed(first):
        yield Paragraph(text=f"The assumption that matters most: {sentence}")
    yield _table(known, typical)


def assumed(kind: type[Problem]) -> str:
    """Return the assumption that matters most for a kind of problem; "" for the utility of a mechanism."""
    if kind.asks == "error":
        return ""
    if kind.topic == "membership" and "claimed_epsilon" in kind.parameters:
        return PRIVATE
    return UNSAMPLED if kind.name.startswith("unamplified-") else ASSUMED.get(kind.topic, "")


def summary_of_schemes(kind: type[Problem], entries: Sequence[Entry]) -> Iterator[Block]:
    """Yield the summary of a comparison: all schemes at one typical setting.

    Args:
        kind: Problem with the fields of the settings.
        entries: Brackets of schemes at equal settings, at least one.
    """
    schemes: dict[tuple[Value, ...], dict[str, Entry]] = {}
    for entry in entries:
        schemes.setdefault(entry.setting, {})[entry.scheme] = entry
    most = max(map(len, schemes.values()))
    first = [next(iter(each.values())) for each in schemes.values() if len(each) == most]
    columns = {name: [entry.fields[name] for entry in first] for name in kind.parameters}
    ends = {end: [getattr(entry.bracket, end) for entry in first] for end in ("lower", "upper")}
    chosen = first[typical_row(kind, columns | ends)]
    said = [
        f"in [{rounded_down(entry.bracket.lower)}, {rounded_up(entry.bracket.upper)}] with {scheme}"
        for scheme, entry in schemes[chosen.setting].items()
    ]
    asks = kind.asks.capitalize()
    problem = kind.from_fields(chosen.fields)
    yield Heading(text="Summary")
    yield _numbers(schemes[chosen.setting])
    text = f"{asks} is {', '.join(said)}, at {_varied(problem, ())}."  # each scheme has its relation
    tables = tables_in(schemes[chosen.setting].values())
    text += f" This is {certainty(problem, 1.0, tables)}{tables_text(tables)}."
    yield Paragraph(text=text, lead=True)
    yield Paragraph(text=MEANS.get((kind.topic, kind.asks)) or meaning_of(kind))
    yield Paragraph(text=f"The assumption that matters most: {assumed(kind)}")


def _typical(kind: type[Problem], lines: Sequence[Line]) -> int:
    """Return the number of the line with both ends, short values, and values near the middle."""
    fields = [line.problem.as_fields() for line in lines]
    columns = {name: [each[name] for each in fields] for name in kind.parameters}
    ends = {end: [getattr(line.bracket, end) for line in lines] for end in ("lower", "upper")}
    return typical_row(kind, columns | ends)


def _headline(line: Line) -> str:
    text = bracket_text(line.problem, line.bracket).replace(" in ", " is in ", 1)
    text = f"{text[:1].upper()}{text[1:]} for {line.problem.name} at {_varied(line.problem)}."
    certain = certainty(line.problem, line.bracket.confidence, line.bracket.tables)
    return f"{text} This is {certain}{tables_text(line.bracket.tables)}."


def _varied(problem: Problem, also: Collection[str] = NEIGHBOUR_FIELDS) -> str:
    """Return the fields of a problem without safe defaults, except some that are always named."""
    needed = {*also, *problem.stated}
    usual = {name: value for name, value in problem.defaults().items() if name not in needed}
    return listed({name: value for name, value in problem.as_fields().items() if usual.get(name) != value})


def _numbers(schemes: Mapping[str, Entry]) -> Headline:
    """Return the numbers of at most three schemes: the first ones, and the last one."""
    chosen = [*schemes.items()]
    chosen = chosen if len(chosen) <= 3 else [*chosen[:2], chosen[-1]]
    return Headline(
        numbers=[
            (brief(one.bracket.lower, one.bracket.upper), f"{name}{origin_text(one.bracket.tables, ', ')}")
            for name, one in chosen
        ]
    )


def coin(line: Line) -> str:
    """Return a sentence about an attacker who guesses whether an example was used, or ""."""
    share = guessed(line)
    return share and (
        f"At this epsilon, an attacker with all results who guesses whether one example was used, with even "
        f"odds, is right with a probability of at most {share} %."
    )


def guessed(line: Line) -> str:
    """Return the share of right guesses whether one example was used, in per cent; "" if it does not apply.

    The probability is at most (e^epsilon + delta) / (e^epsilon + 1), rounded up: the true positive rate is at
    most e^epsilon times the false positive rate, plus delta; the same holds for the rates of right and wrong
    guesses without the example; and the probability is half of the sum of both left sides.
    """
    fields, upper = line.problem.as_fields(), line.bracket.upper
    if line.problem.asks != "epsilon" or fields.get("adjacency") not in ADDED or "delta" not in fields:
        return ""
    right = 1.0 - (1.0 - float(fields["delta"])) / (1.0 + math.exp(min(upper, 700.0)))
    share = math.ceil(1000.0 * right * (1.0 + 1e-12)) / 10.0  # 1e-12 exceeds the rounding errors by far
    return "" if share >= 100.0 else str(exactly(share))


def _table(known: Mapping[type[Problem], Sequence[Line]], typical: Mapping[type[Problem], Line]) -> TextTable:
    rows = []
    for kind, lines in known.items():
        upper = [line.bracket.upper for line in lines]
        tables = tables_of(*(line.bracket for line in lines))
        line = typical[kind]
        ends = (
            [rounded_up(upper[0])] if len(upper) == 1 else [rounded_down(min(upper)), rounded_up(max(upper))]
        )
        rows.append(
            [
                kind.name,
                str(len(lines)),
                _varied(line.problem),
                bracket_text(line.problem, line.bracket) + origin_text(line.bracket.tables, " (", ")"),
                " to ".join(ends) + origin_text(tables, " (", ")"),
            ]
        )
    names = ["problem", "settings", "a typical setting", "bracket there", "upper ends at all settings"]
    return TextTable(title="Each problem at a typical setting", names=names, rows=rows, fold=len(rows) > 6)


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
    yield _numbers(schemes)
    yield Paragraph(
        text=f"A bag of {counted(int(entry.fields['bag_size']), 'label')} reveals as much as randomized "
        f"response whose epsilon is {ends_text(entry.bracket)}, at prior={entry.fields['prior']}."
        f"{_proved({name: entry}, kind)}",
        lead=True,
    )
    more = [
        f" By the {other}, this epsilon is {ends_text(each.bracket)}{origin_text(each.bracket.tables, ', ')}."
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
    yield _numbers(next(filter(None, found.values())))
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
    """Return a further sentence if all ends are proved, or some of them from published tables."""
    tables = tables_in(schemes.values())
    if any(each.bracket.confidence < 1.0 for each in schemes.values()):
        return origin_text(tables, " Some of it is ", ".")
    assuming = any(kind.assumed_by(each.fields) for each in schemes.values())
    return f" This is {certain(assuming=assuming, tables=tables)}{tables_text(tables)}."
