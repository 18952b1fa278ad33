"""Reading around damage: leaving out the files that cannot be trusted, with one warning for each."""

import hashlib
import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

import duckdb

from privcore import METHODS, PROBLEMS
from storage import layout
from storage.build import LAYOUT
from storage.errors import DegradedWarning, StoreError
from storage.manifest import Manifest, missing, read_manifest, to_json
from storage.parts import read_part, survey
from storage.replaced import Replacement, newest, read_replacement
from storage.schema import SCHEMA_VERSION, schema_for
from storage.snapshot import Contents

allowed: ContextVar[bool] = ContextVar("allowed", default=False)
"""Whether `open_store` reads around damage where its caller does not say."""


@contextmanager
def degraded_reading() -> Iterator[None]:
    """Have every store that is opened inside read around damaged and missing parts.

    Example:
        >>> with degraded_reading():
        ...     allowed.get()
        True
    """
    token = allowed.set(True)
    try:
        yield
    finally:
        allowed.reset(token)


class Around:
    """What is left of a store without its damaged files.

    Attributes:
        root: The store.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._told: set[str] = set()
        self._sound: set[tuple[Path, int]] = set()

    def parts(self) -> list[Path]:
        """Return the parts that are sound, sorted; the others are warned of."""
        found, foreign = survey(self.root)
        for path in foreign:
            self._tell(f"{path} does not belong into a store; it is left out.")
        return [path for path in found if self._is_sound(path)]

    def manifests(self) -> list[Manifest]:
        """Return the manifests that are sound, the latest last, and warn of the others."""
        sweeps: list[Manifest] = []
        made: list[Replacement] = []
        for path in layout.entries(self.root / layout.SWEEPS) + layout.entries(self.root / layout.REPLACED):
            try:
                if path.parent.name == layout.SWEEPS:
                    sweeps.append(read_manifest(path))
                else:
                    made.append(read_replacement(path))
            except StoreError as error:
                self._tell(str(error))
        current = [sweep.with_parts(newest(sweep.parts, made)) for sweep in sweeps]
        return sorted(current, key=lambda sweep: (sweep.finished_at, sweep.digest))

    def contents(self) -> Contents:
        """Return what a snapshot is made of; the parts that manifests list in vain are warned of."""
        layout.check(self.root)
        sweeps = self.manifests()
        found = self.parts()
        for sweep in sweeps:
            for name in sweep.parts:
                if not (self.root / layout.DATA / name).exists():
                    self._tell(missing(self.root, sweep, name))
        content = [
            ["degraded", LAYOUT, SCHEMA_VERSION, duckdb.__version__],
            [[p.name, str(schema_for(p))] for p in PROBLEMS],
            [[m.name, m.version] for m in METHODS],
            [[path.name, path.stat().st_mtime_ns] for path in found],
            [to_json(sweep) for sweep in sweeps],
        ]
        digest = hashlib.blake2b(json.dumps(content).encode(), digest_size=16).hexdigest()
        return Contents(root=self.root, parts=tuple(found), manifests=tuple(sweeps), digest=digest)

    def _is_sound(self, path: Path) -> bool:
        """Return whether a part can be read; every byte is, once for each time it changed."""
        try:
            state = path, path.stat().st_mtime_ns
            if state not in self._sound:
                read_part(path)
                self._sound.add(state)
        except OSError:  # replaced meanwhile
            return False
        except StoreError as error:
            self._tell(str(error))
            return False
        return True

    def _tell(self, sentence: str) -> None:
        if sentence not in self._told:
            self._told.add(sentence)
            warnings.warn(sentence, DegradedWarning, stacklevel=2)
