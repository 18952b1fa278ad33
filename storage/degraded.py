"""Reading of a damaged store without the files that cannot be trusted, with one warning for each file."""

import hashlib
import json
import os
import warnings
from collections.abc import Callable
from pathlib import Path

import duckdb

from privcore import PROBLEMS
from privcore.registry import used_versions
from storage import layout
from storage.build import LAYOUT
from storage.errors import DegradedWarning, StoreError
from storage.folder import Folder
from storage.identities import misnaming
from storage.manifest import Manifest, missing, read_manifest, to_json
from storage.parts import read_part, survey
from storage.replacements import Replacement, files, newest, read_replacement
from storage.schema import SCHEMA_VERSION, schema_for
from storage.snapshot import Contents


def warn(sentence: str) -> None:
    """Warn of a file that is left out."""
    warnings.warn(sentence, DegradedWarning, stacklevel=4)


class Around:
    """A store without its damaged files.

    Attributes:
        place: The store.
        tell: Function that gets one sentence about each file that is left out, once.
    """

    def __init__(self, place: Folder, tell: Callable[[str], None] = warn) -> None:
        self.place = place
        self.tell = tell
        self._told: set[str] = set()
        self._sound: set[tuple[Path, int, int]] = set()

    def parts(self) -> list[Path]:
        """Return the sound parts, sorted, and warn about the others."""
        found, foreign = survey(self.place)
        for path in foreign:
            self._tell(f"{self.place.shown(path)} is not part of the store; it is left out.")
        return [path for path in found if self._is_sound(path)]

    def manifests(self) -> list[Manifest]:
        """Return the sound manifests, the latest last, and warn about the others."""
        sweeps: list[Manifest] = []
        made: list[Replacement] = []
        for path in self.place.entries(layout.SWEEPS) + self.place.entries(layout.REPLACED):
            if layout.is_no_file(path):
                self._tell(f"{self.place.shown(path)} is not part of the store; it is left out.")
                continue
            try:
                if path.parent.name == layout.SWEEPS:
                    sweeps.append(read_manifest(self.place, path))
                else:
                    made.append(read_replacement(self.place, path))
            except StoreError as error:
                if os.path.lexists(path):  # else gc deleted a record that no manifest needs
                    self._tell(str(error))
        current = [sweep.with_parts(newest(sweep.parts, made)) for sweep in sweeps]
        return sorted(current, key=lambda sweep: (sweep.finished_at, sweep.digest))

    def contents(self) -> Contents:
        """Return the contents of a snapshot, and warn about missing parts that manifests list."""
        self.place.check()
        before = files(self.place)
        sweeps = self.manifests()
        found = self.parts()
        lost = [(sweep, name) for sweep in sweeps for name in sweep.parts if not self._path(name).exists()]
        if lost and not files(self.place).issuperset(before):
            raise FileNotFoundError(self._path(lost[0][1]))  # replaced meanwhile: `steadily` reads again
        for sweep, name in lost:
            self._tell(missing(self.place, sweep, name))
        content = [
            ["degraded", LAYOUT, SCHEMA_VERSION, duckdb.__version__],
            [[p.name, str(schema_for(p))] for p in PROBLEMS],
            list(used_versions().items()),
            [[path.name, path.stat().st_size, path.stat().st_mtime_ns] for path in found],
            [to_json(sweep) for sweep in sweeps],
        ]
        digest = hashlib.blake2b(json.dumps(content).encode(), digest_size=16).hexdigest()
        return Contents(place=self.place, parts=tuple(found), manifests=tuple(sweeps), digest=digest)

    def _is_sound(self, path: Path) -> bool:
        """Return whether a part is sound; its bytes are read once after each change."""
        try:
            status = path.stat()
            state = path, status.st_size, status.st_mtime_ns
            if state not in self._sound:
                table = read_part(self.place, path)
                if predicate := misnaming(path, table):
                    self._tell(f"{self.place.shown(path)} {predicate}; it is left out.")
                    return False
                self._sound.add(state)
        except (OSError, StoreError) as error:
            if not os.path.lexists(path):  # replaced meanwhile: `steadily` reads again
                raise FileNotFoundError(path) from error
            self._tell(str(error))
            return False
        return True

    def _path(self, name: str) -> Path:
        return self.place.data / name

    def _tell(self, sentence: str) -> None:
        if sentence not in self._told:
            self._told.add(sentence)
            self.tell(sentence)
