"""The output of the profile of one training run: a table with both ends, or JSON."""

from flows.answers.any_profile import AnyProfile
from flows.printing import as_json, exactly, listed, rounded_down, rounded_up, say, show
from privcore.training import RunProfile


def print_profile(profile: RunProfile, json: bool) -> None:
    """Print a profile as a table with its meaning, or as JSON.

    Args:
        profile: The profile.
        json: Whether to print JSON.
    """
    if json:
        say(as_json(profile.as_content()))
        return
    names = ["quantity", "at", "lower", "upper"]
    rows = [
        [line.quantity, listed(line.at), rounded_down(line.lower), rounded_up(line.upper)]
        for line in profile.lines
    ]
    if isinstance(profile, AnyProfile):
        names.append("worst")
        rows = [[*row, worst] for row, worst in zip(rows, profile.worst, strict=True)]
    show(
        names,
        rows,
        title=f"{profile.phases} adjacency={profile.adjacency}",
        heading="quantity",
    )
    say(
        "mu holds for false positive rates from the smallest rate to 1 minus this rate; over all rates it is "
        f"that of the run without sampling, {exactly(float(rounded_up(profile.unamplified)))}"
    )
