"""Printing of an audit: refuted epsilons, claims, and error rates of the attack."""

from collections.abc import Mapping
from typing import Any

from flows.answers.show import NEIGHBOURS
from flows.printing import exactly, rounded_down, rounded_up, say, show


def show_audit(content: Mapping[str, Any]) -> None:
    """Print an audit as text."""
    level, delta = exactly(content["confidence"]), exactly(content["delta"])
    say(f"{content['correct']} of {content['guesses']} guesses about {content['canaries']} canaries correct")
    rows = [
        [name, rounded_down(epsilon), "for every mechanism"]
        for name, epsilon in content["refuted_epsilon"].items()
    ]
    rows += [
        [name, rounded_down(epsilon), "model-based: only if the mechanism behaves like Gaussian noise"]
        for name, epsilon in content["model_based_epsilon"].items()
    ]
    kind, note = (
        ("design", "") if content["design_stated"] else ("assumed design", "; --design states another")
    )
    say(f"{kind}: {content['assumed_design']} ({content['design']}{note})")
    say(f"neighbouring data sets: {NEIGHBOURS[content['neighbours']]}")
    show(["audit", "epsilon", "holds"], rows, title=f"refuted at delta = {delta} with confidence {level}:")
    for name, mu in content["refuted_mu"].items():
        say(f"refuted mu of Gaussian differential privacy: {rounded_down(mu)} by {name}")
    if "claim" in content:
        claim = content["claim"]
        bounds = ", ".join(f"{rounded_up(p)} by {name}" for name, p in claim["p_value"].items())
        verdict = "refuted" if claim["refuted"] else "not refuted, which does not confirm it"
        say(f"claim epsilon = {exactly(claim['epsilon'])}: {verdict}; p-value at most {bounds}")
    for hint in content["hints"]:
        say(hint)
    if "null_check" in content:
        check = content["null_check"]
        say(
            f"null check: {check['refuted']} of {check['audits']} audits with shuffled inclusion bits refute "
            f"some epsilon > 0; expected are at most about {check['nominal']:.4g}"
        )
    if "rates" in content:
        _show_rates(content["rates"], level)


def _show_rates(content: Mapping[str, Any], level: str) -> None:
    """Print the error rates of the attack as text."""
    say(f"if {content['assumption']}, each with confidence {level}:")
    for each in content["thresholds"]:
        say(
            f"scores {each['in_if']} {each['threshold']:.6g}: "
            f"{each['true_positives']} of {each['runs_with']} in, "
            f"{each['false_positives']} of {each['runs_without']} out; "
            f"epsilon >= {rounded_down(each['epsilon'])}{_modelled(each['gaussian'], each['epsilon'])}"
        )
    area = content["area_under_curve"]
    rows = [
        [
            "AUROC",
            f"{area['estimate']:.6g}",
            rounded_down(area["interval"][0]),
            rounded_up(area["interval"][1]),
        ]
    ]
    rows += [
        [
            f"TPR at FPR {exactly(each['false_positive_rate'])}",
            "",
            rounded_down(each["interval"][0]),
            rounded_up(each["interval"][1]),
        ]
        for each in content["true_positive_rate"]
    ]
    show(["rate", "estimate", "at least", "at most"], rows)


def _modelled(epsilon: float | None, proved: float) -> str:
    """Return the epsilon of the Gaussian family, if it has one (not at delta 0) that exceeds the proved one.

    The joint tests with and without the model weigh both rates differently, so the model may refute less.
    """
    if epsilon is None or epsilon <= proved:
        return ""
    return f", {rounded_down(epsilon)} if the mechanism behaves like Gaussian noise"
