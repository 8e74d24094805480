"""The advice of a finding: what would mend it first, with the lines it belongs to."""

from __future__ import annotations

import linecache
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache

from ptokit.base.diagnostics import Diagnostic
from ptokit.repair.outline import Outline, outline
from ptokit.repair.remedies import remedies


def advised(found: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Findings whose advice is the repair itself, where the source of their lines can be read."""
    return tuple(map(_advised, found))


def _advised(found: Diagnostic) -> Diagnostic:
    at = found.location
    if found.evidence is None or at is None:
        return found
    program = _outline("".join(linecache.getlines(at.file)), at.file)
    remedy = None if program is None else next(remedies(program, found, at.file, False), None)
    return found if remedy is None else replace(found, fix=str(remedy))


@lru_cache(maxsize=8)
def _outline(text: str, file: str) -> Outline | None:
    return outline(text, file)
