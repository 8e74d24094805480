"""The texts a library is compiled from: its sources, and what they include from beside them.

All of them are rewritten for the compilers of this machine (tokens.py) and compiled as copies, each
of which says what file it is of. Whatever path below `pto/` a text includes, it means our header.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from ptokit.base.diagnostics import usage_error
from ptokit.base.patterns import regex
from ptokit.native import headers, tokens

_INCLUDE = regex(r'^(\s*#\s*include\s*)(?:"([^"\n]+)"|<([^>\n]+)>)', re.M)
# An include by way of a macro, and a definition of one that names a file.
_BY_MACRO = regex(r"^(\s*#\s*include\s+)([A-Za-z_]\w*)[ \t]*$", re.M)
_NAMES_FILE = regex(r'^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+("[^"\n]+"|<[^>\n]+>)', re.M)
_OURS = regex(r"pto/")
_COMPILED = (".cpp", ".cc", ".cxx")


def read(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise usage_error("file", f"cannot read {path}: {reason}") from None


def gathered(
    sources: Sequence[Path], folders: Sequence[Path], defines: Sequence[str] = ()
) -> dict[Path, str]:
    """The sources, and the files they include from beside them or from `folders`, in order.

    A file may be named by a macro: by one of `defines`, or else as the text itself defines it.
    """
    found: dict[Path, str] = {}
    given = {name: value for name, _, value in (each.partition("=") for each in defines)}
    waiting = list(sources)
    while waiting:
        path = waiting.pop(0)
        if path in found:
            continue
        text = read(path)
        names: dict[str, str] = dict(_NAMES_FILE.findall(text)) | given
        text = _BY_MACRO.sub(partial(_with_name, names), text)
        found[path] = text
        for _, quoted, angled in _INCLUDE.findall(text):
            other = _resolved(path, quoted, angled, folders)
            if other is not None:
                waiting.append(other)
    return found


def _with_name(names: Mapping[str, str], include: re.Match[str]) -> str:
    return include[1] + names.get(include[2], include[2])


def staged(
    texts: Mapping[Path, str], folders: Sequence[Path], where: Path, tails: Mapping[Path, str]
) -> dict[Path, Path]:
    """Write the texts below `where` as they are compiled; `tails` are put behind some of them."""
    copies = {path: where / f"{n}-{path.name}" for n, path in enumerate(texts)}
    for path in tails:  # sources, whatever they are called
        if copies[path].suffix not in _COMPILED:
            copies[path] = copies[path].with_suffix(".cpp")
    for path, text in texts.items():

        def replaced(match: re.Match[str], path: Path = path) -> str:
            head, quoted, angled = match.groups()
            name = quoted or angled
            if _OURS.match(name):
                return f"{head}<{name if name == headers.WORKSPACES else headers.FIRST}>"
            other = _resolved(path, quoted or "", angled or "", folders)
            return f'{head}"{copies[other]}"' if other is not None else match.group()

        plain = _INCLUDE.sub(replaced, tokens.plain(text, str(path)))
        copies[path].write_text(f'#line 1 "{path}"\n{plain}\n{tails.get(path, "")}', "utf-8")
    return copies


def _resolved(path: Path, quoted: str, angled: str, folders: Sequence[Path]) -> Path | None:
    """The file that an include names, unless it is one of ours or of the system."""
    name = quoted or angled
    if _OURS.match(name):
        return None
    for folder in (path.parent, *folders) if quoted else folders:
        other = (folder / name).resolve()
        if other.is_file():
            return other
    return None
