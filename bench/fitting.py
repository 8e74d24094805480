"""Fitting the numbers of the timing model to published figures, by least squares.

Whole kernels are walked once; a fit only runs the model over their streams again. Few numbers are
free, each the constant of one effect, and every one begins at what its figure says by itself.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from ptokit.isa.facts import Ops, TileFacts
from ptokit.isa.spec import INSTRUCTIONS
from ptokit.isa.targets import TARGETS
from ptokit.timing.params import FOLDER, Params, load

_L1, _CONV = "cost.transfer, GM to L1", "cost.transfer, GM to L1 (convolution)"
_UB, _FIX = "cost.transfer, GM to UB", "cost.transfer, L0C to GM"
# Numbers are fitted in stages: those of the cube to products, then what attention and sorting add.
# A row of names is one number that they share.
STAGES: dict[str, list[tuple[tuple[str, ...], list[tuple[str, ...]]]]] = {
    "a2a3": [
        (
            ("gemm", "conv2d"),
            [
                ("launch.start",),
                (f"{_L1}.work.transfers", f"{_CONV}.work.transfers"),
                (f"{_L1}.memory.rate", f"{_CONV}.memory.rate"),
                (f"{_L1}.memory.miss_rate", f"{_CONV}.memory.miss_rate"),
                (f"{_FIX}.memory.rate",),
                (f"{_FIX}.completion.tail",),
                ("cost.transfer, L1 to L0A.work.start", "cost.transfer, L1 to L0B.work.start"),
                (
                    "cost.transfer, L1 (convolution) to L0A.work.start",
                    "cost.transfer, L1 (convolution) to L0B.work.start",
                ),
                ("cost.matrix product.work.start",),
            ],
        ),
        (("flash_attention",), [("launch.cluster",), ("cost.transfer, UB to GM.work.transfers",)]),
        (("topk",), [("cost.sorting.work.records",), (f"{_UB}.memory.miss_start",)]),
    ],
    "a5": [
        (
            ("matmul_mxfp8",),
            [
                (f"{_L1}.memory.rate",),
            ],
        ),
        (
            ("matmul_mxfp4",),
            [
                (
                    "cost.transfer, L1 to L0A, sub-byte.work.bytes",
                    "cost.transfer, L1 to L0B, sub-byte.work.bytes",
                )
            ],
        ),
    ],
}
_BUSY = 0.5  # weight of a point of a busy ratio against a percent of the time


class Figure(NamedTuple):
    """One published figure: a time in microseconds, or a share of it in percent."""

    kernel: str
    size: tuple[tuple[str, int], ...]
    what: str
    value: float
    cores: int | None

    def __str__(self) -> str:
        return f"{self.kernel} {' '.join(f'{k}={v}' for k, v in self.size)} {self.what}"


def figures(data: Path, target: str) -> list[Figure]:
    """The published figures of whole kernels on a target."""
    import yaml

    found: list[Figure] = []
    for entry in yaml.safe_load((data / "fit.yaml").read_text("utf-8")):
        device = entry.get("device", {})
        if entry["target"] != target or "unit" in entry:
            continue
        cores = device.get("cube_cores") or device.get("vector_cores")
        for point in entry["points"]:
            size = tuple((k, v) for k, v in point.items() if k not in ("us", "busy"))
            found.append(Figure(entry["kernel"], size, "us", point["us"], cores))
            busy: dict[str, float] = point.get("busy", {})
            found += [Figure(entry["kernel"], size, k, v, cores) for k, v in busy.items()]
    return found


def residuals(
    params: Params, timings: Mapping[Any, Any], known: Sequence[Figure], pipes: Mapping[str, str]
) -> list[float]:
    """What the model says beside each figure: percent of a time, points of a share."""
    ran: dict[Any, Any] = {}
    out: list[float] = []
    for figure in known:
        key = figure.kernel, figure.size
        if key not in ran:
            before = timings[key]
            ran[key] = type(before).of(
                before.kernel,
                before.streams,
                params=params,
                cores=before.cores,
                clock=before.clock,
                trace=False,
            )
        timing = ran[key]
        if figure.what == "us":
            out.append(100 * (timing.us / figure.value - 1))
            continue
        stores = "FIX" if "FIX" in timing.busy else "MTE3"
        pipe = pipes.get(figure.what, stores)
        out.append(100 * timing.busy.get(pipe, 0.0) - figure.value)
    return out


def solve(
    params: Params,
    free: Sequence[tuple[str, ...]],
    error: Callable[[Params], np.ndarray],
    rounds: int = 6,
) -> Params:
    """Gauss and Newton, each step at most a third of a value."""
    values = np.array([params[names[0]] for names in free])

    def at(point: np.ndarray) -> Params:
        pairs = zip(free, point, strict=True)
        return params.changed_by({name: float(v) for names, v in pairs for name in names})

    best, least = values, error(at(values))
    for _ in range(rounds):
        steps = np.maximum(np.abs(best) * 0.02, 1e-6)
        columns = []
        for index, step in enumerate(steps):
            moved = best.copy()
            moved[index] += step
            columns.append((error(at(moved)) - least) / step)
        slopes = np.stack(columns, axis=1) * best  # relative: numbers of any size compare
        prior = 0.3 * np.eye(len(best))  # what no figure tells stays where it is
        stacked = np.concatenate([slopes, prior])
        wanted = np.concatenate([-least, np.zeros(len(best))])
        change = np.clip(np.linalg.lstsq(stacked, wanted, rcond=None)[0], -0.33, 0.33)
        tried = best * (1 + change)
        found = error(at(tried))
        if found @ found > 0.999 * (least @ least):
            break
        best, least = tried, found
    return at(best)


def left_out(
    kernels: Sequence[Figure],
    refit: Callable[[Sequence[Figure]], Params],
    error: Callable[..., Any],
) -> dict[str, float | None]:
    """How far off each time is when nothing of that run was fitted to; None: nothing else was left.

    A fit begins at the numbers of the file, so what only one run tells stays as it is there.
    """
    runs = dict.fromkeys((f.kernel, f.size) for f in kernels)
    found: dict[str, float | None] = {}
    for run in runs:
        others = [f for f in kernels if (f.kernel, f.size) != run]
        (time,) = [f for f in kernels if (f.kernel, f.size) == run and f.what == "us"]
        found[str(time)] = float(error(refit(others), [time])[0]) if others else None
    return found


def cross_validate(
    data: Path, kernel: str, timed: Any, pipes: Mapping[str, str]
) -> dict[str, float | None]:
    """Print what is left of each time when its run is left out of the fit."""
    found: dict[str, float | None] = {}
    for target, stages in STAGES.items():
        known = figures(data, target)
        for kernels, free in stages:
            if kernel and kernel not in kernels:
                continue
            mine = [f for f in known if f.kernel in kernels]
            timings = {
                (f.kernel, f.size): timed(f.kernel, target, f.cores, **dict(f.size))
                for f in mine
                if f.what == "us"
            }
            start = load(target)

            def refit(
                others: Sequence[Figure], start: Any = start, free: Any = free, t: Any = timings
            ) -> Params:
                return solve(start, free, partial(weighed, t, others, pipes), rounds=3)

            found |= left_out(mine, refit, lambda p, f, t=timings: residuals(p, t, f, pipes))
    for name, error in found.items():
        print(f"  {name:52} " + ("the only one" if error is None else f"left out {error:+6.1f} %"))
    return found


def fit(data: Path, write: bool, timed: Any, pipes: Mapping[str, str]) -> None:
    """Print residuals before and after; write when asked."""
    for target in STAGES:
        params, known = load(target), figures(data, target)
        print(f"{target}: {params.path} {params.digest}")
        timings = {
            (f.kernel, f.size): timed(f.kernel, target, f.cores, **dict(f.size))
            for f in known
            if f.what == "us"
        }
        notes: dict[str, str] = {}
        fitted = params
        for kernels, free in STAGES[target]:
            mine = [f for f in known if f.kernel in kernels]
            fitted = solve(fitted, free, partial(weighed, timings, mine, pipes))
            worst = max(abs(e) for e in _times(residuals(fitted, timings, mine, pipes), mine))
            notes |= {name: f"at most {worst:.1f} % of a time" for names in free for name in names}
        before, after = (residuals(p, timings, known, pipes) for p in (params, fitted))
        for figure, old, new in zip(known, before, after, strict=True):
            unit = "%" if figure.what == "us" else "points"
            print(f"  {figure!s:52} {figure.value:8.1f}  {old:+6.1f} -> {new:+6.1f} {unit}")
        for _, free in STAGES[target]:
            for names in free:
                print(f"  {names[0]:58} {params[names[0]]:10.4g} -> {fitted[names[0]]:10.4g}")
        fitted, found = fit_singles(fitted, singles(data, target))
        notes |= found
        if write:
            store(fitted, notes)


def weighed(
    timings: Mapping[Any, Any], known: Sequence[Figure], pipes: Mapping[str, str], params: Params
) -> np.ndarray:
    """Residuals as a fit weighs them."""
    weights = [1.0 if figure.what == "us" else _BUSY for figure in known]
    return np.array(weights) * np.array(residuals(params, timings, known, pipes))


def _times(found: Sequence[float], known: Sequence[Figure]) -> list[float]:
    return [e for f, e in zip(known, found, strict=True) if f.what == "us"]


def store(params: Params, notes: Mapping[str, str]) -> None:
    """Put values and residuals into the file, and nothing else."""
    path = FOLDER / params.path
    text = path.read_text("utf-8")
    for name, note in notes.items():
        head = _heading(name)
        at = text.index(head)
        end = text.find("\n[", at + 1)
        end = len(text) if end < 0 else end
        entry = re.sub(r"(?m)^value = .*$", f"value = {params[name]:.5g}", text[at:end])
        entry = re.sub(r"(?m)^residual = .*$", f'residual = "{note}"', entry)
        text = text[:at] + entry + text[end:]
    path.write_text(text, "utf-8")


def _heading(name: str) -> str:
    """The line of a number in the file: `cost.GM to L1.work.start` has a class with spaces."""
    if not name.startswith("cost."):
        return f"[{name}]"
    kind, bound, feature = name.removeprefix("cost.").rsplit(".", 2)
    quoted = kind if kind.replace("_", "").isalnum() else f'"{kind}"'
    return f"[cost.{quoted}.{bound}.{feature}]"


# ---- single instructions -------------------------------------------------------------------------


class Single(NamedTuple):
    """A profiled instruction: the operands that its class looks at, and cycles."""

    name: str
    ops: Ops
    cycles: float
    shape: tuple[int, ...]


def cycles_of(params: Params, single: Single) -> float:
    """One instruction by itself: until it is complete."""
    insn = INSTRUCTIONS[single.name]
    written = {operand.name for operand in insn.operands if operand.writes}
    law = params.law(insn, insn.cost.of(single.ops, written))
    features = insn.cost.measure(single.ops)
    work = [start + sum(each * features[f] for f, each in terms) for start, terms in law.bounds]
    return max(work) + law.tail


def errors(of: Sequence[Single], params: Params) -> np.ndarray:
    """Residuals of profiled instructions, in percent."""
    return np.array([100 * (cycles_of(params, each) / each.cycles - 1) for each in of])


def solve_class(
    params: Params, kind: str, free: Sequence[str], of: Sequence[Single], rounds: int = 20
) -> Params:
    """The least sum of relative errors: a law is the longest of some sums, each of them linear.

    Errors count by their size, not its square: some of the source is noise.
    """
    prefix = f"cost.{kind}."
    features = [{"start": 1.0, **INSTRUCTIONS[e.name].cost.measure(e.ops)} for e in of]
    cycles = np.array([each.cycles for each in of])
    names = list(params.names(prefix))
    values = np.array([params[name] for name in names])
    parts = [name[len(prefix) :].rsplit(".", 1) for name in names]
    bounds = sorted({bound for bound, _ in parts if bound != "completion"})
    rows = {
        bound: np.array(
            [
                [
                    f.get(what, 1.0) if where in (bound, "completion") else 0.0
                    for where, what in parts
                ]
                for f in features
            ]
        )
        for bound in bounds
    }
    is_free = np.array([name in free for name in names])
    best, least = values, np.inf
    for _ in range(rounds):
        sums = np.stack([rows[bound] @ values for bound in bounds])
        active = sums.argmax(axis=0)
        error = np.abs(sums.max(axis=0) / cycles - 1)
        if error.sum() < least:
            best, least = values.copy(), error.sum()
        weight = 1 / np.sqrt(np.maximum(error, 0.01)) / cycles
        matrix = np.array([rows[bounds[b]][i] for i, b in enumerate(active)]) * weight[:, None]
        wanted = cycles * weight - matrix[:, ~is_free] @ values[~is_free]
        scale = np.maximum(np.abs(values[is_free]), 0.1)
        hold = 1e-3 * np.eye(is_free.sum())  # what no figure tells stays where it is
        stacked = np.concatenate([matrix[:, is_free] * scale, hold])
        target = np.concatenate([wanted, 1e-3 * values[is_free] / scale])
        found = np.linalg.lstsq(stacked, target, rcond=None)[0] * scale
        values = values.copy()
        values[is_free] = np.maximum(found, 0.0)
    return params.changed_by(
        {name: float(v) for name, v, f in zip(names, best, is_free, strict=True) if f}
    )


def fit_singles(params: Params, known: Sequence[Single]) -> tuple[Params, dict[str, str]]:
    """Fit each class to its instructions, and print what is left when a shape is left out."""
    classes: dict[str, list[Single]] = {}
    for single in known:
        classes.setdefault(INSTRUCTIONS[single.name].cost.name, []).append(single)
    notes: dict[str, str] = {}
    everything: list[float] = []
    for kind, mine in sorted(classes.items()):
        numbers = params.names(f"cost.{kind}.")
        free = [name for name in numbers if not params.numbers[name].assumed]
        start, params = params, solve_class(params, kind, free, mine)
        left: list[float] = []
        for shape in {each.shape for each in mine}:
            others = [each for each in mine if each.shape != shape]
            features = [INSTRUCTIONS[each.name].cost.measure(each.ops) for each in others]
            if len({tuple(each.values()) for each in features}) < len(free):
                continue  # the others do not tell a start from a slope
            rough = start.changed_by({name: 1.2 * start[name] for name in free})
            without = solve_class(rough, kind, free, others)
            left += list(np.abs(errors([e for e in mine if e.shape == shape], without)))
        everything += left
        shown = np.abs(errors(mine, params))
        alone = f", left out {median(left):5.1f} %, most {max(left):6.1f} %" if left else ""
        print(f"  {kind:32} {len(mine):4} figures: median {median(shown):5.1f} %{alone}")
        notes |= {name: f"median {median(shown):.1f} %" for name in free}
    print(f"  single instructions, each shape left out: median {median(everything):.1f} %")
    return params, notes


_TYPES = {
    "float": "f32", "half": "f16", "int32_t": "i32", "int16_t": "i16", "Float": "f32",
    "Half": "f16", "BFloat16": "bf16", "Int8": "i8", "HFloat8": "hif8", "Float8E4M3": "f8e4m3",
    "Float8E5M2": "f8e5m2", "Float4E1M2": "f4e1m2x2", "Float4E2M1": "f4e2m1x2",
}  # fmt: skip


def _tile(kind: str, rows: int, cols: int, valid: tuple[int, int]) -> TileFacts:
    from ptokit.base.dtypes import dtype
    from ptokit.base.enums import TileType
    from ptokit.base.tiles import TileSpec

    spec = TileSpec.of(TileType.Vec, dtype(_TYPES[kind]), rows, cols)
    return TileFacts(spec, valid)


def singles(data: Path, target: str) -> list[Single]:
    """The profiled instructions of a target, as far as a tile says what they did."""
    on, out = TARGETS[target], list[Single]()
    with (data / f"ops_{target}.csv").open() as file:
        for row in csv.DictReader(file):
            name, cycles = row["op"], float(row["cycles"])
            if name not in INSTRUCTIONS:
                continue
            if target == "a5":
                kinds = row["types"].split()
                sizes = [int(row[k]) for k in ("rows", "cols", "valid_rows", "valid_cols")]
                valid = sizes[2], sizes[3]
                tiles = [_tile(kind, sizes[0], sizes[1], valid) for kind in kinds]
                attrs = {"PrecisionType": _Named(row["params"].upper())} if row["params"] else {}
            else:
                tiles, attrs = _a2a3(row), {}
            first = tiles[0]
            ops = Ops({"dst": tiles[-1], "src": first}, attrs, on, "manual")
            out.append(Single(name, ops, cycles, (first.rows, first.cols, first.vr, first.vc)))
    return out


class _Named(NamedTuple):
    name: str


def _a2a3(row: Mapping[str, str]) -> list[TileFacts]:
    words = [w for w in row["args"].split() if w not in ("true", "false")]
    kinds = [row["dtype"], *(w for w in words if w in _TYPES)]
    sizes = [int(w) for w in words if w not in _TYPES]
    rows, cols = sizes[:2]
    whole = tuple(sizes[2:4]) if len(sizes) == 4 else (rows, cols)
    return [_tile(kind, whole[0], whole[1], (rows, cols)) for kind in kinds]
