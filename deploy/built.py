"""Hook of the build: writes the commit that a wheel or an sdist is built from into it."""

import json
import subprocess
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

BUILT = "storage/built.json"


class CommitHook(BuildHookInterface[Any]):
    """Adds `storage/built.json`; an editable installation asks git instead."""

    _made: Path | None = None

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the file; a wheel built from an sdist has that of the sdist.

        Args:
            version: `standard` or `editable`.
            build_data: Content of the build; `force_include` maps files to places in it.
        """
        if version == "editable":
            return
        built = Path(self.root) / BUILT
        if not built.exists():
            if (commit := self._git("rev-parse", "HEAD")) is None:
                return
            changes = self._git("status", "--porcelain", "--untracked-files=no")
            built = Path(mkdtemp()) / Path(BUILT).name
            built.write_text(json.dumps({"commit": commit, "dirty": bool(changes)}), encoding="utf-8")
            self._made = built
        build_data["force_include"][str(built)] = BUILT

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Delete the file outside of the build."""
        if self._made is not None:
            rmtree(self._made.parent)

    def _git(self, *arguments: str) -> str | None:
        """Return the output of git about this folder; None if it is not a checkout of its own."""
        if not (Path(self.root) / ".git").exists():
            return None
        command = ["git", "-C", self.root, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return None if done.returncode else done.stdout.strip()
