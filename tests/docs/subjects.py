"""Checks the subjects of the last commits: an imperative of at most 72 characters, without a full stop.

`python -m tests.docs.subjects` prints each that is wrong and exits with 1 if there are any.
"""

import re
import subprocess
import sys
from pathlib import Path

COMMITS = 100
LENGTH = 72
ENDINGS = re.compile(r"(?:ed|ing|[^siu]s)$")
VERBS = {"Bring", "Embed", "Exceed", "Feed", "Need", "Proceed", "Seed", "Shed", "Speed", "String", "Wring"}
"""Imperatives in spite of their endings."""


def wrong(subject: str) -> str | None:
    """Return the reason why a subject is wrong, or None."""
    if len(subject) > LENGTH:
        return f"{len(subject)} characters, the limit is {LENGTH}"
    verb = subject.partition(" ")[0]
    if not re.fullmatch("[A-Z][a-z]+", verb) or (ENDINGS.search(verb) and verb not in VERBS):
        return "the first word is not an imperative"
    return "it ends with a full stop" if subject.endswith(".") else None


def main() -> int:
    """Check the last commits of the checkout; there are none outside one."""
    asked = ["git", "log", f"-{COMMITS}", "--no-merges", "--format=%h %s"]
    root = Path(__file__).resolve().parents[2]
    listed = subprocess.run(asked, cwd=root, capture_output=True, text=True, check=False).stdout.splitlines()
    found = 0
    for line in listed:
        commit, _, subject = line.partition(" ")
        if reason := wrong(subject):
            found += 1
            print(f"{commit}: {subject}: {reason}")
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main())
