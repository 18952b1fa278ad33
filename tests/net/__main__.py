"""Writes `before.jsonl` again: `python -m tests.net` (minutes) asks all questions, and draws missing ones.

It writes nothing if an answer differs in a way that is not allowed. Problems that are named as arguments are
drawn again.
"""

import os
import sys

os.environ |= {"OPENBLAS_NUM_THREADS": "1", "PRIVSWEEP_TABLE": "none"}  # before numpy is imported


def main(again: list[str]) -> int:
    """Ask every question, print the differences, and write the answers if there is none."""
    from privcore import PROBLEMS
    from storage.place.disk import write_atomically
    from tests.net import draw
    from tests.net.doors import opened
    from tests.net.questions import ALLOWED, FILE, before

    kept = [question for question in before() if question.about not in again] if FILE.exists() else []
    known = {question.about for question in kept if question.door in ("methods", "command", "python", "page")}
    keys = {question.key for question in kept}
    new = [question for question in draw.questions() if question.key not in keys]
    differences: list[str] = []
    with opened() as doors:
        for kind in PROBLEMS:
            if kind.name not in known:
                new += draw.about(kind)
                print(kind.name, len(new), file=sys.stderr, flush=True)
        for question in kept:
            now = question.asked(doors)
            if question.about not in ALLOWED:
                differences += question.differences(now)
            question.said = now
        for question in new:
            if question.door != "methods":  # else the draw has the answers
                question.said = question.asked(doors)
    print(*differences, f"{len(kept)} questions asked again, {len(new)} drawn", sep="\n", file=sys.stderr)
    if not differences:
        lines = sorted({question.key: question.line() + "\n" for question in kept + new}.values())
        write_atomically(FILE, "".join(lines).encode())
    return bool(differences)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
