"""Moves: the data transfer inside an instruction that also signals and waits.

TPUSH first waits for space, then moves data on one pipe, then raises a flag behind the data. The
move is queued in its pipe like any instruction and leaves a record like one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ptokit.base.diagnostics import fail
from ptokit.base.layout import Array
from ptokit.base.location import Location, Site
from ptokit.isa.facts import Ops
from ptokit.isa.spec import Insn, Pipe
from ptokit.machine.faults import PoisonRead, read_by
from ptokit.machine.gm import GmWindow
from ptokit.machine.records import Record
from ptokit.machine.window import Window

Place = Window | GmWindow


class Move:
    """From one place to one or several others, on one pipe."""

    def __init__(
        self,
        machine: Any,
        insn: Insn,
        pipe: Pipe,
        ops: Ops,
        source: tuple[str, Place],
        targets: list[tuple[str, Place, tuple[slice, slice]]],
        convert: Callable[[Array], Array] | None = None,
        combine: Callable[[Array, Array], Array] | None = None,
        phase: int = 0,
    ) -> None:
        """`targets` say which part of the source each of them receives; `combine` makes what is
        stored from what is there and what arrives (atomic addition)."""
        self.machine = machine
        self.insn = insn
        self.pipe = pipe
        self.ops = ops
        self.phase = phase  # of a unit-flag handshake
        self._source = source
        self._targets = targets
        self._convert = convert
        self._combine = combine
        named = [(source[0], False, source[1]), *((name, True, w) for name, w, _ in targets)]
        self.windows = [entry for entry in named if isinstance(entry[2], Window)]
        self.gm = tuple(entry for entry in named if isinstance(entry[2], GmWindow))

    def run(self, operands: Any, site: Site | Location) -> None:
        """Carry the transfer out."""
        values = self._fetch(site)
        if self._convert is not None:
            with np.errstate(all="ignore"):
                values = self._convert(values)
        for _, place, (rows, cols) in self._targets:
            part = values[rows, cols]
            if self._combine is not None:
                part = self._combine(_read(place), part)
            if isinstance(place, Window):
                place.write(part)
                place.mark_defined()
            else:
                _store(place, part)
        self.machine.note(Record(self, site, self.gm))  # type: ignore[arg-type]

    def _fetch(self, site: Site | Location) -> Array:
        name, place = self._source
        if isinstance(place, GmWindow):
            return place.array().copy()
        if not place.is_defined():
            row, col = place.first_poison()
            error = fail(
                "poison-read",
                f"{self.insn.name} reads {name}[{row}, {col}], which nothing has written",
                got=[("memory", place.storage.name)],
                fix="load or compute the whole valid region first, or shrink the valid region",
                site=site,
                target=self.ops.target.name,
                kind=PoisonRead,
            )
            raise read_by(error, self, name, place)
        return place.read().copy()


def _read(place: Place) -> Array:
    return place.read() if isinstance(place, Window) else place.array()


def _store(place: GmWindow, values: Array) -> None:
    array = place.array()
    if place.in_place:
        array[...] = values
    else:
        place.write_back(values)
