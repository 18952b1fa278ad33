"""Parser of deploy/Containerfile, which runs its instructions without a container engine."""

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Step:
    """One instruction: its name, and the rest of its line and continuation lines."""

    name: str
    text: str

    @property
    def words(self) -> list[str]:
        """The arguments, of the JSON form or the plain form; flags like --from are kept."""
        return list(json.loads(self.text)) if self.text.startswith("[") else self.text.split()


@dataclass(frozen=True, kw_only=True)
class Stage:
    """The instructions between two FROM."""

    base: str
    steps: list[Step] = field(default_factory=list)

    def all(self, name: str) -> list[Step]:
        """Return the instructions of one name, in their order."""
        return [step for step in self.steps if step.name == name]

    def last(self, name: str) -> Step:
        """Return the last instruction of a name, which is the effective one."""
        return self.all(name)[-1]


def read(path: Path) -> list[Stage]:
    """Return the stages of a Containerfile; comments and ARGs before the first FROM are left out."""
    stages: list[Stage] = []
    code = "".join(line for line in path.read_text().splitlines(True) if not re.match(r"\s*#", line))
    for line in code.replace("\\\n", " ").splitlines():
        if not line.strip():
            continue
        name, _, text = line.partition(" ")
        if name == "FROM":
            stages.append(Stage(base=text))
        elif stages:
            stages[-1].steps.append(Step(name=name, text=text.strip()))
    return stages


def variables(stage: Stage) -> dict[str, str]:
    """Return the variables that ENV sets in a stage, unexpanded."""
    return dict(pair.split("=", 1) for step in stage.all("ENV") for pair in step.words)


def tracked(repository: Path) -> list[str]:
    """Return the paths that git tracks, relative to the root."""
    command = ["git", "-C", str(repository), "ls-files", "--cached"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def context(repository: Path) -> list[str]:
    """Return the tracked paths that .dockerignore admits to a build; its last matching line decides."""
    lines = (repository / ".dockerignore").read_text().splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]

    def let_in(path: str) -> bool:
        inside = True
        for rule in rules:
            pattern = rule.removeprefix("!")
            parents = [path, *(str(parent) for parent in Path(path).parents if parent.name)]
            if pattern.startswith("**/"):
                pattern, parents = pattern.removeprefix("**/"), [Path(parent).name for parent in parents]
            if any(fnmatch(parent, pattern) for parent in parents):
                inside = rule.startswith("!")
        return inside

    return [path for path in tracked(repository) if let_in(path)]


class Rehearsal:
    """An image below a folder, with the effects of COPY, of RUN in the first stage, and of ENV."""

    def __init__(self, repository: Path, root: Path) -> None:
        self.repository = repository
        self.root = root
        self.stages = read(repository / "deploy" / "Containerfile")

    def here(self, text: str) -> str:
        """Prefix every path of the image that its steps create with the folder."""
        return re.sub(r"(?<![\w./])/(?=(opt|src|work|usr/local/bin)\b)", f"{self.root}/", text)

    def build(self) -> None:
        """Run the stage that installs, step by step, and copy the last stage's files from the context."""
        build, final = self.stages
        environment = os.environ | variables(build)
        environment.pop("PYTHONPATH", None)
        environment["PATH"] = f"{Path(sys.base_prefix) / 'bin'}:{environment['PATH']}"
        for step in build.steps:
            if step.name == "COPY":
                self.copy(step)
            elif step.name == "RUN":
                subprocess.run(["sh", "-c", self.here(step.text)], env=environment, cwd=self.root, check=True)
        for step in final.all("COPY"):
            if not step.words[0].startswith("--from"):
                self.copy(step)

    def copy(self, step: Step) -> None:
        """Copy the files that git tracks and .dockerignore admits."""
        *sources, target = step.words
        for source in sources:
            for path in context(self.repository):
                if path == source:
                    inside = Path(path).name if target.endswith("/") else ""
                elif path.startswith(f"{source}/"):
                    inside = path.removeprefix(f"{source}/")
                else:
                    continue
                to = Path(self.here(target)) / inside if inside else Path(self.here(target))
                to.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(self.repository / path, to)

    def environment(self) -> dict[str, str]:
        """Return the environment of a container of this image."""
        ours = {name: self.here(value) for name, value in variables(self.stages[-1]).items()}
        path = ours.pop("PATH").removesuffix("$PATH") + f"{self.root}/usr/local/bin:/usr/bin:/bin"
        return ours | {"PATH": path, "PRIVSWEEP_COMMIT": "rehearsed", "HOME": str(self.root / "home")}
