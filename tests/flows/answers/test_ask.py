"""Asking all methods: proofs are intersected, contradictions are reported, limits are kept."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flows.answers.ask import Asked, Reply, ask, combined, is_tight
from flows.answers.show import bracket_text
from privcore import METHODS, Answer, Method, PrivsweepError, Status, find, find_problem
from tests.flows.small_store import Command

QUESTION = find_problem("unamplified-epsilon").from_fields({"sigma": 1, "delta": 1e-5})
EXACT = find("unamplified.exact")()


def replies(*answers: Answer) -> Asked:
    """Combine answers as if methods of the registry had given them, in its order."""
    methods: list[Method] = [method() for method in METHODS]
    given = zip(methods, answers, strict=False)
    return combined(QUESTION, [Reply(method=method, answer=answer, seconds=0.0) for method, answer in given])


def test_a_question_is_answered_with_the_method_and_the_seconds() -> None:
    asked = ask(QUESTION)
    assert asked.ok
    assert asked.lower <= 4.37717809568 <= asked.upper
    assert (asked.lower_by, asked.upper_by) == ("unamplified.exact", "unamplified.exact")
    assert [reply.seconds >= 0.0 for reply in asked.replies] == [True]


def test_the_json_content_has_exactly_the_documented_keys() -> None:
    content = ask(QUESTION).as_content()
    assert list(content) == ["problem", "fields", "lower", "upper", "confidence", "status", "methods"]
    keys = ["name", "lower", "upper", "confidence", "status", "detail", "seconds"]
    assert [list(method) for method in content["methods"]] == [keys]
    assert content["fields"] == QUESTION.as_fields()


def test_the_best_bracket_is_the_intersection_of_the_proofs() -> None:
    asked = replies(Answer.enclosure(1.0, 3.0), Answer.enclosure(2.0, 4.0), Answer.at_least(0.5))
    assert (asked.lower, asked.upper, asked.confidence) == (2.0, 3.0, 1.0)
    assert (asked.lower_by, asked.upper_by) == (METHODS[1].name, METHODS[0].name)


@given(st.lists(st.tuples(st.floats(0, 5), st.floats(5, 10)), min_size=1, max_size=len(METHODS)))
def test_proofs_of_one_truth_always_give_a_bracket_around_it(ends: list[tuple[float, float]]) -> None:
    asked = replies(*(Answer.enclosure(lower, upper) for lower, upper in ends))
    assert asked.ok
    assert asked.lower <= 5.0 <= asked.upper


def test_disjoint_proofs_are_a_conflict_that_names_both_and_claims_nothing() -> None:
    asked = replies(Answer.enclosure(1.0, 2.0), Answer.enclosure(3.0, 4.0))
    assert (asked.status, asked.lower, asked.upper) == ("conflict", 0.0, math.inf)
    assert METHODS[0].name in asked.detail
    assert METHODS[1].name in asked.detail
    assert asked.as_content()["detail"] == asked.detail


def test_an_estimate_alone_leaves_the_bracket_trivial() -> None:
    asked = replies(Answer.about(2.0, detail="simulated"))
    assert (asked.status, asked.lower, asked.upper, asked.confidence) == ("ok", 0.0, math.inf, 1.0)
    assert asked.as_content()["methods"][0]["value"] == 2.0


def test_an_estimate_does_not_weaken_a_proof() -> None:
    asked = replies(Answer.about(9.0, detail="simulated"), Answer.enclosure(1.0, 2.0))
    assert (asked.lower, asked.upper) == (1.0, 2.0)


def test_intervals_with_a_confidence_count_only_where_nothing_is_proved() -> None:
    likely = Answer.enclosure(1.5, 1.6, confidence=0.95)
    asked = replies(likely, Answer.enclosure(1.0, 2.0))
    assert (asked.lower, asked.upper, asked.confidence) == (1.0, 2.0, 1.0)
    alone = replies(likely)
    assert (alone.lower, alone.upper, alone.confidence) == (1.5, 1.6, 0.95)


def test_the_tightest_interval_stands_beside_the_certain_bracket() -> None:
    asked = replies(
        Answer.enclosure(1.5, 1.6, confidence=0.95),
        Answer.enclosure(1.0, 2.0),
        Answer.at_least(1.55, confidence=0.99),
    )
    likely = asked.likely()
    assert likely is not None
    assert (likely.lower, likely.upper) == (1.55, 1.6)
    assert likely.confidence == pytest.approx(0.94)
    assert asked.as_content()["likely"]["upper"] == 1.6
    assert replies(Answer.enclosure(0.5, 2.5, confidence=0.95), Answer.enclosure(1.0, 2.0)).likely() is None
    assert replies(Answer.enclosure(3.0, 4.0, confidence=0.95), Answer.enclosure(1.0, 2.0)).likely() is None


def test_the_headline_has_both_brackets(privsweep: Command) -> None:
    words = ["label-advantage", "mechanism=llp", "prior=beta(2,30)", "bag_size=40"]
    methods = ["--method", "labels.sampling", "--method", "labels.variation"]
    assert privsweep("ask", *words, *methods) == 0
    lines = privsweep.out.splitlines()
    assert lines[1].startswith("advantage in [0, ")
    assert lines[2].startswith("advantage in [")
    assert lines[2].endswith("with confidence 0.999")


def test_several_confidences_are_joined_by_the_union_bound() -> None:
    asked = replies(Answer.at_least(1.0, confidence=0.95), Answer.enclosure(0.5, 2.0, confidence=0.99))
    assert (asked.lower, asked.upper) == (1.0, 2.0)
    assert asked.confidence == pytest.approx(0.94)
    assert asked.confidence <= 0.94 + 1e-15


def test_an_audit_that_covers_the_others_needs_no_union_bound() -> None:
    problem = find_problem("audit-epsilon").from_fields(
        {"canaries": 1000, "guesses": 100, "correct": 90, "delta": 1e-5}
    )
    asked = ask(problem)
    by_method = {reply.method.name: reply.answer for reply in asked.replies}
    assert asked.confidence == 0.95
    assert asked.lower == by_method["auditing.tightest"].lower
    assert asked.lower == max(answer.lower for answer in by_method.values())


def test_a_confidence_is_printed_as_it_was_asked_for() -> None:
    asked = replies(Answer.at_least(1.0, confidence=0.95))
    assert asked.confidence == 0.95
    assert bracket_text(QUESTION, asked) == "epsilon in [1, inf] with confidence 0.95"


def test_no_truth_exceeds_the_largest_of_its_problem() -> None:
    problem = find_problem("unamplified-delta").from_fields({"sigma": 1, "epsilon": 1})
    asked = combined(problem, [Reply(method=EXACT, answer=Answer.at_least(0.1), seconds=0.0)])
    assert (asked.lower, asked.upper) == (0.1, 1.0)


def test_without_an_answer_the_worst_status_and_its_reason_stand_for_all() -> None:
    asked = replies(
        Answer.without(Status.NOT_APPLICABLE, "Not here."), Answer.without(Status.FAILED, "It broke.")
    )
    assert (asked.status, asked.detail) == ("failed", "It broke.")
    assert (asked.lower, asked.upper) == (0.0, math.inf)


def test_one_failure_beside_an_answer_is_listed_and_does_no_harm() -> None:
    asked = replies(Answer.without(Status.FAILED, "It broke."), Answer.enclosure(1.0, 2.0))
    assert asked.ok
    assert asked.as_content()["methods"][0]["status"] == "failed"


@pytest.mark.parametrize(("seconds", "size", "status"), [(1e-9, 1e9, "timeout"), (1.0, 1.0, "out_of_memory")])
def test_a_method_above_a_limit_is_not_started(seconds: float, size: float, status: str) -> None:
    asked = ask(QUESTION, limit_seconds=seconds, limit_bytes=size)
    assert asked.status == status
    assert asked.detail.startswith("Not started: unamplified.exact may need")


def test_a_method_of_another_kind_of_problem_is_misuse() -> None:
    other = find_problem("unamplified-delta").from_fields({"sigma": 1, "epsilon": 1})
    foreign = next(method for method in METHODS if type(other) not in method.problems)
    with pytest.raises(PrivsweepError, match="does not answer"):
        ask(other, [foreign()])


def test_what_is_asked_until_enough_is_known_stops_there() -> None:
    looser = find("unamplified.exact")()
    asked = ask(QUESTION, [EXACT, looser], until=lambda asked: is_tight(asked, 0.01))
    assert len(asked.replies) == 1


@pytest.mark.parametrize(
    ("lower", "upper", "tight"),
    [(0.991, 1.0, True), (0.98, 1.0, False), (0.0, 0.0, True), (1.0, math.inf, False), (0.0, 1e-9, False)],
)
def test_tight_means_within_a_relative_width(lower: float, upper: float, tight: bool) -> None:
    assert is_tight(Answer(lower=lower, upper=upper), 0.01) is tight


@pytest.mark.parametrize(
    ("fields", "inside"),
    [
        ({"sigma": 1, "steps": 10_000, "delta": 1e-8}, (0.0602, 0.0606)),
        ({"sigma": 1, "steps": 100, "delta": 1e-5}, (0.6207, 0.6215)),
    ],
)
def test_random_allocation_is_enclosed(fields: dict[str, float], inside: tuple[float, float]) -> None:
    asked = ask(find_problem("allocation-epsilon").from_fields(fields))
    assert asked.ok
    assert asked.lower <= inside[1]
    assert asked.upper >= inside[0]
    assert is_tight(asked, 0.0101)
