"""Both interpreters on the same inputs: which arrays agree, and what the others look like."""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ptokit import PtoError, load
from ptokit.folders.inputs import Draw, attempts, is_misled
from ptokit.ir.core import Function
from tests.models.interpreter import Stuck, run

# How far results may lie apart, relative to their size and to the largest of the array: sums are
# taken in other orders, and a result that is rounded may fall to the other side.
TOLERANCE = {"float32": 2e-4, "float16": 2**-9, "bfloat16": 2**-6}


@dataclass(frozen=True)
class Verdict:
    """What became of a kernel: it did not run, or some arrays differ, or all agree."""

    program: str
    ran: bool
    seconds: float = 0.0  # of computing, that the product took to check and run it
    reasons: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    written: int = 0  # elements that the kernel has changed
    is_about_results: bool = True  # and not only about inputs, as some scripts are

    @property
    def agrees(self) -> bool:
        return self.ran and not self.reasons

    @classmethod
    def of(cls, data: dict[str, Any]) -> Verdict:
        """A verdict from a journal."""
        return cls(**{k: tuple(v) if isinstance(v, list) else v for k, v in data.items()})


def compare(path: Path, name: str, seed: int = 0) -> Verdict:
    """Run a kernel through both interpreters."""
    first: PtoError | None = None
    try:
        program = load(path)
        kernel = program.entry()
        for _, draw in attempts(program.launchable, kernel.function, seed, {}):
            drawn = draw()
            started = time.process_time()
            try:
                with warnings.catch_warnings(action="ignore"):
                    kernel[1](*drawn, rules="release", sync="insert")
            except PtoError as error:
                first = first or error
                if not is_misled(error):
                    raise
                continue
            seconds = time.process_time() - started
            return judged(path, name, seconds, kernel.function, draw, drawn)
    except PtoError as error:
        first = error
    assert first is not None
    found = first.diagnostics[0]
    return Verdict(name, False, reasons=(f"{found.code}: {found.message}",))


def judged(
    path: Path, name: str, seconds: float, function: Function, draw: Draw, after: list[Any]
) -> Verdict:
    """Hold what the product has left in the arguments it was given against a run of the other.

    Where they differ, further runs on other garbage tell what is nobody's promise. Slots of a FIFO
    and the words of a barrier are their own business.
    """
    own = re.findall(r"(?:gm_slot_buffer = |pto\.syncall\()%(\w+)", path.read_text("utf-8"))
    kept = [p.name not in own for p in function.params]
    one, old = draw(), draw()
    after = [_flat(each) for each in after]
    text = path.read_text("utf-8")
    try:
        run(text, one, 1)
        one, old = ([_flat(each) for each in made] for made in (one, old))
        touched = {
            n: _touched((old[n], after[n], one[n]))
            for n in range(len(old))
            if kept[n] and isinstance(old[n], np.ndarray)
        }
        others: list[list[Any]] = []
        if any(difference(after[n][at], one[n][at], at) for n, at in touched.items()):
            # Ones show through most results; where random bytes led to the same NaN, others do not.
            for garbage in (0, 2):
                made = draw()
                run(text, made, garbage)
                others.append([_flat(each) for each in made])
    except Stuck as error:
        return Verdict(name, True, seconds, (f"the other interpreter is stuck: {error}",))
    reasons: list[str] = []
    remarks: list[str] = []
    for n, at in touched.items():
        is_open = np.zeros(len(at), bool)
        for two in others:
            is_open |= _bits(one[n][at]) != _bits(two[n][at])
        if is_open.any():
            remarks.append(f"%{n}: {int(is_open.sum())} elements are what nobody has written")
        rest = at[~is_open]
        found = difference(after[n][rest], one[n][rest], rest)
        reasons += [f"%{n}: {found}"] if found else []
    written = sum(map(len, touched.values()))
    return Verdict(name, True, seconds, tuple(reasons), tuple(remarks), written)


def _flat(argument: Any) -> Any:
    return argument.reshape(-1) if isinstance(argument, np.ndarray) else argument


def _bits(array: np.ndarray) -> np.ndarray:
    return array.view(f"u{array.dtype.itemsize}")


def _touched(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """The elements that somebody has changed, of arrays that may be large."""
    found: list[np.ndarray] = []
    for start in range(0, len(arrays[0]), 1 << 22):
        old, *others = (_bits(each[start : start + (1 << 22)]) for each in arrays)
        differ = [np.flatnonzero(old != each) for each in others]
        found.append(start + np.unique(np.concatenate(differ)))
    return np.concatenate(found)


@np.errstate(all="ignore")
def difference(got: np.ndarray, expected: np.ndarray, places: np.ndarray) -> str:
    """How elements differ; the empty string where they agree."""
    if not len(got):
        return ""
    a, b = (x.astype(np.float64) for x in (got, expected))
    tolerance = TOLERANCE.get(got.dtype.name, 0.0)
    finite = np.abs(b[np.isfinite(b)])
    atol = tolerance * float(finite.mean()) if len(finite) else 0.0
    wrong = ~np.isclose(a, b, tolerance, atol, equal_nan=True)
    if not wrong.any():
        return ""
    at = int(np.flatnonzero(wrong)[0])
    largest = float(np.nan_to_num(np.abs(a - b))[wrong].max())
    return (
        f"{int(wrong.sum())} of {len(got)} {got.dtype.name} differ by up to {largest:.3g}; "
        f"at {int(places[at])}: {a[at]:g}, not {b[at]:g}"
    )
