"""The passes by name; each is loaded when it is asked for."""

from __future__ import annotations

from importlib import import_module

from ptokit.passes.base import Pass

PASSES = {
    "verify": "ptokit.passes.verify:Verify",
    "convert-level": "ptokit.passes.levels:ConvertLevel",
    "place": "ptokit.passes.place:Place",
    "barrier-all": "ptokit.passes.barrier_all:BarrierAll",
    "insert-sync": "ptokit.passes.insert_sync:InsertSync",
}


def find(name: str) -> type[Pass]:
    """The class of a pass; KeyError when there is none."""
    module, _, attribute = PASSES[name].partition(":")
    return getattr(import_module(module), attribute)
