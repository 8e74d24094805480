"""Conformance: run a folder of recorded instruction cases and compare the results bit by bit.

A case names operands with their types, the input arrays, the calls to make and the outputs that
were seen elsewhere (`manifest.json` and one `.npz` per case). Each case runs on the permissive
`cpu` profile. A case marked as disputed - by the folder, or by our own list of deviations - is run
and reported, but counts neither way.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from enum import EnumType
from fnmatch import fnmatch
from functools import cache
from importlib import resources
from io import StringIO
from pathlib import Path
from typing import Any, cast

import numpy as np

import ptokit
from ptokit.base.convert import to_float64
from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import NotSupported, PtoError, usage_error
from ptokit.base.dtypes import DType, dtype
from ptokit.base.enums import (
    BLayout,
    CompactMode,
    Direction,
    Layout,
    PadCustom,
    PadValue,
    PadValueCustom,
    PadValueCustom16,
    SLayout,
    TileSplitAxis,
    TileType,
)
from ptokit.base.layout import Array
from ptokit.base.tensors import ConvSpec, GlobalSpec
from ptokit.base.tiles import DYNAMIC, TileSpec
from ptokit.folders.parcels import journal_of, packed
from ptokit.frontend.instruction import Instruction
from ptokit.frontend.pipes import TPipe, cube, subblock
from ptokit.frontend.session import current, device
from ptokit.frontend.tensor_types import ConvTile, conv_class, global_class
from ptokit.frontend.types import Tile
from ptokit.isa import INSTRUCTIONS
from ptokit.machine.calls import tile_access
from ptokit.machine.objects import Bound, ConvObject, GlobalObject, TileObject
from ptokit.tasks import Executor, Jobs, Task

TOLERANCE = {"f32": 1e-5, "f16": 2e-3, "bf16": 1.6e-2}  # relative, for cases compared as "close"
UNWRITTEN = 0xA5  # outputs are filled with this byte before the call


@dataclass(frozen=True)
class Verdict:
    """The outcome of one case."""

    instruction: str
    case: str
    status: str  # passed | failed | disputed | unsupported
    reason: str = ""

    @property
    def id(self) -> str:
        return f"{self.instruction}/{self.case}"


@dataclass(frozen=True)
class Summary:
    """Counts over a whole folder."""

    verdicts: tuple[Verdict, ...]

    def count(self, status: str) -> int:
        return sum(v.status == status for v in self.verdicts)

    @property
    def clean(self) -> bool:
        return not self.count("failed") and not self.count("unsupported")

    def __str__(self) -> str:
        return (
            f"conform: {self.count('passed')} passed, {self.count('failed')} failed, "
            f"{self.count('disputed')} disputed, {self.count('unsupported')} unsupported "
            f"of {len(self.verdicts)}"
        )


def load_cases(folder: Path, only: Iterable[str] = ()) -> list[dict[str, Any]]:
    """Read the manifest; `only` keeps the named instructions."""
    manifest = folder / "manifest.json"
    try:
        cases: Any = json.loads(manifest.read_text("utf-8"))["cases"]
    except FileNotFoundError:
        raise usage_error("conform.manifest", f"there is no manifest.json in {folder}") from None
    except OSError as error:
        reason = error.strerror
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        reason = f"it is not a manifest: {error}"
    else:
        if isinstance(cases, list):
            wanted = set(only)
            return [c for c in cast("list[Any]", cases) if not wanted or _told(c)[0] in wanted]
        reason = "it is not a manifest: its cases are no list"
    raise usage_error("conform.manifest", f"cannot read {manifest}: {reason}")


def run_case(folder: Path, case: dict[str, Any]) -> Verdict:
    """Run one case on a fresh machine and judge it.

    A case that makes no sense, or that we stumble over, has failed: the others go on.
    """
    try:
        return _judged(folder, case)
    except Exception as error:
        return Verdict(*_told(case), "failed", f"{type(error).__name__}: {error}")


@dataclass(frozen=True)
class Recorded:
    """A case of a folder."""

    folder: Path
    case: Any

    def files(self) -> Iterator[Path]:
        file = self.case.get("file") if isinstance(self.case, dict) else None
        if isinstance(file, str):
            yield self.folder / file

    def moved(self, place: Callable[[Path], Path]) -> Recorded:
        for path in self.files():
            return replace(self, case={**self.case, "file": str(place(path))})
        return self


def judged(recorded: Recorded) -> Verdict:
    """Run one case, wherever it is."""
    return run_case(recorded.folder, recorded.case)


def run_cases(
    folder: Path, cases: Sequence[Any], jobs: Jobs = 1, resume: bool | None = None
) -> Iterator[Verdict]:
    """The verdict of every case, in their order; `jobs` and `resume` are those of `run_folder`."""
    executor, listed = Executor.of(jobs), [Recorded(folder, case) for case in cases]
    work, pack = packed(executor, judged, Verdict)
    tasks = (Task(str(number), pack(case)) for number, case in enumerate(listed))
    with journal_of("conform", listed, Verdict, resume) as journal:
        for each in executor.results(work, tasks, ordered=True, journal=journal):
            if each.trouble is None:
                yield each.value
            else:
                yield Verdict(*_told(cases[each.number]), "failed", each.trouble.reason)


def _told(case: Any) -> tuple[str, str]:
    """The names of an instruction and a case, however odd it is."""
    if not isinstance(case, dict):
        return "?", "?"
    return str(case.get("instr", "?")), str(case.get("case", "?"))


def _judged(folder: Path, case: dict[str, Any]) -> Verdict:
    name, label = case["instr"], case["case"]
    dispute = case.get("disputed")
    missing = sorted({op for op in _called(case) if op not in INSTRUCTIONS})
    if missing:
        return Verdict(name, label, "unsupported", f"{', '.join(missing)} is not implemented")
    try:
        with device("cpu", mode="auto"):
            complaint = _Run(case, _arrays(folder, case)).compare()
    except NotSupported as error:
        return Verdict(name, label, "unsupported", error.diagnostics[0].message)
    except PtoError as error:
        complaint = str(error).strip()
    if complaint and not dispute:
        dispute = _explained(folder, case)
    if dispute:
        return Verdict(name, label, "disputed", f"{dispute} ({complaint or 'agrees here'})")
    return Verdict(name, label, "failed" if complaint else "passed", complaint)


def _arrays(folder: Path, case: dict[str, Any]) -> dict[str, Array]:
    """The arrays of a case. Objects of Python are refused: reading them would run their code."""
    with np.load(folder / case["file"], allow_pickle=False) as recorded:
        return dict(recorded)


def _called(case: dict[str, Any]) -> Iterator[str]:
    for call in case.get("calls", []) + case.get("steps", []):
        yield call["op"]


@cache
def deviations() -> dict[str, dict[str, str]]:
    """Cases in which we follow the specification against the recording, by pattern of their id."""
    text = resources.files("ptokit").joinpath("deviations.json").read_text("utf-8")
    return json.loads(text)


def deviation(case: str) -> dict[str, str] | None:
    """The entry of our list that a case falls under."""
    return next((d for pattern, d in deviations().items() if fnmatch(case, pattern)), None)


def _explained(folder: Path, case: dict[str, Any]) -> str:
    """Why a case differs from its recording, if our list knows and the explanation holds.

    An entry names an input that the recording program damaged before it used it. The case counts as
    disputed only when it agrees once the same bytes are gone, so no other difference can hide here.
    """
    entry = deviation(f"{case['instr']}/{case['case']}")
    if entry is None:
        return ""
    with device("cpu", mode="auto"):
        arrays = _arrays(folder, case)
        packed = next(o for o in case["operands"] if o["name"] == entry["cleared_by"])
        damaged = arrays[f"{entry['damaged']}.in2d"].copy()
        damaged.reshape(-1).view(np.uint8)[: packed["rows"] * packed["cols"] // 2] = 0
        arrays[f"{entry['damaged']}.in2d"] = damaged
        return "" if _Run(case, arrays).compare() else entry["why"]


class _Run:
    """The operands of a case, alive."""

    def __init__(self, case: dict[str, Any], arrays: dict[str, Array]) -> None:
        self.case = case
        self.arrays = arrays
        self.operands: dict[str, Any] = {}
        self.buffers: dict[str, Array] = {}
        self.extra: dict[str, Any] = {}
        makers = {"tile": self._tile, "convtile": self._conv, "global": self._global}
        for declared in case["operands"]:
            self.operands[declared["name"]] = makers[declared["kind"]](declared)
        # A case whose calls never mention its own instruction is about binding: its tiles share
        # one address.
        named = case["instr"].replace("comm_", "comm.")
        if named not in set(_called(case)) and case.get("calls"):
            tiles = [o for o in self.operands.values() if isinstance(o, Bound)]
            for tile in tiles[:-1]:
                tile.share(tiles[-1])
        if "pipe" in case:
            self._run_pipe(case["pipe"])
        else:
            for call in case["calls"]:
                self._call(call)

    # ---- operands ----------------------------------------------------------------------------

    def _tile(self, d: dict[str, Any]) -> Tile:
        dynamic = d["dynamic_valid"]
        spec = TileSpec.of(
            TileType[d["loc"]],
            dtype(d["dtype"]),
            d["rows"],
            d["cols"],
            BLayout[d["blayout"]],
            DYNAMIC if dynamic else d["valid_row"],
            DYNAMIC if dynamic else d["valid_col"],
            SLayout[d["slayout"]],
            d["fractal"],
            _pad(d["pad"]),
            CompactMode[d["compact"]],
        )
        tile = Tile.of(spec)
        if dynamic:
            tile.SetValidShape(d["valid_row"], d["valid_col"])
        _blank(tile)
        given = self.arrays.get(d["name"] + ".in2d")
        if given is not None:
            tile_access(tile, whole=True).write(_typed(given, spec.dtype))
        return tile

    def _conv(self, d: dict[str, Any]) -> ConvTile:
        shape = tuple(d["shape"])
        size = int(np.prod(shape))
        spec = ConvSpec.of(TileType[d["loc"]], dtype(d["dtype"]), size, Layout[d["layout"]], shape)
        tile = conv_class(spec)()
        _blank(tile)
        given = self.arrays.get(d["name"] + ".in")
        if given is not None:
            tile_access(tile, whole=True).write(_typed(given, spec.dtype).reshape(1, -1))
        for setter, value in _setup_calls(d["setup"]):
            getattr(tile, setter)(value)
        return tile

    def _global(self, d: dict[str, Any]) -> GlobalObject:
        kind = dtype(d["dtype"])
        name = d["name"]
        given = self.arrays.get(name + ".in")
        if given is None:
            like = self.arrays[name + ".out"]
            given = np.full(like.nbytes, UNWRITTEN, np.uint8).view(like.dtype)
        self.buffers[name] = _typed(given.copy(), kind)
        spec = GlobalSpec.of(kind, tuple(d["shape"]), tuple(d["stride"]), Layout[d["layout"]])
        return global_class(spec)(self.buffers[name])

    # ---- calls -------------------------------------------------------------------------------

    def _call(self, call: dict[str, Any]) -> None:
        instruction = Instruction(INSTRUCTIONS[call["op"]])
        template = tuple(self._value(t) for t in call["template"])
        run = instruction[template] if template else instruction
        printed = StringIO()
        with redirect_stdout(printed):
            result: Any = run(*(self._value(a) for a in call["args"]))
        self.extra["text"] = self.extra.get("text", "") + printed.getvalue()
        if result is not None:
            self.extra["result"] = result

    def _value(self, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        if "ref" in given:
            return self.operands[given["ref"]]
        if "enum" in given:
            kind, member = given["enum"].split(".")
            chosen = getattr(ptokit, kind)
            if not isinstance(chosen, EnumType):
                raise ValueError(f"{kind} is no enumeration")
            return chosen[member if member != "None" else "None_"]
        if "value" in given:
            return given["value"]
        if "bits" in given:
            kind = dtype(given["dtype"])
            raw = int(str(given["bits"]), 0)
            code = np.array([raw], kind.uint).view(kind.np)
            value = to_float64(code, kind)[0]
            return int(code[0]) if kind.is_integer else float(value)
        if "dtype" in given:
            return dtype(given["dtype"])
        if "executed" in given:
            self.extra["executed"] = ptokit.MrgSortExecutedNumList()
            return self.extra["executed"]
        if "group" in given:
            members = [self.operands[name] for name in given["group"]]
            return ptokit.comm.ParallelGroup(members, given["root"])
        return next(iter(given.values()))  # key, counter: plain numbers

    def _run_pipe(self, told: dict[str, Any]) -> None:
        """Open the pipe of a FIFO case and take its steps in turn, each on one core."""
        direction = Direction[told["direction"]]
        kind = TPipe[told["flag_id"], direction, told["slot_size"], told["slot_num"]]
        rings = 2 if direction in (Direction.DIR_BOTH, Direction.DIR_BOTH_GM) else 1
        size = rings * told["slot_size"] * told["slot_num"]
        pipe = kind(np.zeros(size, np.uint8) if told["through"] == "gm" else None)
        for step in self.case["steps"]:
            act = cube() if step["core"] == "cube" else subblock(step["subblock"])
            tile = [self.operands[step["tile"]]] if step["tile"] else []
            with act:
                Instruction(INSTRUCTIONS[step["op"]])[TileSplitAxis[step["split"]]](pipe, *tile)

    # ---- comparison --------------------------------------------------------------------------

    def compare(self) -> str:
        """Return what differs from the recording; empty when nothing does."""
        complaints = [
            text
            for key, expected in self.arrays.items()
            if key.endswith((".out", ".out2d")) and (text := self._compare(key, expected))
        ]
        return "; ".join(complaints)

    def _compare(self, key: str, expected: Array) -> str:
        name, _, kind = key.rpartition(".")
        operand = self.operands.get(name)
        if operand is None:
            return self._compare_extra(name, expected)
        element = operand.spec.dtype
        want = _typed(expected, element)
        if isinstance(operand, TileObject):
            if kind == "out":
                return ""  # the same bytes in memory order; .out2d is the logical view
            window = tile_access(operand, whole=True)
            got = window.read()
            if self.case["compare"]["region"] == "valid":
                got, want = got[: operand.vr, : operand.vc], want[: operand.vr, : operand.vc]
                window = tile_access(operand)
            if not window.is_defined():
                return f"{name}: element {window.first_poison()} is undefined"
        elif isinstance(operand, ConvObject):
            got = tile_access(operand, whole=True).read()[0]
        else:
            got = self.buffers[name]
        exact = self.case["compare"]["mode"] == "exact"
        return _difference(name, got, want, element, exact)

    def _compare_extra(self, name: str, expected: Array) -> str:
        got = {
            "alias_off": self._alias_offset,
            "reg": lambda: current().core.registers["QUANT_PRE"],
            "executed": lambda: list(self.extra["executed"]),
            "result": lambda: int(self.extra["result"]),
            "text": lambda: list(self.extra["text"].encode()),
        }[name]()
        if expected.dtype.kind in "US":  # text recorded as a string instead of its bytes
            expected = np.frombuffer(str(expected.item()).encode(), np.uint8)
        want: Any = expected.tolist()
        want = want if isinstance(got, list) else want[0]
        return "" if got == want else f"{name}: got {got}, expected {want}"

    def _alias_offset(self) -> int:
        dst, src = self.operands["dst"], self.operands["src"]
        return dst.address - src.address if dst.storage is src.storage else -1


def _pad(text: str) -> int:
    """A pad value by name, as a number, or custom: `PadValueCustom16(0x3c00)`, `...(-1.5f)`."""
    if text[0].isdigit():
        return int(text, 0)
    name, _, value = text.rstrip(")").partition("(")
    if not value:
        return PadValue[name]
    if name == "PadCustom" or (set(value) & set(".fF") and "0x" not in value):
        return PadCustom(float(value.rstrip("fF")))  # a float stands for its bits
    return {"PadValueCustom": PadValueCustom, "PadValueCustom16": PadValueCustom16}[name](
        int(value, 0)
    )


def _setup_calls(text: str) -> Iterator[tuple[str, Any]]:
    """Set-up of a convolution tile is recorded as setter calls; give them as (name, value)."""
    padding = re.search(r"pl\[4\]=\{([^}]*)\}", text)
    for setter, argument in re.findall(r"\.(Set\w+)\(([^;]*)\);", text):
        if argument == "pl" and padding:
            yield setter, [int(v) for v in padding.group(1).split(",")]
        else:
            yield setter, float(argument.rpartition(")")[2]) if ")" in argument else int(argument)


def _typed(array: Array, kind: DType) -> Array:
    """Recorded arrays hold bit patterns of types NumPy lacks; give them their type back."""
    return array.view(kind.np) if array.dtype != kind.np else array


def _blank(tile: Tile | ConvTile) -> None:
    current().place(tile)
    assert tile.storage is not None
    tile.storage.data[:] = UNWRITTEN
    tile.storage.shadow[:] = 1


def _difference(name: str, got: Array, want: Array, kind: DType, exact: bool) -> str:
    mine, theirs = (np.ascontiguousarray(each).view(kind.uint) for each in (got, want))
    bits_differ = mine != theirs
    if not bits_differ.any():
        return ""
    if kind.is_integer and not kind.stores_codes:  # a double does not hold all of them
        a, b = (each.astype(object) for each in (got, want))
        differ = bits_differ
    else:
        a, b = to_float64(got, kind), to_float64(want, kind)
        differ = bits_differ & ~(np.isnan(a) & np.isnan(b))
    if not exact:
        differ &= ~_close(a, b, kind)
    if not differ.any():
        return ""
    where = tuple(int(i) for i in np.argwhere(differ)[0])
    return (
        f"{name}: {int(differ.sum())} of {differ.size} differ, first at {where}: "
        f"got {a[where]}, expected {b[where]}"
    )


def _close(a: Array, b: Array, kind: DType) -> Array:
    if kind.is_integer:
        return np.abs(a - b) <= 1
    rtol = TOLERANCE.get(kind.name, 0.0)
    finite = np.abs(b[np.isfinite(b)])
    atol = rtol * (finite.max() if finite.size else 0.0)
    with np.errstate(invalid="ignore"):
        return (a == b) | (np.abs(a - b) <= atol + rtol * np.abs(b))
