"""Scripts of the page joined to one file, so that a first answer needs few requests.

Every request costs a round trip, which takes half a second on a slow line; a chain of imports costs several.
A bundle is a classic script: each module becomes a function that returns its exports.
"""

import re
from collections.abc import Mapping
from posixpath import dirname, join, normpath

_IMPORT = re.compile(r"^import (?:\{([^}]*)\} from )?\"([^\"]+)\";\n", re.M)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function\*?|const|class) (\w+|\[[^]]*\]))", re.M)
_LATER = re.compile(r"\bimport\(\"([^\"]+)\"\)")
_COMMENT = re.compile(r"^\s*(?://.*|/\*\*(?:.|\n)*?\*/\s*)\n", re.M)
_INDENT = re.compile(r"^\s+", re.M)


def bundled(first: str, files: Mapping[str, bytes]) -> bytes:
    r"""Return a module and all modules that it imports as one classic script, without comments.

    Args:
        first: The path of the module; a script outside of the folder of the paths imports nothing later.
        files: The content of all modules by path. Imports and exports begin lines, an export is a single
            declaration, and no two modules import each other.

    Example:
        >>> a, b = b'import { b } from "./b.js";\nb();\n', b"export const b = () => 1;\n"
        >>> print(bundled("a.js", {"a.js": a, "b.js": b}).decode(), end="")
        "use strict";
        const $b = (() => {
        const b = () => 1;
        return { b };
        })();
        const $a = (() => {
        const { b } = $b;
        b();
        return {  };
        })();
    """
    parts: dict[str, str] = {}

    def add(path: str) -> None:
        if path in parts:
            return
        text = files[path].decode()
        for _, needed in _IMPORT.findall(text):
            add(normpath(join(dirname(path), needed)))
        parts[path] = _wrapped(path, text)

    add(first)
    return '"use strict";\n{}'.format("".join(parts.values())).encode()


def _wrapped(path: str, text: str) -> str:
    """Return a module as a function that is called once."""

    def absolute(relative: str) -> str:
        return normpath(join(dirname(path), relative))

    def imports(found: re.Match[str]) -> str:
        names = (found[1] or "").replace(" as ", ": ")
        return f"const {{{names}}} = {_name(absolute(found[2]))};\n" if names else ""

    exports = [name for found in _EXPORT.finditer(text) for name in re.findall(r"\w+", found[1])]
    body = _EXPORT.sub("", _IMPORT.sub(imports, text))
    body = _LATER.sub(lambda found: f'import("./{absolute(found[1])}")', body)
    body = body.replace("import.meta.url", f'new URL("{path}", document.baseURI)')
    body = _INDENT.sub("", _COMMENT.sub("\n", body))
    return f"const {_name(path)} = (() => {{\n{body}return {{ {', '.join(exports)} }};\n}})();\n"


def _name(path: str) -> str:
    return "$" + re.sub(r"\W", "_", path.removesuffix(".js"))
