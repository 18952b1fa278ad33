"""A noise multiplier as text or JSON, with its proof and a smaller noise multiplier that does not suffice."""

from flows.answers.explain import explained_run
from flows.answers.loaders import loader
from flows.answers.noise import Noise, sigma_of
from flows.answers.noise_any import NoiseForAny
from flows.answers.show import methods_text
from flows.printing import as_json, exactly, listed, rounded_down, rounded_up, say
from privcore import Bracket


def print_noise(found: Noise, json: bool, *, explain: bool) -> None:
    """Print a noise multiplier that suffices, its proof, and a smaller noise multiplier that does not.

    Args:
        found: Result of the search.
        json: Whether to print JSON.
        explain: Whether to explain both.
    """
    enough, short = found.enough, found.short
    reasons = {"suffices": explained_run(enough, ("upper",))} if explain else {}
    if explain and short is not None:
        reasons["does not suffice"] = explained_run(short, ("lower",))
    if json:
        told = {name.replace(" ", "_"): reason.as_content() for name, reason in reasons.items()}
        say(as_json(found.as_content() | ({"explanation": told} if explain else {})))
        return
    rest = {name: value for name, value in enough.problem.as_fields().items() if name != "sigma"}
    say(f"sigma {exactly(found.sigma)} suffices: epsilon is at most {rounded_up(enough.upper)}")
    if (least := found.least) is not None:
        high, only = rounded_up(least.upper), "suffices by narrower brackets only"
        say(f"sigma {exactly(sigma_of(least))} {only}: epsilon is at most {high}")
    if short is None:
        say("less noise: nothing is proved about it")
    else:
        low = rounded_down(short.lower)
        say(f"sigma {exactly(found.short_sigma)} does not: epsilon is at least {low}")
    if isinstance(found, NoiseForAny):
        say(f"worst      {loader(found.worst)}")
        for relation in dict.fromkeys(found.relations.values()):
            names = ", ".join(name for name, each in found.relations.items() if each == relation)
            say(f"holds for  {names} ({relation})")
    say(f"problem    {enough.problem.name} {listed(rest)}")
    by = Bracket(lower_by=short.lower_by if short else "", upper_by=enough.upper_by)
    say(f"methods    {methods_text(by)}")
    say(f"source     computed now, from {found.brackets} brackets of epsilon")
    for name, reason in reasons.items():
        sigma = found.sigma if name == "suffices" else found.short_sigma
        say(f"\nwhy sigma {exactly(sigma)} {name}", end="")
        reason.show(question=name == "suffices")
