"""A second opinion on races: happens-before by brute force over small random programs.

It shares nothing with the checker but the rules: the memory model of the specification (MM-01 to
MM-10b, MM-26 to MM-32) and the steps of a FIFO. Every queue entry is one or two nodes of a graph,
order is a path, and two accesses race when no path leads from the end of one to the beginning of
the other.

    python -m tests.hazards.oracle --seeds 0:2000

holds the checker against it, in order and under a random schedule, and prints what it made of the
seeds; a program on which the two differ is printed with both answers.
"""

from __future__ import annotations

import argparse
import linecache
import random
import sys
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count, product
from typing import Any, NamedTuple

import numpy as np

import ptokit
from ptokit import comm
from ptokit.base.diagnostics import Diagnostic, PtoError
from ptokit.frontend.launch import Schedule, launch
from tests.hazards.support import at

# ---- accesses ------------------------------------------------------------------------------------


class Touch(NamedTuple):
    """Bytes of one memory of one core (GM: of all), and how an instruction goes through them."""

    memory: str
    start: int
    stop: int
    writes: bool
    in_step: bool = False  # position by position


def conflict(one: Touch, other: Touch) -> bool:
    meets = one.memory == other.memory and one.start < other.stop and other.start < one.stop
    return meets and (one.writes or other.writes)


@dataclass
class Entry:
    """What stands in the queue of a pipe: work with accesses, or a signal, wait or barrier."""

    core: str
    pipe: str
    line: int
    touches: list[Touch] = field(default_factory=list[Touch])
    kind: str = "work"


# ---- order ---------------------------------------------------------------------------------------

# Pipes that begin their work in order and may complete it in any.
UNORDERED = {"a2a3": {"V", "MTE2", "MTE3"}, "a5": {"MTE2", "MTE3"}}
TRANSFERS = {"MTE1", "MTE2", "MTE3"}
IN_ORDER = {"MTE2"}  # two loads write one after the other


class Order:
    """The entries of a program in the order in which they are issued, and what precedes what."""

    def __init__(self, target: str) -> None:
        self.target = target
        self.entries: list[Entry] = []
        self._after: list[int] = []  # node: the nodes before it, as bits
        self._gates: dict[str, list[int]] = {}  # core: nodes before all that is issued later
        self._tokens: dict[object, list[int]] = {}  # signals that were not taken yet
        self._values: dict[str, list[int]] = {}  # core: reads whose number nothing has taken yet
        self._released: dict[tuple[str, int], dict[str, int]] = {}  # buffer of a core: by pipe

    # Node 2i is the beginning of entry i, node 2i + 1 its end.

    def _add(self, entry: Entry, before: list[int]) -> int:
        index = len(self.entries)
        begin = 0
        for node in (*before, *self._gates.get(entry.core, ())):
            begin |= self._after[node] | 1 << node
        for i, other in enumerate(self.entries):
            # A signal fires behind what was complete before it, and holds nobody up.
            same = (other.core, other.pipe) == (entry.core, entry.pipe)
            if same and other.kind != "signal":
                # To wait completes nothing, nor does what the scalar unit goes on with: other
                # pipes know of its accesses by its signals, or by a number that they take.
                keeps = entry.pipe not in UNORDERED[self.target] | {"S"} and entry.kind == "work"
                in_order = other.kind != "work" or keeps
                for node in (2 * i, 2 * i + 1)[: 1 + in_order]:
                    begin |= self._after[node] | 1 << node
        self.entries.append(entry)
        self._after += [begin, begin | 1 << 2 * index]
        return index

    def work(self, core: str, pipe: str, line: int, touches: list[Touch]) -> None:
        index = self._add(Entry(core, pipe, line, touches), [])
        if pipe == "S" and any(not t.writes for t in touches):
            self._values.setdefault(core, []).append(2 * index + 1)

    def _ends(self, core: str, pipe: str = "") -> list[int]:
        return [
            2 * i + 1
            for i, e in enumerate(self.entries)
            if e.core == core and pipe in ("", e.pipe) and e.kind != "signal"
        ]

    def signal(self, core: str, pipe: str, line: int, token: object) -> None:
        index = self._add(Entry(core, pipe, line, kind="signal"), self._ends(core, pipe))
        self._tokens.setdefault(token, []).append(2 * index + 1)

    def wait(self, core: str, pipe: str, line: int, token: object) -> None:
        given = self._tokens[token].pop(0)
        index = self._add(Entry(core, pipe, line, kind="wait"), [given])
        if pipe == "S":  # nothing is issued meanwhile
            self._gates.setdefault(core, []).append(2 * index + 1)

    def acquire(self, core: str, pipe: str, line: int, number: int) -> None:
        """A buffer comes from the pipes that had it before."""
        others = [n for p, n in self._released.get((core, number), {}).items() if p != pipe]
        self._add(Entry(core, pipe, line, kind="wait"), others)

    def release(self, core: str, pipe: str, line: int, number: int) -> None:
        index = self._add(Entry(core, pipe, line, kind="signal"), self._ends(core, pipe))
        self._released.setdefault((core, number), {})[pipe] = 2 * index + 1

    def barrier(self, core: str, pipe: str, line: int) -> None:
        ends = self._ends(core, "" if pipe == "ALL" else pipe)
        index = self._add(Entry(core, pipe, line, kind="barrier"), ends)
        if pipe == "ALL":
            self._gates.setdefault(core, []).append(2 * index + 1)

    def take(self, core: str) -> None:
        """The next instruction takes the number that was read last: all reads are over then."""
        self._gates.setdefault(core, []).extend(self._values.pop(core, []))

    def races(self) -> Iterator[tuple[int, int, str]]:
        """Lines of accesses that nothing orders, with the severity."""
        for j, later in enumerate(self.entries):
            for i, earlier in enumerate(self.entries[:j]):
                ordered = self._after[2 * j] >> 2 * i + 1 & 1 or self._after[2 * i] >> 2 * j + 1 & 1
                if ordered:
                    continue
                found = {self._severity(earlier, later, pair) for pair in _pairs(earlier, later)}
                if found - {""}:
                    yield earlier.line, later.line, min(found - {""})

    def _severity(self, earlier: Entry, later: Entry, pair: tuple[Touch, Touch]) -> str:
        if (earlier.core, earlier.pipe) != (later.core, later.pipe):
            return "error"
        if later.pipe not in UNORDERED[self.target]:
            return ""
        one, other = pair
        if later.pipe in IN_ORDER and one.writes and other.writes:
            return ""
        if later.pipe in TRANSFERS:
            return "warning" if one.writes and other.writes else "error"
        same = one[:3] == other[:3] and one.in_step and other.in_step
        return "warning" if same else "error"


def _pairs(earlier: Entry, later: Entry) -> Iterator[tuple[Touch, Touch]]:
    for one in earlier.touches:
        for other in later.touches:
            if conflict(one, other):
                yield one, other


# ---- programs ------------------------------------------------------------------------------------

TILE = 1024  # bytes of a 16x16 tile of f32


class Step(NamedTuple):
    """One line of a core's program, and what it is to the oracle."""

    place: float  # in the order of the program
    core: str  # "vector", "cube", or one of the ranks
    code: str
    means: list[tuple[Any, ...]]  # calls of `Order`, without core and line


@dataclass
class Program:
    """A random program for a vector core, a cube core, a cluster, or a world of two ranks."""

    seed: int
    target: str
    steps: list[Step] = field(default_factory=list[Step])
    shape: str = "vector"
    trips: int = 1  # of a loop around all steps
    lead: list[Step] = field(default_factory=list[Step])  # before it
    tail: list[Step] = field(default_factory=list[Step])  # and behind it

    @property
    def is_cluster(self) -> bool:
        return self.shape == "cluster"

    @property
    def is_world(self) -> bool:
        return self.shape == "world"

    @property
    def cores(self) -> tuple[str, ...]:
        several = {"cluster": ("cube", "vector"), "world": RANKS}
        return several.get(self.shape, (self.shape,))

    @property
    def is_loop(self) -> bool:
        return self.trips > 1

    @property
    def source(self) -> str:
        """The program as Python."""
        return self.text()

    def text(self, *, observed: bool = False) -> str:
        """A function per core; observed, it stores its on-chip memory to `z` in the end."""
        lines: list[str] = []
        for core in self.cores:
            lines.append(f"def {core}(x, y, z, ring):")
            lines += [f"    {line}" for line in PROLOGUE[core]]
            if self.is_cluster:
                lines.append(f"    fifo = {FIFO}(ring, 0x8000, 0)")
            lines += [f"    {step.code}" for step in self.lead]
            lines += [f"    for _ in range({self.trips}):"] * self.is_loop
            inner = "    " * (1 + self.is_loop)
            lines += [f"{inner}{step.code}" for step in self.steps if step.core == core]
            lines += [f"    {step.code}" for step in self.tail]
            lines += [f"    {line}" for line in (EPILOGUE[core] if observed else ())]
        return "\n".join(lines) + "\n"

    def order(self) -> Order:
        """What the oracle looks at: the steps in their order, with the lines they stand on."""
        order, number, numbers = Order(self.target), 0, dict[int, int]()
        for core in self.cores:
            number += 1 + len(PROLOGUE[core]) + self.is_cluster
            for step in (*self.lead, None, *self.steps, *self.tail):
                if step is None:
                    number += self.is_loop
                elif step.core == core:
                    number += 1
                    numbers[id(step)] = number
        for step in (*self.lead, *self.steps * self.trips, *self.tail):
            both = step.core == "vector" and self.is_cluster
            for name in ("vector 0", "vector 1") if both else (step.core,):
                for verb, *args in step.means:
                    _apply(order, name, numbers[id(step)], verb, args)
        return order


def _apply(order: Order, core: str, line: int, verb: str, args: list[Any]) -> None:
    if verb == "work":
        pipe, touches = args
        local = [
            t if t.memory == "GM" else t._replace(memory=f"{core} {t.memory}") for t in touches
        ]
        shift = TILE * 8 * (core == "vector 1")  # each vector core has a part of the arrays
        order.work(core, pipe, line, [_moved(t, shift) for t in local])
    elif verb == "flag":  # inside a core
        what, src, dst, number = args
        getattr(order, what)(core, src if what == "signal" else dst, line, (core, src, dst, number))
    elif verb == "reach":  # both vector cores reach the cube core, which reaches both
        pipe, number = args
        others = ("vector 0", "vector 1") if core == "cube" else ("cube",)
        for other in others:
            order.signal(core, pipe, line, (core, other, number))
    elif verb == "heed":
        (number,) = args
        for other in ("vector 0", "vector 1") if core == "cube" else ("cube",):
            order.wait(core, "S", line, (other, core, number))
    elif verb == "notify":  # at once, whatever the pipes do; behind it they are drained
        order.signal(core, "S", line, args[0])
        order.barrier(core, "ALL", line)
    elif verb == "hear":
        order.wait(core, "S", line, args[0])
    elif verb in ("acquire", "release"):
        pipe, number = args
        getattr(order, verb)(core, pipe, line, number)
    elif verb == "barrier":
        (pipe,) = args
        order.barrier(core, pipe, line)
    else:
        order.take(core)


def _moved(touch: Touch, shift: int) -> Touch:
    if touch.memory != "GM" or touch.start >= RING:
        return touch
    return touch._replace(start=touch.start + shift, stop=touch.stop + shift)


# ---- what the two kinds of core can do -----------------------------------------------------------

RING = 1 << 30  # where the slots of the FIFO lie for the oracle
FIFO = "TPipe[0, Direction.DIR_C2V, 1024, 2]"
SLOTS = 2
X, Y = 0, 1 << 20  # where the two arrays lie for the oracle

PROLOGUE: dict[str, list[str]] = {
    "vector": [
        "tile = [at(F32(), 512 * n) for n in range(6)]",
        "row = [at(Row(), 512 * n) for n in range(6)]",
        "[t.fill(n + 1) for n, t in enumerate((*tile, at(F32(), 0x8000), at(F32(), 0x8400)))]",
        "part = lambda a, n: G32(ptr(a, 256 * (n + 8 * get_subblockid())))",
        "set_ffts_base_addr(np.zeros(64, np.uint64))",
    ],
    "cube": [
        "mat = [at(Mat(), 256 * n) for n in range(4)]",
        "left = [at(TileLeft[half, 16, 16](), 512 * n) for n in range(2)]",
        "right = [at(TileRight[half, 16, 16](), 512 * n) for n in range(2)]",
        "acc = [at(TileAcc[float32, 16, 16](), 1024 * n) for n in range(2)]",
        "[t.fill(n + 1) for n, t in enumerate((*mat, *left, *right, *acc))]",
        "part = lambda a, n: G32(ptr(a, 256 * n))",
        "halves = GlobalTensor(np.full((16, 16), 9, np.float16))",
        "set_ffts_base_addr(np.zeros(64, np.uint64))",
    ],
}
RANKS = ("rank0", "rank1")  # x lies in the window of the first, y in that of the second
PROLOGUE.update(dict.fromkeys(RANKS, PROLOGUE["vector"]))
EPILOGUE = {
    "vector": [
        "pipe_barrier(PIPE_ALL)",
        "[TSTORE(part(z, n), tile[m]) for n, m in enumerate((0, 2, 4, 5))]",
    ],
    "cube": [
        "pipe_barrier(PIPE_ALL)",
        "[TSTORE(part(z, 4 + n), acc[n]) for n in range(2)]",
    ],
}


def tile(n: int, writes: bool, in_step: bool = True) -> Touch:
    return Touch("UB", 512 * n, 512 * n + TILE, writes, in_step)


def part(array: int, n: int, writes: bool) -> Touch:
    return Touch("GM", array + TILE * n, array + TILE * (n + 1), writes)


def box(memory: str, n: int, size: int, step: int, writes: bool) -> Touch:
    return Touch(memory, step * n, step * n + size, writes)


Work = tuple[str, str, list[Touch]]  # the line, the pipe and the accesses


def vector_work(rng: random.Random) -> Work:
    a = rng.randrange(6)
    b = rng.choice([n for n in range(6) if n == a or abs(n - a) > 1])  # in place, or apart
    c = rng.choice([n for n in range(6) if n not in (b, b + 1)])
    n, (name, array) = rng.randrange(2), rng.choice([("x", X), ("y", Y)])
    choices: list[Work] = [
        (f"TLOAD(tile[{a}], part({name}, {n}))", "MTE2", [part(array, n, False), tile(a, True)]),
        (f"TSTORE(part({name}, {n}), tile[{a}])", "MTE3", [tile(a, False), part(array, n, True)]),
        (f"TADDS(tile[{b}], tile[{a}], 0.71)", "V", [tile(a, False), tile(b, True)]),
        (f"TEXPANDS(tile[{a}], 0.25)", "V", [tile(a, True)]),
        (
            f"TCOLEXPANDADD(tile[{b}], tile[{a}], row[{c}])",
            "V",
            [tile(a, False), Touch("UB", 512 * c, 512 * c + 64, False), tile(b, True)],
        ),
        (f"number = tile[{a}].GetValue(5)", "S", [Touch("UB", 512 * a + 20, 512 * a + 24, False)]),
        (f"tile[{a}].SetValue(7, 3.0)", "S", [Touch("UB", 512 * a + 28, 512 * a + 32, True)]),
    ]
    return rng.choices(choices, [3, 5, 6, 4, 1, 1, 1])[0]


def cube_work(rng: random.Random) -> Work:
    a, b, c = (rng.randrange(2) for _ in range(3))
    m, n = rng.randrange(4), rng.randrange(2)
    operands = [box("L0A", a, 512, 512, False), box("L0B", b, 512, 512, False)]
    choices: list[Work] = [
        (f"TLOAD(mat[{m}], halves)", "MTE2", [box("L1", m, 512, 256, True)]),
        (
            f"TMOV(left[{a}], mat[{m}])",
            "MTE1",
            [box("L1", m, 512, 256, False), box("L0A", a, 512, 512, True)],
        ),
        (
            f"TMOV(right[{b}], mat[{m}])",
            "MTE1",
            [box("L1", m, 512, 256, False), box("L0B", b, 512, 512, True)],
        ),
        (
            f"TMATMUL(acc[{c}], left[{a}], right[{b}])",
            "M",
            [*operands, box("L0C", c, 1024, 1024, True)],
        ),
        (
            f"TMATMUL_ACC(acc[{c}], left[{a}], right[{b}])",
            "M",
            [*operands, box("L0C", c, 1024, 1024, False), box("L0C", c, 1024, 1024, True)],
        ),
        (
            f"TSTORE(part(y, {n}), acc[{c}])",
            "FIX",
            [box("L0C", c, 1024, 1024, False), part(Y, n, True)],
        ),
    ]
    return rng.choices(choices, [2, 2, 2, 3, 1, 2])[0]


WORK = {"vector": vector_work, "cube": cube_work, **dict.fromkeys(RANKS, vector_work)}


# ---- random programs -----------------------------------------------------------------------------


def random_program(seed: int) -> Program:
    """Five to twelve works of one core, a cluster or two ranks, and some of the order they need."""
    rng = random.Random(seed)
    shape = rng.choice(["vector", "vector", "cube", "cluster", "world"])
    if shape == "cluster":
        return _cluster(rng, seed)
    program = Program(seed, rng.choice(["a2a3", "a5"]), shape=shape)
    if program.is_world:
        _world(rng, program)
    else:
        _core(rng, program, shape, rng.randint(5, 12))
    return program


def _core(rng: random.Random, program: Program, core: str, count: int, first: int = 0) -> None:
    """Works of one core with flags and barriers between some of them."""
    made: list[tuple[int, Work]] = []
    for place in range(first, first + count):
        code, pipe, touches = work = WORK[core](rng)
        means: list[tuple[Any, ...]] = [("work", pipe, touches)]
        read = [p for p, w in made if w[0].startswith("number")]
        if code.startswith("TADDS") and read and rng.random() < 0.5:
            code = code.replace("0.71", "number")
            means.insert(0, ("take",))
        made.append((place, work))
        program.steps.append(Step(place, core, code, means))
    _edges(rng, program, core, made)
    if rng.random() < 0.4:
        _round(rng, program, core, made)


def _edges(rng: random.Random, program: Program, core: str, made: list[tuple[int, Work]]) -> None:
    """Order some of the pairs that need it, and a few that do not."""
    careful, within = rng.choice([0.5, 0.8, 1.0]), rng.choice([0.0, 0.8, 1.0])
    for at_j, (j, later) in enumerate(made):
        for i, earlier in made[:at_j]:
            needs = any(_pairs(Entry("", "", 0, earlier[2]), Entry("", "", 0, later[2])))
            src, dst = earlier[1], later[1]
            wanted = within if src == dst else careful
            if rng.random() >= (wanted if needs else 0.05):
                continue
            if src == dst or rng.random() < 0.1:
                pipe = src if src == dst and src != "S" else "ALL"
                _barrier(program, core, pipe, j - 0.4 + rng.random() * 0.1)
            elif program.target == "a5" and "S" not in (src, dst) and rng.random() < 0.2:
                _buffer(program, core, (src, i), (dst, j))
            else:
                behind, before = i + 0.1 + rng.random() * 0.3, j - 0.4 + rng.random() * 0.3
                _flag(program, core, src, dst, behind, before)
    program.steps.sort(key=lambda step: step.place)
    _number_flags(program, core)


def _round(rng: random.Random, program: Program, core: str, made: list[tuple[int, Work]]) -> None:
    """Put it all into a loop, and order some of what one trip does to the next."""
    program.trips = rng.choice([2, 3, 5, 9])
    careful = rng.choice([0.7, 1.0])
    if rng.random() < 0.2:
        _barrier(program, core, "ALL", -1)
    for (i, first), (j, last) in product(made, made):
        src, dst = last[1], first[1]
        needs = any(_pairs(Entry("", "", 0, last[2]), Entry("", "", 0, first[2])))
        if i > j or not needs or rng.random() >= careful:
            continue
        used = {
            a[3] for s in program.steps for v, *a in s.means if v == "flag" and a[1:3] == [src, dst]
        }
        free = [number for number in range(8) if number not in used]
        if src == dst or not free:
            _barrier(program, core, src if src == dst and src != "S" else "ALL", i - 0.48)
            continue
        pair = f"(PIPE_{src}, PIPE_{dst}, {free[0]})"
        for steps, place, what in (
            (program.lead, 0, "signal"),
            (program.steps, i - 0.48, "wait"),
            (program.steps, j + 0.48, "signal"),
            (program.tail, 0, "wait"),
        ):
            code = f"{'set_flag' if what == 'signal' else 'wait_flag'}{pair}"
            steps.append(Step(place, core, code, [("flag", what, src, dst, free[0])]))
    program.steps.sort(key=lambda step: step.place)


def _barrier(program: Program, core: str, pipe: str, place: float) -> None:
    legal = pipe == "ALL" or pipe in UNORDERED[program.target] or program.target == "a2a3"
    pipe = pipe if legal else "ALL"
    program.steps.append(Step(place, core, f"pipe_barrier(PIPE_{pipe})", [("barrier", pipe)]))


def _flag(program: Program, core: str, src: str, dst: str, behind: float, before: float) -> None:
    key = object()  # until it has a number
    for place, what in ((behind, "signal"), (before, "wait")):
        program.steps.append(Step(place, core, "", [("flag", what, src, dst, key)]))


def _buffer(program: Program, core: str, *holders: tuple[str, int]) -> None:
    """Two pipes hold a buffer one after the other."""
    used = {args[-1] for s in program.steps for verb, *args in s.means if verb == "acquire"}
    number = next(n for n in range(32) if n not in used)
    for pipe, at_work in holders:
        for place, verb, call in (
            (at_work - 0.05, "acquire", "get_buf"),
            (at_work + 0.05, "release", "rls_buf"),
        ):
            code = f"{call}(PIPE_{pipe}, {number})"
            program.steps.append(Step(place, core, code, [(verb, pipe, number)]))


def _across(rng: random.Random, program: Program, made: dict[str, list[tuple[int, Work]]]) -> None:
    """Order some of what the cube core and the vector cores do to one part of an array."""
    careful, free = rng.choice([0.5, 1.0]), list(range(2, 11))
    for src, dst in (("cube", "vector"), ("vector", "cube")):
        for (i, earlier), (j, later) in product(made[src], made[dst]):
            entries = Entry("", "", 0, earlier[2]), Entry("", "", 0, later[2])
            needs = any(one.memory == "GM" and one.start < RING for one, _ in _pairs(*entries))
            if i < j and needs and free and earlier[1] != "S" and rng.random() < careful:
                number, pipe = free.pop(), earlier[1]
                signal = f"ffts_cross_core_sync(PIPE_{pipe}, {1 | 2 << 4 | number << 8})"
                program.steps += [
                    Step(i + 0.45, src, signal, [("reach", pipe, number)]),
                    Step(j - 0.45, dst, f"wait_flag_dev({number})", [("heed", number)]),
                ]
    program.steps.sort(key=lambda step: step.place)


def _number_flags(program: Program, core: str) -> None:
    """Give flags their event ids; where a pair has none left, a barrier takes the place."""
    free: dict[tuple[str, str], list[int]] = {}
    ids: dict[object, int | None] = {}
    for step in program.steps:
        for verb, *args in step.means if step.core == core and step.code else ():
            if verb == "flag":
                _, src, dst, number = args
                pool = free.setdefault((src, dst), list(range(8)))
                pool[:] = [n for n in pool if n != number]
    steps: list[Step] = []
    for step in program.steps:
        if step.core != core or step.code:
            steps.append(step)
            continue
        ((_, what, src, dst, key),) = step.means
        pool = free.setdefault((src, dst), list(range(8)))
        if what == "signal":
            ids[key] = pool.pop(0) if pool else None
        number = ids[key]
        if number is None:
            if what == "wait":
                steps.append(
                    step._replace(code="pipe_barrier(PIPE_ALL)", means=[("barrier", "ALL")])
                )
            continue
        call = "set_flag" if what == "signal" else "wait_flag"
        code = f"{call}(PIPE_{src}, PIPE_{dst}, {number})"
        steps.append(step._replace(code=code, means=[("flag", what, src, dst, number)]))
    program.steps[:] = steps


def _cluster(rng: random.Random, seed: int) -> Program:
    """A cube core pushes accumulators through global memory, both vector cores pop them."""
    program = Program(seed, "a2a3", shape="cluster")
    pushes = rng.randint(1, 4)
    period, place = SLOTS, 0
    made: dict[str, list[tuple[int, Work]]] = {"cube": [], "vector": []}

    def add(
        core: str, code: str, pipe: str, touches: list[Touch], before: Any, behind: Any
    ) -> None:
        nonlocal place
        program.steps.append(Step(place, core, code, [*before, ("work", pipe, touches), *behind]))
        made[core].append((place, (code, pipe, touches)))
        place += 1

    def push(t: int) -> None:
        c = rng.randrange(2)
        slot = Touch("GM", RING + TILE * (t % SLOTS), RING + TILE * (t % SLOTS + 1), True)
        before = [("heed", 1)] if t >= SLOTS and t % period == 0 else []
        touches = [box("L0C", c, 1024, 1024, False), slot]
        add("cube", f"TPUSH[NO](fifo, acc[{c}])", "FIX", touches, before, [("reach", "FIX", 0)])

    def pop(t: int) -> None:
        slot = Touch("GM", RING + TILE * (t % SLOTS), RING + TILE * (t % SLOTS + 1), False)
        local = Touch("UB", 0x8000 + TILE * (t % 2), 0x8000 + TILE * (t % 2 + 1), True)
        behind = [("reach", "MTE2", 1)] if (t + 1) % period == 0 else []
        code = "got = F32(); TPOP[NO](fifo, got)"
        add("vector", code, "MTE2", [slot, local], [("heed", 0)], behind)

    def use(t: int) -> None:
        n = rng.randrange(6)
        local = Touch("UB", 0x8000 + TILE * (t % 2), 0x8000 + TILE * (t % 2 + 1), False, True)
        add("vector", f"TADDS(tile[{n}], got, 0.71)", "V", [local, tile(n, True)], [], [])

    for t in range(pushes):
        for _ in range(rng.randint(0, 2)):
            add("cube", *_as_args(cube_work(rng)))
        push(t)
        pop(t)
        for _ in range(rng.randint(0, 2)):
            use(t) if rng.random() < 0.7 else add("vector", *_as_args(_quiet(rng)))
    for core, works in made.items():
        _edges(rng, program, core, works)
    _across(rng, program, made)
    return program


def _world(rng: random.Random, program: Program) -> None:
    """Two ranks that take turns at both windows, and tell each other now and then."""
    made: dict[str, list[tuple[int, Work]]] = {rank: [] for rank in RANKS}
    for place in range(rng.randint(4, 9)):
        core, work = rng.choice(RANKS), _quiet(rng)
        made[core].append((place, work))
        program.steps.append(Step(place, core, work[0], [("work", *work[1:])]))
    for core, works in made.items():
        _edges(rng, program, core, works)
    careful, words = rng.choice([0.5, 1.0]), count()
    for src, dst in (RANKS, RANKS[::-1]):
        for (i, earlier), (j, later) in product(made[src], made[dst]):
            entries = Entry("", "", 0, earlier[2]), Entry("", "", 0, later[2])
            needs = any(one.memory == "GM" for one, _ in _pairs(*entries))
            if i < j and needs and rng.random() < careful:
                word = next(words)
                if earlier[1] != "S" and rng.random() < 0.8:  # else the store may be under way
                    _flag(program, src, earlier[1], "S", i + 0.43, i + 0.44)
                told = f"TNOTIFY(word({RANKS.index(dst)}, {word}), 1, NotifyOp.Set)"
                heard = f"TWAIT(word({RANKS.index(dst)}, {word}), 1, WaitCmp.EQ)"
                program.steps += [
                    Step(i + 0.45, src, told, [("notify", word)]),
                    Step(j - 0.45, dst, heard, [("hear", word)]),
                ]
    program.steps.sort(key=lambda step: step.place)
    for core in RANKS:
        _number_flags(program, core)


def _as_args(work: Work) -> tuple[Any, ...]:
    return (*work, [], [])


def _quiet(rng: random.Random) -> Work:
    """Work of a vector core that the other one does not see."""
    while True:
        work = vector_work(rng)
        if not work[0].startswith("number"):
            return work


# ---- the two answers -----------------------------------------------------------------------------

NAMES: dict[str, Any] = {
    **{name: getattr(ptokit, name) for name in ptokit.__all__},
    **{name: getattr(comm, name) for name in ("TNOTIFY", "TWAIT", "NotifyOp", "WaitCmp")},
    "np": np,
    "at": at,
    "NO": ptokit.TileSplitAxis.TILE_NO_SPLIT,
    "F32": ptokit.Tile[ptokit.TileType.Vec, ptokit.float32, 16, 16],
    "Row": ptokit.Tile[ptokit.TileType.Vec, ptokit.float32, 1, 16],
    "Mat": ptokit.Tile[
        ptokit.TileType.Mat,
        ptokit.half,
        16,
        16,
        ptokit.BLayout.ColMajor,
        16,
        16,
        ptokit.SLayout.RowMajor,
    ],
    "G32": ptokit.GlobalTensor[
        ptokit.float32, ptokit.Shape[1, 1, 1, 16, 16], ptokit.Stride[1, 1, 1, 16, 1]
    ],
}
Found = set[tuple[frozenset[int], str]]  # two lines and the severity


class Memory(NamedTuple):
    """The global memory of a program: two arrays, what is observed, and the slots of the FIFO."""

    x: Any
    y: Any
    z: Any
    ring: Any

    @staticmethod
    def new() -> Memory:
        numbers = np.arange(4096, dtype=np.float32).reshape(16, 256)
        return Memory(numbers + 1, -numbers - 1, 0 * numbers, np.zeros((2, 256), np.float32))


def cores_of(
    program: Program, memory: Memory, *, observed: bool = False, word: Any = None
) -> dict[str, Any]:
    """The program as functions that a launch takes."""
    name, source = f"<oracle {program.seed}>", program.text(observed=observed)
    linecache.cache[name] = len(source), None, source.splitlines(keepends=True), name
    scope = NAMES | {"word": word}
    exec(compile(source, name, "exec"), scope)
    return {core: (lambda core=core: scope[core](*memory)) for core in program.cores}


def on_ranks(program: Program, seed: int | None) -> Sequence[Diagnostic]:
    """Run the ranks of a world and return the warnings; raises its errors."""
    world = comm.World(2, program.target)
    window, words = world.window((16, 256)), world.signals(256)
    memory = Memory.new()._replace(x=window[0], y=window[1])
    cores = cores_of(program, memory, word=lambda rank, n: words.signal(rank, n))
    world.run(lambda rank: cores[RANKS[rank]](), seed=seed)
    told: list[Diagnostic] = []
    for rank in range(2):
        with world.rank(rank) as machine:
            told += machine.warnings
    return told


def checked(program: Program, schedule: Schedule | None = None) -> Found:
    """The answer of the checker."""
    chosen = schedule or Schedule()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            if program.is_world:
                found = on_ranks(program, chosen.seed)
            else:
                cores = cores_of(program, Memory.new())
                found = launch(cores, program.target, schedule=chosen).diagnostics
        except PtoError as error:
            found = error.diagnostics
    others = [each for each in found if each.evidence is None]
    if others:
        raise AssertionError(f"no legal program: {others[0]}\n{program.source}")
    return {(_lines_of(each), each.severity) for each in found}


def _lines_of(found: Diagnostic) -> frozenset[int]:
    assert found.evidence is not None
    places = found.evidence.earlier.location, found.evidence.later.location
    return frozenset(place.line for place in places if place is not None)


def expected(program: Program) -> Found:
    """The answer of the oracle."""
    return {(frozenset({i, j}), severity) for i, j, severity in program.order().races()}


def difference(said: Found, right: Found) -> str:
    """What is wrong with the answer of the checker; empty where nothing is.

    It need not name every pair, as it takes what it has reported for ordered; but it is silent only
    where there is nothing, finds an error where there is one, and names no pair that is none.
    """
    if errors := {pair for pair, severity in right if severity == "error"}:
        if not any(severity == "error" for _, severity in said):
            return f"missed the errors {_shown(errors)}"
        warned = {pair for pair, severity in said if severity == "error"} - errors
        return f"false errors {_shown(warned)}" if warned else ""
    if false := {pair for pair, severity in said if severity == "error"}:
        return f"false errors {_shown(false)}"
    right_pairs, said_pairs = {pair for pair, _ in right}, {pair for pair, _ in said}
    if right_pairs and not said_pairs:
        return f"missed the warnings {_shown(right_pairs)}"
    if said_pairs - right_pairs:
        return f"false warnings {_shown(said_pairs - right_pairs)}"
    return ""


def _shown(pairs: set[frozenset[int]]) -> str:
    return ", ".join(sorted(" and ".join(map(str, sorted(pair))) for pair in pairs))


def compare(seed: int) -> tuple[Program, list[str]]:
    """The program of a seed, and how the checker differs from the oracle on it."""
    program = random_program(seed)
    right = expected(program)
    wrong: list[str] = []
    for schedule in (None, Schedule(seed)):
        problem = difference(checked(program, schedule), right)
        if problem:
            wrong.append(f"{schedule or 'in order'}: {problem}")
    return program, wrong


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.hazards.oracle", description=__doc__)
    parser.add_argument("--seeds", default="0:500", metavar="A:B", help="the seeds from A to B - 1")
    first, last = map(int, parser.parse_args(arguments).seeds.split(":"))
    counted = {"error": 0, "warning": 0, "": 0}
    differ = 0
    for seed in range(first, last):
        program, wrong = compare(seed)
        severities = {severity for _, severity in expected(program)}
        counted[min(severities, default="")] += 1
        if wrong:
            differ += 1
            numbered = enumerate(program.source.splitlines(), 1)
            print(f"seed {seed}, {program.target}: {'; '.join(wrong)}")
            print("".join(f"{n:4} {line}\n" for n, line in numbered))
    print(
        f"oracle: {last - first} programs ({counted['error']} with races, {counted['warning']} "
        f"doubtful, {counted['']} clean), {differ} judged otherwise by the checker"
    )
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
