"""Which state of the language a text is written in: operations that it has since lost.

What has a successor is still read. A text without any of these names is one of today's language;
whoever asks for that language by its name is told what to write instead.
"""

from __future__ import annotations

from collections.abc import Iterator

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import Diagnostic
from ptokit.base.location import Location
from ptokit.ir.lexer import Source, Tokens
from ptokit.ir.limits import TextLimits

TODAY, OLDER = "2026-08", "0.27"
DIALECTS = (TODAY, OLDER)

_COMM = ("build_async_session", "tput_async", "tget_async", "wait_async_event", "test_async_event")
_PLANNED = "declare the tile where it is used: pto.alloc_tile"
RETIRED = {  # name -> what is written instead
    "pto.subset": "pto.subview",
    "pto.tstore_fp": "pto.tstore with fp",
    "pto.tmov.fp": "pto.tmov with a scaling tile",
    "pto.textract_fp": "pto.textract with fp",
    "pto.tinsert_fp": "pto.tinsert with fp",
    "pto.tfillpad_inplace": "pto.tfillpad",
    "pto.tfillpad_expand": "pto.tfillpad",
    "pto.tpack": "",
    **dict.fromkeys(("pto.bind_tile", "pto.pointer_cast", "pto.declare_tile_memref"), _PLANNED),
    **{f"pto.{name}": f"pto.comm.{name}" for name in _COMM},
}


@dataclass(frozen=True)
class Dialect:
    """The state of the language that a text is written in, and every name that tells."""

    name: str
    evidence: tuple[tuple[str, Location], ...] = ()

    def __str__(self) -> str:
        if not self.evidence:
            return self.name
        name, at = self.evidence[0]
        return f"{self.name} ({name}, line {at.line})"

    def missing(self, asked: str) -> Iterator[Diagnostic]:
        """What the language of another name does not have."""
        for name, at in self.evidence if asked == TODAY else ():
            fix = RETIRED[name]
            yield Diagnostic(
                "unknown-op",
                f"there is no operation {name} in the language of {TODAY}",
                at,
                fix=f"write {fix}" if fix else f"--dialect {OLDER} has it",
            )


def dialect_of(text: str, file: str) -> Dialect:
    """The dialect of a text that can be read."""
    tokens = Tokens(Source(text, file, TextLimits.in_force(None)))
    found = tuple(
        (word, tokens.source.location(start, start + len(word)))
        for word, start in zip(tokens.texts, tokens.starts, strict=True)
        if word in RETIRED
    )
    return Dialect(OLDER if found else TODAY, found)
