"""What texts ask of the types of views that go to other devices, or to their engines.

The record says how strict an instruction is (`Asm.extents`). These are rules of the written
language: the same call in Python, or in C++, may leave open what a text has to say.
"""

from __future__ import annotations

from collections.abc import Iterator

from ptokit.base.tiles import DYNAMIC
from ptokit.ir.core import Op
from ptokit.ir.types import ViewType


def broken_extents(op: Op) -> Iterator[tuple[str, str]]:
    """What is wrong with the views of an operation, and what to write instead."""
    asked = op.insn.asm.extents if op.insn and op.insn.asm else ""
    if not asked:
        return
    views = {
        label: value.type
        for value, label in zip(op.operands, op.labels, strict=True)
        if isinstance(value.type, ViewType)
    }
    for label, view in views.items():
        is_part = view.kind == "partition_tensor_view"
        if DYNAMIC in view.shape and not (asked == "alike" and is_part):
            where = " of a tensor_view" if asked == "alike" else ""
            fix = "write its sizes in the type: make the part from constants"
            if asked == "alike":
                fix = "take a part of it with pto.partition_view, whose sizes may be open"
            yield f"{label} has a static shape: dynamic dimensions{where} are not supported", fix
        elif any(size <= 0 and size != DYNAMIC for size in view.shape):
            yield f"every static dimension of {label} is positive", "leave an empty transfer out"
        elif asked == "flat" and any(size != 1 for size in view.shape[:-1]):
            fix = "one row of neighbours: every size but the last is 1"
            yield f"{label} is a flat contiguous logical 1D view", fix
    if asked != "static" and len({view.shape for view in views.values()}) > 1:
        listed = " and ".join(views)
        yield (
            f"{listed} have the same static/dynamic shape signature",
            "write the same sizes, and the same `?`, in both types",
        )
