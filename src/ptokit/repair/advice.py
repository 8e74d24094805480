"""The advice of a finding: what would mend it first, with the lines it belongs to."""

from __future__ import annotations

import linecache
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from ptokit.base.diagnostics import Diagnostic

if TYPE_CHECKING:
    from ptokit.repair.outline import Outline


def advised(found: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Findings whose advice is the repair itself, where the source of their lines can be read."""
    texts: dict[str, str] = {}
    kept: list[Diagnostic] = []
    for each in found:
        at = each.location
        if each.evidence is not None and at is not None:
            if at.file not in texts:
                texts[at.file] = "".join(linecache.getlines(at.file))
            fix = _fix(texts[at.file], at.file, each)
            each = replace(each, fix=fix) if fix else each
        kept.append(each)
    return tuple(kept)


@lru_cache(maxsize=256)  # a launch that is repeated has the same to say
def _fix(text: str, file: str, found: Diagnostic) -> str:
    from ptokit.repair.remedies import remedies  # where nothing is wrong, nothing is mended

    program = _outline(text, file)
    remedy = None if program is None else next(remedies(program, found, file, False), None)
    return "" if remedy is None else str(remedy)


@lru_cache(maxsize=8)
def _outline(text: str, file: str) -> Outline | None:
    from ptokit.repair.outline import outline

    return outline(text, file)
