"""Poison that travels: under `rules="release"` undefined bytes may be read, as a device reads them.

What is made of undefined elements is undefined in turn: element by element where the meaning of the
instruction says which result is made of which element, all of the results otherwise. Stored to
global memory it is a warning that names the elements of the array. An index, a branch, an address
or a count that is made of it stays an error, since nothing after it would mean anything: so does
every number handed to the program.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ptokit.base.diagnostics import Diagnostic
from ptokit.base.layout import Array
from ptokit.base.location import Location, Site
from ptokit.machine.faults import poison_read
from ptokit.machine.gm import GmBuffer

if TYPE_CHECKING:
    from ptokit.machine.machine import Machine

Place = Site | Location
Missing = Mapping[str, Array | None]  # of each source the undefined elements; None: not known which


def taken(machine: Machine, call: Any, access: Any, site: Place) -> Array:
    """The undefined elements of an operand that is read all the same; raises where that is wrong.

    `access` is one of the call's.
    """
    if not machine.carries_poison(call, access, site):
        row, col = access.first_poison()
        raise poison_read(call, access, row, col, site)
    return ~access.defined()


def spread(
    machine: Machine, call: Any, missing: Missing, results: Iterable[Any], site: Place
) -> None:
    """Make undefined what was made of undefined elements: `results` are the accesses written."""
    for access in results:
        where = _made_of(call, missing, access.shape)
        if isinstance(access.memory, GmBuffer):
            _tell(machine, call, access, where, site)
        elif where is None or where.any():
            access.poison(where)


def _made_of(call: Any, missing: Missing, shape: tuple[int, int]) -> Array | None:
    """Which elements of a result of this shape are undefined; None: all of them."""
    found = np.zeros(shape, np.bool_)
    for elements in missing.values():
        mine = None if elements is None else call.insn.reached(call.ops, elements, shape)
        if mine is None:
            return None
        found |= mine
    return found


def _tell(machine: Machine, call: Any, access: Any, where: Array | None, site: Place) -> None:
    location = site if isinstance(site, Location) else site.location
    if machine.warnings.has("poison-store", location) or (where is not None and not where.any()):
        return
    chosen = np.ones(access.shape, np.bool_) if where is None else where
    rows, cols = (np.flatnonzero(chosen.any(axis=axis)) for axis in (1, 0))
    found = Diagnostic(
        "poison-store",
        f"{call.insn.name} stores elements of {access.operand} that nothing has written",
        location,
        (
            ("rows", _span(rows)),
            ("columns", _span(cols)),
            ("array", _named(access.memory, access.addresses()[chosen])),
        ),
        "load or compute all that is stored, or shrink the valid region",
        machine.target.name,
        "warning",
    )
    for each in machine.policy.judge([found]):
        machine.warnings.add(each)


def _span(numbers: Array) -> str:
    first, last = int(numbers[0]), int(numbers[-1])
    return str(first) if first == last else f"{first}..{last}"


def _named(memory: GmBuffer, addresses: Array) -> str:
    """The part of an array that holds these bytes, as Python slices it."""
    array = memory.owner
    name = memory.title or f"{array.dtype} {'x'.join(map(str, array.shape))}"
    if not array.flags.c_contiguous or not array.size:
        return name
    places = np.unravel_index(np.unique(addresses) // array.itemsize, array.shape)
    return f"{name} [{', '.join(f'{int(p.min())}:{int(p.max()) + 1}' for p in places)}]"
