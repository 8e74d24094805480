"""Files that hold several programs, one after the other, with lines that cut them apart.

`//--- name` begins a part with a name, `// -----` one without. The parts know nothing of each
other. Inside of braces such a line is a comment like any other.
"""

from __future__ import annotations

import re

from ptokit.base.patterns import regex

_CUT = regex(r"^(?://--- *(?P<name>\S+)|// -----)[ \t\r]*$", re.MULTILINE)
_NO_CODE = regex(r'//[^\n]*|#(?=\s|\Z)[^\n]*|"(?:[^"\\\n]|\\.)*+"?')
_INK = regex(r"[^\r\n]")


def pieces(text: str) -> list[tuple[str, str, str]]:
    """The text cut apart: of each piece its name, the line that begins it, and what follows.

    What has no code has no name: remarks in front of the first program.
    """
    cuts: list[re.Match[str]] = []
    depth = at = 0
    for match in _CUT.finditer(text):
        code = _NO_CODE.sub("", text[at : match.start()])
        depth += code.count("{") - code.count("}")
        at = match.start()
        if depth == 0:
            cuts.append(match)
    starts = [0, *(m.end() for m in cuts)]
    ends = [*(m.start() for m in cuts), len(text)]
    found: list[tuple[str, str, str]] = []
    taken: set[str] = {""}
    for match, start, end in zip([None, *cuts], starts, ends, strict=True):
        body = text[start:end]
        number = len(taken)
        wish = (match and match["name"]) or str(number)
        name = "" if not _NO_CODE.sub("", body).strip() else wish
        while name in taken and name:
            name, number = f"{wish}-{number}", number + 1
        taken.add(name)
        found.append((name, match[0] if match else "", body))
    return found


def sections(text: str) -> dict[str, str]:
    """The programs of a text by name, each on the lines where it stands; one has no name."""
    if "//---" not in text and "// -----" not in text:
        return {"": text}
    found: dict[str, str] = {}
    at = 0
    for name, line, body in pieces(text):
        at += len(line)
        if name:
            found[name] = _INK.sub(" ", text[:at]) + body
        at += len(body)
    return found if len(found) > 1 else {"": text}
