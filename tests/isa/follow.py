"""Following the advice of a broken rule, as somebody who reads it would."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from ptokit.base.dtypes import dtype
from ptokit.base.tiles import TileSpec
from ptokit.isa.samples import Sample
from ptokit.isa.spec import Rule
from ptokit.isa.verify import code_of, verify

FIELDS = {"Rows": ("rows", "valid_row"), "Cols": ("cols", "valid_col"),
          "ValidRow": ("valid_row",), "ValidCol": ("valid_col",)}  # fmt: skip
SIZE = re.compile(r"(\w+)\.(Rows|Cols|ValidRow|ValidCol) = (\d+)(?: with Valid\w+ = (\d+))?$")
TYPE = re.compile(r"(\w+)\.DType = (\w+)")
PLACE = re.compile(r"(\w+) at (0x[0-9a-f]+)$")
NUMBER = re.compile(r"(\w+) = (\d+|0x[0-9a-f]+)$")


def followed(sample: Sample, words: str, mode: str = "auto") -> Sample | None:
    """The sample as somebody who reads the advice would change it.

    Placed by hand, operands of one type at one address are one tile: it changes as a whole.
    """
    if found := SIZE.match(words):
        name, what, size, valid = found.groups()
        spec = sample.operands[name]
        assert isinstance(spec, TileSpec)
        fields = dict.fromkeys(FIELDS[what], int(size))
        if what in ("Rows", "Cols"):
            whole, inside = FIELDS[what]
            before = getattr(spec, inside)
            if valid is not None:
                fields[inside] = int(valid)
            elif before != getattr(spec, whole):
                fields[inside] = min(before, int(size))
        changed: Any = replace(spec, **fields)
    elif found := TYPE.match(words):
        name = found[1]
        changed = replace(sample.operands[name], dtype=dtype(found[2]))  # type: ignore[type-var]
    elif found := PLACE.match(words):
        return replace(sample, addresses={**sample.addresses, found[1]: int(found[2], 16)})
    elif (found := NUMBER.match(words)) and found[1] in sample.operands:
        name, changed = found[1], int(found[2], 0)
    elif found:
        return replace(sample, attrs={**sample.attrs, found[1]: int(found[2], 0)})
    else:
        return None
    before, at = sample.operands[name], sample.addresses
    alike = [
        other
        for other, spec in sample.operands.items()
        if mode == "manual"
        and spec is before
        and not isinstance(spec, int | float | str)  # equal numbers are not one thing
        and at.get(other) == at.get(name)
    ]
    return replace(sample, operands={**sample.operands, **dict.fromkeys([name, *alike], changed)})


def not_mended(sample: Sample, rule: Rule) -> list[str]:
    """The pieces of advice for a broken rule that leave it broken."""
    bad: list[str] = []
    for mode in ("auto", "manual"):
        advice = _reported(sample, rule, mode, advise=True) or ""
        for words in advice.rpartition("here: ")[2].split(" or "):
            changed = followed(sample, words, mode)
            if changed is not None and _reported(changed, rule, mode, advise=False) is not None:
                bad.append(words)
    return bad


def _reported(sample: Sample, rule: Rule, mode: str, *, advise: bool) -> str | None:
    """The advice of a rule that the sample breaks."""
    insn = sample.insn
    try:
        found = verify(insn, sample.facts(mode), advise=advise)
    except (ZeroDivisionError, IndexError, KeyError, TypeError, AttributeError):
        return None  # a nonsense neighbour
    wanted = (code_of(insn, rule), f"{insn.name}: {rule.text}")
    return next((d.fix for d in found if (d.code, d.message) == wanted), None)
