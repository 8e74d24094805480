"""Control: cores as coroutines that stop where they wait for each other, and for nothing else."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Generator, Sequence
from typing import Any

import numpy as np

from tests.models.meaning import MEANINGS, convert, padding
from tests.models.memory import DTYPES, SIZE, Pointer, Tile, View, tile
from tests.models.text import Function, Op, read, tile_keys

Run = Generator[None, None, list[Any]]


class Stuck(Exception):  # noqa: N818
    """Every core waits."""


class Unread(Exception):  # noqa: N818
    """A text that is not of the kind this interpreter knows; the reason is its cause."""


class Cluster:
    """What the cores of a kernel share."""

    def __init__(self, functions: dict[str, Function], target: str) -> None:
        self.functions = functions
        self.target = target
        self.to_vector: list[deque[np.ndarray]] = [deque(), deque()]
        self.to_cube: list[deque[np.ndarray]] = [deque(), deque()]
        self.cores = 0
        self.arrived = 0  # at barriers of all cores, in all


def run(text: str, args: Sequence[Any], garbage: int = 0) -> None:
    """Run the kernel of a text; arrays among the arguments are changed in place.

    Memories begin with garbage, random bytes or - for 0 - ones, which are NaNs in every type of
    floats: what a result owes to them is nobody's promise.
    """
    try:
        _run(text, args, garbage)
    except Stuck:
        raise
    except Exception as error:
        raise Unread(f"{type(error).__name__}: {error}") from error


def _run(text: str, args: Sequence[Any], garbage: int) -> None:
    functions, target = read(text)
    cluster = Cluster(functions, target)
    values = [Pointer(a.reshape(-1)) if isinstance(a, np.ndarray) else a for a in args]
    cores: list[Run] = []
    for function in functions.values():
        if not function.kind and len(functions) > 1:
            continue  # others call it
        lanes = 2 if function.kind == "vector" and _has_two_lanes(functions, target) else 1
        for lane in range(lanes):
            core = Core(cluster, lane, np.random.default_rng((garbage, lane)) if garbage else None)
            given = values if len(values) == len(function.params) else [*values, lane]
            cores.append(core.call(function, given))
    cluster.cores = len(cores)
    waiting = 0
    while cores:
        core = cores.pop(0)
        try:
            next(core)
        except StopIteration:
            waiting = 0
            continue
        cores.append(core)
        waiting += 1
        if (waiting > 2 * len(cores) + 2 and not any(
            (*cluster.to_vector, *cluster.to_cube)
        )) or waiting > 10000:  # fmt: skip
            raise Stuck(f"{len(cores)} cores wait")


def _has_two_lanes(functions: dict[str, Function], target: str) -> bool:
    """Whether both vector cores of a cluster work: always on A2/A3, and where tiles are split."""
    if not any(f.kind == "cube" for f in functions.values()):
        return False
    splits = [op.number("split") for f in functions.values() for op in _all(f.body)]
    return target != "a5" or any(splits)


def _all(ops: list[Op]) -> list[Op]:
    return [each for op in ops for each in (op, *_all([o for r in op.regions for o in r]))]


class Core:
    """One core: its memories, and how operations are done on it."""

    def __init__(self, cluster: Cluster, lane: int, rng: np.random.Generator | None) -> None:
        self.cluster = cluster
        self.lane = lane
        self.rng = rng
        self.memories: dict[str, np.ndarray] = {}

    def memory(self, name: str) -> np.ndarray:
        if name not in self.memories:
            self.memories[name] = self.garbage(SIZE)
        return self.memories[name]

    def garbage(self, count: int) -> np.ndarray:
        """Bytes that nobody has written."""
        if self.rng is None:
            return np.full(count, 255, np.uint8)
        return self.rng.integers(0, 256, count, np.uint8)

    def call(self, function: Function, values: Sequence[Any]) -> Run:
        known = dict(zip((name for name, _ in function.params), values, strict=True))
        return (yield from self.block(function.body, known))

    def block(self, ops: list[Op], known: dict[str, Any]) -> Run:
        """Do operations in order; what the last one yields or returns is the result."""
        for op in ops:
            if op.name in _FLOW:
                results = yield from _FLOW[op.name](self, op, known)
                known.update(zip(op.results, results, strict=True))
                continue
            given = [known[name] for name in op.operands]
            if op.name in ("return", "scf.yield"):
                return given
            if op.name in _SCALAR:
                results = [_wrapped(_SCALAR[op.name](op, *given), op)]
            elif op.name in _OPS:
                results = _OPS[op.name](self, op, given)
            else:
                *sources, dst = given
                with np.errstate(all="ignore"):
                    MEANINGS[op.name](dst, *sources)
                results = []
            known.update(zip(op.results, results or [], strict=True))
        return []

    # ---- flow and what waits

    def loop(self, op: Op, known: dict[str, Any]) -> Run:
        counter, *rest = op.operands
        start, stop, step = (known[name] for name in rest[:3])
        inits = rest[3:]
        carried = [known[name] for name in inits[1::2]]
        assert step > 0
        for n in range(start, stop, step):
            known[counter] = n
            known.update(zip(inits[::2], carried, strict=True))
            carried = yield from self.block(op.regions[0], known)
        return carried

    def branch(self, op: Op, known: dict[str, Any]) -> Run:
        if known[op.operands[0]]:
            return (yield from self.block(op.regions[0], known))
        if len(op.regions) > 1:
            return (yield from self.block(op.regions[1], known))
        return []

    def callee(self, op: Op, known: dict[str, Any]) -> Run:
        name = re.search(r"@(\w+)", op.text)
        assert name
        given = [known[each] for each in op.operands]
        return (yield from self.call(self.cluster.functions[name[1]], given))

    def pop(self, op: Op, known: dict[str, Any]) -> Run:
        if op.name == "pto.tpop_from_aic":
            queue = self.cluster.to_vector[self.lane]
            while not queue:
                yield
            entry = queue.popleft()
        else:
            lanes = self.cluster.to_cube if op.number("split") else self.cluster.to_cube[:1]
            while not all(lanes):
                yield
            entry = np.concatenate([lane.popleft() for lane in lanes], 0)
        keys = tile_keys(op.text)
        sizes = [known[name] for name in op.operands] or [int(keys["rows"]), int(keys["cols"])]
        made = tile(self.garbage(SIZE), 0, keys, *sizes)
        rows, cols = min(len(entry), made.shape[0]), min(entry.shape[1], made.shape[1])
        made.write(entry[:rows, :cols])
        return [made]

    def wait(self, op: Op, known: dict[str, Any]) -> Run:
        view, wanted = (known[name] for name in op.operands)
        while not (view.at.array[view.matrix()] >= wanted).all():
            yield
        return []

    def meet(self, op: Op, known: dict[str, Any]) -> Run:
        """Wait until every core has come as far."""
        cluster = self.cluster
        wanted = (cluster.arrived // cluster.cores + 1) * cluster.cores
        cluster.arrived += 1
        while cluster.arrived < wanted:
            yield
        return []


_FLOW: dict[str, Callable[[Core, Op, dict[str, Any]], Run]] = {
    "scf.for": Core.loop,
    "scf.if": Core.branch,
    "func.call": Core.callee,
    "pto.tpop_from_aic": Core.pop,
    "pto.tpop_from_aiv": Core.pop,
    "pto.comm.twait": Core.wait,
    "pto.syncall": Core.meet,
}


# ---- numbers -------------------------------------------------------------------------------------


def _divided(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _constant(op: Op) -> Any:
    found = re.match(r" (\S+) : (\w+)", op.text)
    assert found, op.text
    if found[1] in ("true", "false"):
        return int(found[1] == "true")
    if not found[2].startswith(("f", "b")):
        return int(found[1])
    if found[1].startswith("0x"):
        return np.array(int(found[1], 16), np.uint32).view(np.float32)[()]
    return np.float32(found[1])


_COMPARE = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "slt": lambda a, b: a < b,
    "sle": lambda a, b: a <= b,
    "sgt": lambda a, b: a > b,
    "sge": lambda a, b: a >= b,
}
_SCALAR: dict[str, Callable[..., Any]] = {
    "arith.constant": _constant,
    "arith.addi": lambda op, a, b: a + b,
    "arith.subi": lambda op, a, b: a - b,
    "arith.muli": lambda op, a, b: a * b,
    "arith.divsi": lambda op, a, b: _divided(a, b),
    "arith.remsi": lambda op, a, b: a - b * _divided(a, b),
    "arith.maxsi": lambda op, a, b: max(a, b),
    "arith.minsi": lambda op, a, b: min(a, b),
    "arith.ori": lambda op, a, b: a | b,
    "arith.andi": lambda op, a, b: a & b,
    "arith.cmpi": lambda op, a, b: int(_COMPARE[op.text.split(",")[0].strip()](a, b)),
    "arith.select": lambda op, a, b, c: b if a else c,
    "arith.index_cast": lambda op, a: a,
    "arith.trunci": lambda op, a: a,
    "arith.extsi": lambda op, a: a,
    "arith.fptosi": lambda op, a: int(a),
    "builtin.unrealized_conversion_cast": lambda op, a: a,
}


def _wrapped(value: Any, op: Op) -> Any:
    """A whole number in the width of its type."""
    bits = re.search(r"\bi(8|16|32|64)$", op.text)
    if bits is None or not isinstance(value, int):
        return value
    half = 1 << (int(bits[1]) - 1)
    return (value + half) % (2 * half) - half


# ---- memory and tiles ----------------------------------------------------------------------------


def _lists(op: Op, known: list[Any]) -> list[list[int]]:
    """The values of the lists in brackets, in order, behind the first operand."""
    rest = iter(known[1:])
    return [
        [next(rest) for _ in re.findall(r"%\w+", group)]
        for group in re.findall(r"\[(.*?)\]", op.text)
    ]


def _alloc(core: Core, op: Op, given: list[Any]) -> list[Any]:
    keys = tile_keys(op.text)
    values = dict(zip(re.findall(r"(\w+) = %", op.text), given, strict=True))
    rows = values.get("valid_row", keys.get("v_row", keys["rows"]))
    cols = values.get("valid_col", keys.get("v_col", keys["cols"]))
    return [tile(core.memory(keys["loc"]), values["addr"], keys, int(rows), int(cols))]


def _window(core: Core, op: Op, given: list[Any]) -> list[Any]:
    parent, row, col, *valid = given
    found = re.search(r"sizes \[(\d+), (\d+)\]", op.text)
    assert found
    rows, cols = int(found[1]), int(found[2])
    part = parent.places[row : row + rows, col : col + cols]
    base = int(part[0, 0]) if part.size else 0  # physical offsets count from its first element
    return [
        Tile(
            parent.data[base:],
            part - base,
            *(valid or (rows, cols)),
            parent.layout,
            parent.pad,
            parent.loc,
        )
    ]


def _set_valid(core: Core, op: Op, given: list[Any]) -> None:
    given[0].rows, given[0].cols = given[1:]


def _load(core: Core, op: Op, given: list[Any]) -> None:
    view, dst = given
    where = view.matrix()
    if where.shape != (dst.rows, dst.cols):
        where = where[: dst.rows, : dst.cols]
    assert where.size == 0 or 0 <= where.min() <= where.max() < len(view.at.array), (
        "out of the array"
    )
    rows, cols = where.shape
    block = 32 // dst.data.dtype.itemsize
    if dst.loc == "vec" and dst.layout == "rn" and cols % block:  # the rest of the last 32 bytes
        tail = dst.places[:rows, cols : -(-cols // block) * block]
        kind = dst.data.dtype
        junk = core.garbage(tail.size * kind.itemsize).view(kind).reshape(tail.shape)
        dst.data[tail] = padding(dst.pad, kind) if dst.pad else junk
    if dst.loc == "mat" and cols % block:
        dst.data[dst.places[:rows, cols : -(-cols // block) * block]] = 0
    dst.write(view.at.array[where])


def _store(core: Core, op: Op, given: list[Any]) -> None:
    src, view = given
    where = view.matrix()
    rows, cols = min(src.rows, where.shape[0]), min(src.cols, where.shape[1])
    where = where[:rows, :cols]
    assert where.size == 0 or 0 <= where.min() <= where.max() < len(view.at.array), (
        "out of the array"
    )
    values = src.read(rows, cols).astype(view.at.array.dtype)
    if "atomic_add" in op.text:
        values = view.at.array[where] + values
    view.at.array[where] = values


def _push_to_vector(core: Core, op: Op, given: list[Any]) -> None:
    entry = given[0].read()
    split = op.number("split")
    parts = [entry, entry] if split == 0 else np.array_split(entry, 2, split - 1)
    for queue, part in zip(core.cluster.to_vector, parts, strict=True):
        queue.append(part)


def _push_to_cube(core: Core, op: Op, given: list[Any]) -> None:
    assert op.number("split") in (0, 1)
    if core.lane == 0 or op.number("split"):
        core.cluster.to_cube[core.lane].append(given[0].read())


def _convert(core: Core, op: Op, given: list[Any]) -> None:
    """Without a word about it nothing is kept in range; A2/A3 asks only for some pairs of types."""
    src, dst = given
    mode = re.search(r"round_mode (\w+)", op.text)
    assert mode is not None
    assert "sat" not in op.text
    saturates = core.cluster.target != "a5"
    with np.errstate(all="ignore"):
        values = src.read(dst.rows, dst.cols)
        dst.write(convert(values, dst.data.dtype, mode[1], saturates))


def _put(core: Core, op: Op, given: list[Any]) -> None:
    dst, src = given[:2]
    dst.at.array[dst.matrix()] = src.at.array[src.matrix()]


def _notify(core: Core, op: Op, given: list[Any]) -> None:
    signal, value = given
    assert "atomic_add" in op.text
    signal.at.array[signal.at.offset] += value


def _store_scalar(core: Core, op: Op, given: list[Any]) -> None:
    value, pointer, at = given
    assert 0 <= pointer.offset + at < len(pointer.array), "out of the array"
    pointer.array[pointer.offset + at] = value


def _load_scalar(core: Core, op: Op, given: list[Any]) -> list[Any]:
    pointer, at = given
    assert 0 <= pointer.offset + at < len(pointer.array), "out of the array"
    return [pointer.array[pointer.offset + at].item()]


def _set_value(core: Core, op: Op, given: list[Any]) -> None:
    offset, value, dst = given
    dst.data[offset] = value


def _local_array(core: Core, op: Op, given: list[Any]) -> list[Any]:
    found = re.search(r"local_array<(\d+)x(\w+)>", op.text)
    assert found
    return [np.zeros(int(found[1]), DTYPES[found[2]])]


def _set_element(core: Core, op: Op, given: list[Any]) -> None:
    given[0][given[1]] = given[2]


def _nothing(core: Core, op: Op, given: list[Any]) -> list[Any]:
    """Order and addresses: what happens one after the other needs neither."""
    return [0] * len(op.results)


_OPS: dict[str, Callable[[Core, Op, list[Any]], list[Any] | None]] = {
    "pto.alloc_tile": _alloc,
    "pto.subview": _window,
    "pto.set_validshape": _set_valid,
    "pto.addptr": lambda core, op, given: [Pointer(given[0].array, given[0].offset + given[1])],
    "pto.make_tensor_view": lambda core, op, given: [View(given[0], *_lists(op, given))],
    "pto.partition_view": lambda core, op, given: [given[0].part(*_lists(op, given))],
    "pto.tload": _load,
    "pto.tstore": _store,
    "pto.tcvt": _convert,
    "pto.tsetval": _set_value,
    "pto.tgetval": lambda core, op, given: [given[0].data[given[1]].item()],
    "pto.load_scalar": _load_scalar,
    "pto.store_scalar": _store_scalar,
    "pto.declare_local_array": _local_array,
    "pto.local_array_get": lambda core, op, given: [given[0][given[1]].item()],
    "pto.local_array_set": _set_element,
    "pto.tpush_to_aiv": _push_to_vector,
    "pto.tpush_to_aic": _push_to_cube,
    "pto.comm.tput": _put,
    "pto.comm.tnotify": _notify,
    **dict.fromkeys(
        (
            "pto.barrier",
            "pto.cmo.cacheinvalid",
            "pto.fence.barrier_all",
            "pto.reserve_buffer",
            "pto.import_reserved_buffer",
            "pto.aic_initialize_pipe",
            "pto.aiv_initialize_pipe",
            "pto.tfree_from_aic",
            "pto.tfree_from_aiv",
        ),
        _nothing,
    ),
}
