"""Temporary copies of the checkout for seeded faults, each with an environment that imports the copy."""

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.mutations.table import ROOT, Fault


class Checkout:
    """A copy of the working tree, at the same commit, with uncommitted changes.

    Attributes:
        root: The folder of the copy.
        python: The interpreter of an environment that has all installed packages, and the copy before them.
            So processes that tests start import the copy too, with any `PYTHONPATH`.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        _git(ROOT, "clone", "--quiet", "--shared", "--no-tags", str(ROOT), str(root))
        listed = _git(ROOT, "diff", "--name-only", "HEAD").splitlines()
        listed += _git(ROOT, "ls-files", "--others", "--exclude-standard").splitlines()
        for name in listed:
            (root / name).unlink(missing_ok=True)
            if (ROOT / name).exists():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, root / name)
        self.python = self._environment()

    def _environment(self) -> Path:
        folder = self.root / ".venv"
        venv.create(folder, symlinks=True, with_pip=False)
        installed = sysconfig.get_path("purelib")
        own = sysconfig.get_path("purelib", vars={"base": str(folder)})
        # Lines of a .pth file are read in order, so the copy comes before an installation of the original.
        lines = f"{self.root}\nimport site; site.addsitedir({installed!r})\n"
        Path(own, "copy.pth").write_text(lines, encoding="utf-8")
        before = Path(sys.executable).parent
        for script in before.iterdir():
            if not (folder / "bin" / script.name).exists() and script.is_file() and not script.is_symlink():
                content = script.read_bytes().replace(bytes(before), bytes(folder / "bin"))
                (folder / "bin" / script.name).write_bytes(content)
                (folder / "bin" / script.name).chmod(0o755)
        return folder / "bin" / "python"

    def run(
        self, command: list[str], limit: float | None = None, **environment: str
    ) -> tuple[int | None, str]:
        """Run Python in the copy; return the exit status, None if it exceeded the limit, and the output."""
        kept = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
        kept["PATH"] = f"{self.python.parent}{os.pathsep}{kept.get('PATH', '')}"
        process = subprocess.Popen(
            [str(self.python), *command],
            cwd=self.root,
            env={**kept, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        try:
            return _finished(process, limit)
        except BaseException:
            _kill(process)
            raise

    @contextmanager
    def seeded(self, fault: Fault) -> Iterator[None]:
        """Let the copy have a fault; git reports the tree as unchanged meanwhile."""
        path = self.root / fault.file
        original, times = path.read_text(encoding="utf-8"), path.stat()
        compiled = "@compiled" in original
        _git(self.root, "update-index", "--assume-unchanged", fault.file)
        try:
            path.write_text(fault.applied(original), encoding="utf-8")
            if compiled:
                self._forget_machine_code()
            yield
        finally:
            path.write_text(original, encoding="utf-8")
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
            if compiled:
                self._forget_machine_code()

    def _forget_machine_code(self) -> None:
        """Delete numba's machine code, which does not depend on the source of functions in other files."""
        for pattern in ("*.nbi", "*.nbc"):
            for path in self.root.glob(f"privcore/**/__pycache__/{pattern}"):
                path.unlink()


def _finished(process: "subprocess.Popen[str]", limit: float | None) -> tuple[int | None, str]:
    try:
        output, _ = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        _kill(process)
        output, _ = process.communicate()
        return None, output
    return process.returncode, output


def _kill(process: "subprocess.Popen[str]") -> None:
    """Kill the processes of a group."""
    try:
        os.killpg(process.pid, 9)
    except ProcessLookupError:
        return


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
