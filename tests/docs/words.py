"""Counts of the phrases that make readers stop, in messages, docstrings, comments, documentation and tests.

`python -m tests.docs.words` prints the counts; with paths, every place below them. `BANNED` has the phrases.
"""

import ast
import io
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PRODUCT = ("flows", "tasks", "storage", "privcore", "privsweep", "deploy")
KINDS = ("message", "docstring", "comment", "documentation", "test")

OPENING = re.compile(
    r"^(What|How|Where|Why|Who|Which|Returns? (what|how|which|where|the question|nothing))\b"
)
"""A docstring begins with a noun phrase or a verb, and names the value that it returns."""

BANNED = {
    "told, tells": r"\b(?:told|tells?|telling)\b",
    "anew": r"\banew\b",
    "belong into": r"\bbelong(?:s|ing)? into\b",
    "seldom": r"\bseldom\b",
    "but for": r"\bbut for\b",
    "beside": r"\bbeside\b",
    "garbling": r"\bgarbl(?:e[sd]?|ing)\b",
    "spread out": r"\bspread out\b",
    "twin": r"\btwins?\b",
    "law": r"\blaws?\b",
    "knob": r"\bknobs?\b",
    "so many": r"\bso (?:many|few)\b",
    "of which": r"\bof which\b|\bof whose\b",
    "that there is": r"\b(?:that|all|what|none|nothing) there (?:is|are)\b|\bthere is not\b",
    "is no X": r"(?<![Tt]here )\b(?:is|are|was) no (?!longer|more|less|later|larger|smaller|worse)[a-z]",
    "what": r"\b(?:what|whatever|whoever|whatsoever)(?: (?!if\b|it costs)\w|,)",
    "has to": r"\b(?:has|have|had|having) to\b",
    "knows, sees": r"\b(?:knows|sees|learns|wants|forgets|believes|thinks|asks for)\b",
    "nobody, none": r"\b(?:nobody|none|no one) (?:can|will|could|may|has|is|are|sees|reads|does)\b",
    "one that": r"\b(?:one|ones|another|others|another one) (?:that|which|whose|who)\b",
    "such": r"\b(?:no|one|many|any|every|each|all|other) such\b|\bsuch (?:one|ones|a one)\b",
    "stand, have it": r"\bstands? (?:for|in|on|at|beside|there|below|above)\b|\bcame of\b|\bcomes? of\b",
    "glance": r"\b(?:glances?|scouts?|lifelines?|beacons?|terrain)\b",
    "where, opening": r"(?:^|\. |; )[Ww]here (?!is\b|are\b|to\b|the file|it is)\w",
    "must needs": r"\b(?:as it were|by itself alone|of one's own|in its stead|thereby|whereupon|hence)\b",
}
"""Names of phrases, with a pattern for each."""

CODE = re.compile(r"\s*(?:select|where|from|insert|create|with)\b.*|\w+(?:, \w+)+", re.DOTALL)
"""Strings that are SQL or lists of names."""
STORED = {
    "Hash of problem, method, version and knobs",
    'title = "Upper bounds on both advantages beside their exact values"',
    'title = "Random allocation beside Poisson sampling and no amplification"',
}
"""Texts that stores contain: a title is part of the digest of a sweep."""


class Place(NamedTuple):
    """A phrase where it stands."""

    kind: str
    phrase: str
    file: str
    line: int
    text: str


def texts(file: Path, kind: str | None = None) -> Iterator[tuple[str, int, str]]:
    """Yield kind, line and text of each string, comment or paragraph of a file."""
    content = file.read_text(encoding="utf-8")
    if file.suffix == ".py":
        for found, line, text in _python(content):
            yield kind or found, line, text
    elif file.suffix == ".js":
        for found, line, text in _javascript(content):
            yield kind or found, line, text
    else:
        fenced = False
        for line, written in enumerate(content.splitlines(), 1):
            text = written
            for stored in STORED:
                text = text.replace(stored, "")
            fenced ^= text.startswith("```")
            if fenced or text.startswith("```"):
                continue
            found = {".md": "documentation", ".sql": "comment"}.get(file.suffix, "message")
            if file.suffix == ".toml":
                found = "comment" if text.startswith("#") else found
                text = re.sub(r"^\w+ = ", "", text)
            yield kind or found, line, re.sub(r"`[^`]*`", "`x`", text)


def _javascript(content: str) -> Iterator[tuple[str, int, str]]:
    for line, text in enumerate(content.splitlines(), 1):
        code, slashes, comment = text.partition("//")
        if slashes or text.strip().startswith(("/*", "*")):
            yield "comment", line, comment or text
        for _, quoted in re.findall(r"([\"'`])((?:(?!\1).)* (?:(?!\1).)*)\1", code):
            yield "message", line, re.sub(r"\$\{[^}]*\}", "X", quoted)


def _python(content: str) -> Iterator[tuple[str, int, str]]:
    tree = ast.parse(content)
    descriptions = set()
    for node in ast.walk(tree):
        for field in ("body", "orelse"):
            for part in (
                getattr(node, field, None) or [] if not isinstance(node, ast.IfExp | ast.Lambda) else []
            ):
                if isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant):
                    descriptions.add(part.value)
    inside = {part for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            text = "".join(str(v.value) if isinstance(v, ast.Constant) else "X" for v in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in inside:
            text = node.value
        else:
            continue
        if " " in text.strip():
            if CODE.fullmatch(text) or text in STORED:
                continue
            text = re.sub(r"^\s*(?:>>>|\.\.\.).*$", "", text, flags=re.MULTILINE)
            text = re.sub(r"`[^`\n]*`|--[a-z-]+", "`x`", text)
            yield "docstring" if node in descriptions else "message", node.lineno, text
    for token in tokenize.generate_tokens(io.StringIO(content).readline):
        if token.type == tokenize.COMMENT and not re.match(r"#\s*(?:noqa|type:|fmt:|pragma)", token.string):
            yield "comment", token.start[0], token.string.removeprefix("#").strip()


def places(files: list[Path]) -> Iterator[Place]:
    """Yield every banned phrase of some files."""
    for file in files:
        name = file.relative_to(ROOT).as_posix()
        kind = "test" if name.startswith("tests/") else None
        for found, line, text in texts(file, kind):
            if file.suffix == ".py" and found in {"docstring", "test"} and OPENING.match(text):
                yield Place(found, "opening", name, line, text.split("\n")[0])
            for phrase, pattern in BANNED.items():
                for match in re.finditer(pattern, text):
                    above = text[: match.start()].count("\n")
                    yield Place(found, phrase, name, line + above, text.splitlines()[above].strip())


def files(below: list[str]) -> list[Path]:
    """Return the files with words below some paths of the repository."""
    kinds = {".py", ".md", ".js", ".html", ".sql", ".toml"}
    found = {
        file
        for path in below
        for file in ([ROOT / path] if (ROOT / path).is_file() else (ROOT / path).rglob("*"))
        if file.suffix in kinds and "_build" not in file.parts and not file.match("tests/*/data/**")
    }
    skipped = {ROOT / "tests/docs/words.py", ROOT / "tests/docs/test_words.py", ROOT / "CHANGELOG.md"}
    skipped.add(ROOT / "docs/commands.md")  # made from messages, which are counted where they are written
    return sorted(found - skipped)


ALL = [*PRODUCT, "tests", "docs", "README.md", "CONTRIBUTING.md"]


def counts() -> dict[str, Counter[str]]:
    """Return the count of each phrase, for each kind of text."""
    found = {kind: Counter[str]() for kind in KINDS}
    for place in places(files(ALL)):
        found[place.kind][place.phrase] += 1
    return found


if __name__ == "__main__":
    if sys.argv[1:]:
        for place in places(files(sys.argv[1:])):
            print(f"{place.file}:{place.line}: {place.kind}: {place.phrase}: {place.text}")
    else:
        table = counts()
        print(f"{'':18}" + "".join(f"{kind:>15}" for kind in KINDS))
        for phrase in ["opening", *BANNED]:
            print(f"{phrase:18}" + "".join(f"{table[kind][phrase]:15}" for kind in KINDS))
        print(f"{'all':18}" + "".join(f"{table[kind].total():15}" for kind in KINDS))
