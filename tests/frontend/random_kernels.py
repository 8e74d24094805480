"""Random kernels about control flow: what loops, branches and helpers do to variables, lists,
dicts, objects, tuples and tiles. Every program ends, and writes all it knows to its array."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from random import Random
from types import ModuleType

HEAD = """
from dataclasses import dataclass
from typing import Any

from ptokit import *

Row = Tile[TileType.Vec, float32, 1, 16]


def put(y, row, value):
    t = Row()
    TEXPANDS(t, value)
    TSTORE(GlobalTensor(y)[row : row + 1, :], t)


@dataclass
class Box:
    v: Any = 0
    w: Any = 1

    def bump(self, k):
        if k % 3 == 1:
            self.v += k
            return
        self.w = self.v - k


def helper(values, k):
    for i in range(3):
        if values[i] > k:
            values[i] -= 1
            return i
        if k == 2:
            continue
        values[2 - i] += 1
    return -k


def pick(t, u, k):
    return t if k % 2 == 0 else u
"""

START = """
a, b, c = 1, n, 2
L, D, O, P, M = [3, n, 1], {'x': 1, 'y': n + 1}, Box(n, 2), (n, 2, 3), [[1, n], 5]
t, u, T = Row(), Row(), [Row(), Row()]
TLOAD(t, GlobalTensor(x)[0:1, :])
TLOAD(u, GlobalTensor(x)[1:2, :])
TLOAD(T[0], GlobalTensor(x)[2:3, :])
TLOAD(T[1], GlobalTensor(x)[3:4, :])
"""
NUMBERS = ("a", "b", "c", "n", "L[0]", "L[1]", "L[2]", "D['x']", "D['y']", "O.v", "O.w")
SHOWN = (*NUMBERS[:3], *NUMBERS[4:])
TILES = ("t", "u", "T[0]", "T[1]")
ROWS = len(SHOWN) + len(TILES) + 2


class Writer:
    """Writes one kernel."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.lines: list[str] = []
        self.indent = 1
        self.loops: list[str] = []  # variables of the loops around; "" for those without one
        self.counters = 0

    def line(self, text: str) -> None:
        self.lines.append("    " * self.indent + text)

    def inside(self, *first: str, size: int = 3) -> None:
        """A block of some statements."""
        self.indent += 1
        for text in (*first, "b = b + 1 if b < 30 else b"):
            self.line(text)
        for _ in range(self.random.randint(0, size)):
            self.statement()
        self.indent -= 1

    # ---- expressions -------------------------------------------------------------------------

    def number(self, depth: int = 0) -> str:
        pick = self.random
        if depth > 2 or pick.random() < 0.4:
            known = [v for v in self.loops if v]
            return pick.choice([*NUMBERS, str(pick.randint(-3, 5)), *known])
        x, y = self.number(depth + 1), self.number(depth + 1)
        return pick.choice(
            [
                *[f"({x} + {y})"] * 3,
                f"({x} - {y})",
                f"({x} * {pick.randint(-2, 3)})",
                f"({x} % {pick.randint(2, 5)})",
                f"({x} // {pick.randint(2, 4)})",
                f"({x} if {self.condition(depth + 1)} else {y})",
                f"min({x}, {y})",
                f"abs({x})",
            ]
        )

    def small(self) -> str:
        """A number that does not grow from round to round."""
        return f"({self.number()}) % 97 - 40"

    def condition(self, depth: int = 0) -> str:
        pick = self.random
        x, y = self.number(depth + 1), self.number(depth + 1)
        plain = f"({x} {pick.choice(['<', '<=', '==', '!=', '>'])} {y})"
        if depth > 2 or pick.random() < 0.5:
            return plain
        other = self.condition(depth + 1)
        return pick.choice(
            [f"({plain} and {other})", f"({plain} or {other})", f"(not {other})",
             f"({x} < {y} <= {self.number(depth + 1)})"]
        )  # fmt: skip

    # ---- statements --------------------------------------------------------------------------

    def statement(self) -> None:
        pick = self.random
        if pick.random() < 0.3 and self.indent < 5:
            pick.choice([self.branch, self.branch, self.range, self.while_, self.over_list])()
        elif pick.random() < 0.12 and self.loops:
            self.line(f"if {self.condition()}:")
            self.line(f"    {pick.choice(['break', 'continue'])}")
        elif pick.random() < 0.05 and self.indent > 1:
            self.line(f"if {self.condition()} and a > 20:")
            self.line(f"    put(y, {ROWS - 1}, b)")
            self.line("    return")
        else:
            self.line(self.change())

    def change(self) -> str:
        pick = self.random
        variable, tile, other = pick.choice("abc"), pick.choice(TILES), pick.choice(TILES)
        chosen = pick.choice([tile, f"T[({self.number()}) % 2]"])
        return pick.choice(
            [
                *[f"{variable} = {self.small()}"] * 2,
                f"L[{pick.randint(0, 2)}] = {self.small()}",
                f"D['{pick.choice('xy')}'] += {self.number()} % 7",
                f"O.{pick.choice('vw')} = {self.small()}",
                f"O.bump({self.number()} % 5)",
                f"{variable} = helper(L, {self.number()} % 4)",
                f"P = (P[1], {self.small()}, P[0])",
                f"M[0][1] = {self.small()}",
                f"c = M[0][1] + P[{pick.randint(0, 2)}]",
                "a, b = b, c",
                "L[0], L[2] = L[2], L[0]",
                "t, u = u, t",
                "T[0], T[1] = T[1], T[0]",
                f"t = pick(t, u, {self.number()})",
                f"TADDS({chosen}, {other}, {pick.randint(1, 3)}.0)",
            ]
        )

    def branch(self) -> None:
        self.line(f"if {self.condition()}:")
        self.inside()
        if self.random.random() < 0.3:
            self.line(f"elif {self.condition()}:")
            self.inside(size=1)
        if self.random.random() < 0.5:
            self.line("else:")
            self.inside()

    def range(self) -> None:
        bounds = [f"({self.number()}) % 4", str(self.random.randint(0, 4)), "n", "1, n + 2"]
        variable = f"i{len(self.loops)}"
        self.line(f"for {variable} in range({self.random.choice([*bounds, 'n, -2, -1'])}):")
        self.loops.append(variable)
        self.inside()
        self.loops.pop()

    def while_(self) -> None:
        self.counters += 1
        left = f"w{self.counters}"
        self.line(f"{left} = ({self.number()}) % 4")
        self.line(f"while {left} > 0 and {self.condition()}:")
        self.loops.append("")
        self.inside(f"{left} -= 1")
        self.loops.pop()

    def over_list(self) -> None:
        self.line(f"for z in [{self.number()}, 2, {self.number()}]:")
        self.loops.append("")
        self.inside("c = (c + z) % 50", size=2)
        self.loops.pop()


def source(seed: int) -> str:
    """The text of one kernel."""
    writer = Writer(seed)
    for text in START.strip().splitlines():
        writer.line(text)
    for _ in range(writer.random.randint(4, 9)):
        writer.statement()
    for row, text in enumerate(SHOWN):
        writer.line(f"put(y, {row}, {text})")
    for row, tile in enumerate(TILES, len(SHOWN)):
        writer.line(f"TSTORE(GlobalTensor(y)[{row}:{row + 1}, :], {tile})")
    writer.line(f"put(y, {ROWS - 2}, P[0] * 3 + P[1] + M[0][1])")
    body = "\n".join(writer.lines)
    return f"@kernel(mode='auto')\ndef k{seed}(x, y, n):\n{body}\n"


def module_of(seeds: range, folder: Path) -> ModuleType:
    """The kernels of some seeds, from a file: lowering reads their source."""
    name = f"random_{seeds.start}"
    file = folder / f"{name}.py"
    file.write_text("\n\n".join([HEAD, *(source(seed) for seed in seeds)]))
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made
