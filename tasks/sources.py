"""The code of this process: its folders, and the digest and versions that other machines must match."""

import hashlib
import json
import platform
from dataclasses import dataclass
from functools import cache

from storage.schema import provenance
from tasks.own_process import folders


@dataclass(frozen=True, kw_only=True)
class Code:
    """The code of a machine; two machines with equal code give the same answers, bit for bit.

    Attributes:
        digest: BLAKE2b-128 of the sources of the packages that workers need.
        versions: Versions of Python and of the packages in stored rows, and the architecture; without
            `privsweep` itself, which the digest covers.
    """

    digest: str
    versions: dict[str, str]

    def difference(self, versions: dict[str, str]) -> tuple[str, str, str] | None:
        """Return the first name with different versions, the other version and ours, or None.

        Packages that only the other machine has are ignored; a package that it lacks has "no version".

        Example:
            >>> Code(digest="", versions={"numpy": "2.4.6"}).difference({"numpy": "2.2.0", "jax": "0.10"})
            ('numpy', '2.2.0', '2.4.6')
        """
        for name, ours in self.versions.items():
            theirs = versions.get(name, "no version")
            if theirs != ours:
                return name, theirs, ours
        return None


@cache
def code() -> Code:
    """Return the code of this process, determined once."""
    digest = hashlib.blake2b(digest_size=16)
    for folder in folders():
        for path in sorted(folder.rglob("*.py")):
            content = path.read_bytes()
            digest.update(f"{folder.name}/{path.relative_to(folder)} {len(content)}\n".encode() + content)
    versions: dict[str, str] = json.loads(provenance().versions)
    versions.pop("privsweep", None)
    return Code(digest=digest.hexdigest(), versions=versions | {"architecture": platform.machine()})
