"""Problems as text: the accepted texts, and one sentence for each rejected text."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flows.answers.question import answer_lines, question, typed
from flows.printing import as_json, exactly
from flows.spec.words import fields_from, number
from privcore import PrivsweepError


def answers(*lines: str | dict[str, Any]) -> list[dict[str, Any]]:
    return list(
        answer_lines((line if isinstance(line, str) else json.dumps(line)).encode() for line in lines)
    )


GOOD = {"problem": "unamplified-epsilon", "sigma": 1, "delta": 1e-5}


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_what_is_printed_for_a_parameter_is_read_back_the_same(x: float) -> None:
    assert number(exactly(x)) == x


@pytest.mark.parametrize("text", ["1e-400", "-1e-999", "1e999", "0.0001e-330"])
def test_a_number_that_no_double_is_near_is_refused(text: str) -> None:
    with pytest.raises(PrivsweepError, match=f"^Expected a number that a double can hold, got {text}.$"):
        number(text)


def test_what_spells_no_number_is_left_as_it_is() -> None:
    words = ["1_0", "１", " 1", "1 ", "0x10", "1e", ".", "e5", "in", "1,5", ""]
    assert [number(word) for word in words] == words
    assert [number(word) for word in ("0e-999", ".5", "5.", "+1.5E3", "-inf")] == [0, 0.5, 5, 1500, -math.inf]


def test_words_become_fields() -> None:
    words = ["sigma=1", "steps=1e4", "delta=1e-8", "adjacency=add"]
    assert fields_from(words) == {"sigma": 1, "steps": 1e4, "delta": 1e-8, "adjacency": "add"}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["sigma"], "Expected field=value, got 'sigma'."),
        (["=1"], "Expected field=value, got '=1'."),
        (["sigma=1", "sigma=2"], "Expected each field once, got sigma twice."),
    ],
)
def test_words_that_are_no_fields_are_refused(words: list[str], sentence: str) -> None:
    with pytest.raises(PrivsweepError, match="^" + sentence + "$"):
        fields_from(words)


def test_lines_are_answered_in_order_and_empty_ones_skipped() -> None:
    found = answers(GOOD | {"sigma": 1}, "", "  \n", GOOD | {"sigma": 2}, GOOD | {"sigma": 1.0, "steps": 1e4})
    assert [content["fields"]["sigma"] for content in found] == [1.0, 2.0, 1.0]
    assert found[2]["fields"]["steps"] == 10_000
    assert type(found[2]["fields"]["steps"]) is int
    assert [content["status"] for content in found] == ["ok"] * 3


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("{", "Expected one JSON object per line: "),
        ("[1]", "Expected one JSON object per line, got list."),
        ("\x00", "Expected one JSON object per line: "),
        ("[" * 100_000, "Expected one JSON object per line: "),
        ('{"sigma": 1}', "Expected the name of a problem under the key problem."),
        ('{"problem": 7}', "Expected the name of a problem under the key problem."),
        ({"problem": "unamplified-epsilom", "sigma": 1}, "Did you mean unamplified-epsilon?"),
        (GOOD | {"sgma": 1}, "Did you mean sigma?"),
        ({"problem": "unamplified-epsilon", "sigma": 1}, "Expected delta for unamplified-epsilon."),
        (GOOD | {"sigma": True}, "got sigma=True."),
        (GOOD | {"sigma": "1"}, "got sigma='1'."),
        (GOOD | {"sigma": None}, "got sigma=None."),
        (GOOD | {"sigma": [1]}, "got sigma=[1]."),
        (GOOD | {"sigma": math.nan}, "got sigma=nan."),
        (GOOD | {"sigma": math.inf}, "got sigma=inf."),
        (GOOD | {"sigma": -1}, "Expected sigma in "),
        (GOOD | {"steps": 1.5}, "Expected steps in "),
        (GOOD | {"delta": 0}, "Expected delta in (0, 1), got delta=0."),
        (
            '{"problem": "unamplified-epsilon", "sigma": 1, "sigma": 2}',
            "Expected each field once, got sigma twice.",
        ),
        (
            '{"problem": "unamplified-epsilon", "delta": 1' + "0" * 5000 + "}",
            "Expected one JSON object per line: ",
        ),
    ],
)
def test_a_line_that_is_no_question_says_why_and_the_rest_goes_on(line: Any, part: str) -> None:
    bad, good = answers(line, GOOD)
    assert bad["status"] == "misuse"
    assert part in bad["detail"]
    assert bad["methods"] == []
    assert good["status"] == "ok"
    keys = ["problem", "fields", "lower", "upper", "confidence", "status", "methods"]
    assert list(bad) == [*keys, "detail"]
    assert json.loads(as_json(bad), parse_constant=pytest.fail)["upper"] == "inf"


def test_bytes_that_are_no_text_are_a_bad_line() -> None:
    (bad,) = answer_lines([b"\xff\xfe"])
    assert bad["status"] == "misuse"


@given(st.binary(max_size=60))
def test_no_line_whatever_breaks_the_answering(line: bytes) -> None:
    for content in answer_lines([line]):
        assert content["status"] == "misuse"
        as_json(content)


# ---------------------------------------------------------------------- training runs


def run_of(sampling: str, options: dict[str, str], **sizes: str) -> tuple[str, dict[str, Any], list[str]]:
    kind, fields, notes = question(typed({"sampling": sampling, **options, **sizes}))
    return kind.name, fields, notes


def test_options_become_fields_of_the_problem_for_the_sampling() -> None:
    options = {"sigma": "1", "steps": "1e4", "delta": "1e-8"}
    assert run_of("allocation", options) == (
        "allocation-epsilon",
        {"sigma": 1, "steps": 1e4, "delta": 1e-8},
        [],
    )
    assert run_of("poisson", options)[0] == "poisson-epsilon"
    assert run_of("none", options)[0] == "unamplified-epsilon"


def test_allocation_rounds_the_steps_down_and_poisson_up_and_both_say_so() -> None:
    sizes = {"examples": "60000", "batch_size": "256"}
    name, fields, notes = run_of("allocation", {"sigma": "1"}, **sizes)
    assert (name, fields["steps"]) == ("allocation-epsilon", 234)
    told = (
        "steps=234: examples / batch_size = 234.375, rounded down, since fewer steps give a larger epsilon; "
    )
    assert notes == [told + "rounding up gives steps=235."]
    _, fields, notes = run_of("poisson", {"sigma": "1"}, **sizes)
    assert fields["steps"] == 235
    assert fields["sampling_probability"] >= 256 / 60_000
    told = "steps=235: examples / batch_size = 234.375, rounded up, since more steps give a larger epsilon; "
    assert notes == [told + "rounding down gives steps=234."]
    _, fields, notes = run_of("none", {"sigma": "1"}, **sizes)
    assert fields["steps"] == 235
    assert "steps that do not use an example do not matter" in notes[0]


def test_several_participations_make_batches_larger_and_say_so() -> None:
    sizes = {"examples": "1000", "batch_size": "100"}
    _, fields, notes = run_of("allocation", {"participations": "3"}, **sizes)
    assert fields == {"participations": 3, "steps": 10}
    rounding, larger = notes
    assert rounding == "steps=10: examples / batch_size, nothing to round."
    assert larger.endswith("with participations=3 a step uses 300 examples on average.")


def test_a_whole_batch_is_a_probability_of_one() -> None:
    _, fields, _ = run_of("poisson", {}, examples="100", batch_size="100")
    assert fields == {"steps": 1, "sampling_probability": 1.0}


@pytest.mark.parametrize(("delta", "warned"), [("1e-4", True), ("1e-3", True), ("9e-5", False), ("2", False)])
def test_a_delta_that_is_not_below_one_over_the_examples_is_told(delta: str, warned: bool) -> None:
    _, _, notes = run_of("allocation", {"delta": delta}, examples="10000")
    assert bool(notes) is warned


@pytest.mark.parametrize(
    ("sampling", "options", "sizes", "sentence"),
    [
        ("shuffle", {}, {}, "Expected --sampling with one of these words, got 'shuffle':"),
        ("poisson", {"participations": "2"}, {}, "Expected no participations with sampling poisson"),
        ("allocation", {"sampling_probability": "0.1"}, {}, "Expected no sampling_probability with"),
        ("allocation", {}, {"batch_size": "10"}, "Expected examples together with batch_size, got"),
        (
            "allocation",
            {"steps": "9"},
            {"batch_size": "10", "examples": "90"},
            "Expected steps or batch_size",
        ),
        (
            "poisson",
            {"sampling_probability": "0.5"},
            {"batch_size": "10", "examples": "90"},
            "Expected sampling_probability or batch_size, got both.",
        ),
        ("allocation", {}, {"batch_size": "100", "examples": "90"}, "Expected batch_size <= examples"),
        ("allocation", {}, {"batch_size": "0.5", "examples": "90"}, "Expected batch_size in "),
        (
            "allocation",
            {"participations": "3"},
            {"batch_size": "40", "examples": "100"},
            "Expected participations <= examples / batch_size, the steps of an epoch, got participations=3",
        ),
        ("allocation", {}, {"examples": "nan"}, "Expected examples in "),
    ],
)
def test_options_that_contradict_one_another_are_refused(
    sampling: str, options: dict[str, str], sizes: dict[str, str], sentence: str
) -> None:
    with pytest.raises(PrivsweepError) as caught:
        run_of(sampling, options, **sizes)
    assert str(caught.value).startswith(sentence)
