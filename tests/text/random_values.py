"""Random programs over tiles as values (Level 1), with what they compute as Python.

Loops hand values around, change their places, keep some and leave others; branches choose. Every
line is written twice: as text, and as Python over arrays.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import numpy as np

VIEW = "!pto.partition_tensor_view<16x64xf32>"
TILE = "!pto.tile<16x64xf32>"
OPERATIONS = {"tadd": "{} + {}", "tsub": "{} - {}", "tmax": "np.maximum({}, {})"}


@dataclass
class Writer:
    random: random.Random
    text: list[str] = field(default_factory=list[str])
    python: list[str] = field(default_factory=list[str])
    indent: int = 1
    names: int = 0

    def line(self, text: str, python: str = "") -> None:
        self.text.append("  " * self.indent + text)
        if python:
            self.python.append("  " * self.indent + python)

    def name(self, stem: str) -> str:
        self.names += 1
        return f"{stem}{self.names}"

    def operation(self, known: list[str]) -> None:
        name, (a, b) = self.name("v"), (self.random.choice(known) for _ in range(2))
        word, meaning = self.random.choice([*OPERATIONS.items()])
        self.line(
            f"%{name} = pto.{word} %{a}, %{b} : ({TILE}, {TILE}) -> {TILE}",
            f"{name} = {meaning.format(a, b)}",
        )
        known.append(name)

    def statements(self, known: list[str], counter: str, depth: int) -> None:
        for _ in range(self.random.randrange(0, 3)):
            kinds = [self.operation] * 2
            if counter:
                kinds.append(lambda seen: self.branch(seen, counter))
            if depth < 2:
                kinds += [
                    lambda seen: self.loop(seen, depth + 1),
                    lambda seen: self.while_loop(seen, depth + 1),
                ]
            self.random.choice(kinds)(known)

    def chosen(self, known: list[str], count: int) -> list[str]:
        return [self.random.choice(known[-6:]) for _ in range(count)]

    def branch(self, known: list[str], counter: str) -> None:
        name, test = self.name("b"), self.name("c")
        at = self.random.randrange(3)
        self.line(f"%{test} = arith.cmpi eq, %{counter}, %k{at} : index")
        self.line(f"%{name} = scf.if %{test} -> ({TILE}) {{", f"if {counter} == {at}:")
        for part in range(2):
            if part:
                self.line("} else {", "else:")
            self.indent += 1
            inner = list(known)
            if self.random.random() < 0.4:
                self.operation(inner)
            (value,) = self.chosen(inner, 1)
            self.line(f"scf.yield %{value} : {TILE}", f"{name} = {value}")
            self.indent -= 1
        self.line("}")
        known.append(name)

    def loop(self, known: list[str], depth: int = 1) -> None:
        carried = [self.name("a") for _ in range(self.random.randrange(1, 4))]
        inits, results = self.chosen(known, len(carried)), [self.name("r") for _ in carried]
        i = self.name("i")
        pairs = ", ".join(f"%{a} = %{b}" for a, b in zip(carried, inits, strict=True))
        kinds = ", ".join([TILE] * len(carried))
        self.assign(carried, inits)
        self.line(
            f"{_listed(results)} = scf.for %{i} = %k0 to %n step %k1 iter_args({pairs}) "
            f"-> ({kinds}) {{",
            f"for {i} in range(n):",
        )
        self.body(known, carried, i, depth)
        self.assign(results, carried)
        known += results

    def while_loop(self, known: list[str], depth: int = 1) -> None:
        carried = [self.name("a") for _ in range(self.random.randrange(1, 3))]
        inits, results = self.chosen(known, len(carried)), [self.name("r") for _ in carried]
        inner = [self.name("w") for _ in carried]
        i, next_, go, last = (self.name(stem) for stem in "ijgl")
        pairs = ", ".join(f"%{a} = %{b}" for a, b in zip(carried, inits, strict=True))
        kinds = ", ".join([TILE] * len(carried))
        self.assign([i, *carried], ["0", *inits])
        self.line(
            f"%{last}, {_listed(results)} = scf.while (%{i} = %k0, {pairs}) : (index, {kinds}) "
            f"-> (index, {kinds}) {{",
            f"while {i} < n:",
        )
        self.line(f"  %{go} = arith.cmpi slt, %{i}, %n : index")
        self.line(f"  scf.condition(%{go}) %{i}, {_listed(carried)} : index, {kinds}")
        args = ", ".join(f"%{name}: {TILE}" for name in inner)
        self.line(f"}} do {{\n^bb0(%{next_}: index, {args}):")
        self.indent += 1
        self.assign([next_, *inner], [i, *carried])
        step = self.name("s")
        self.line(f"%{step} = arith.addi %{next_}, %k1 : index", f"{i} = {i} + 1")
        self.indent -= 1
        self.body(known, carried, next_, depth, inner, f"%{step}, ", "index, ")
        self.assign(results, carried)
        known += results

    def body(
        self,
        known: list[str],
        carried: list[str],
        counter: str,
        depth: int,
        names: list[str] | None = None,
        first: str = "",
        kind: str = "",
    ) -> None:
        self.indent += 1
        inner = [*known, *(names or carried)]
        self.statements(inner, counter, depth)
        left = self.chosen(inner, len(carried))
        kinds = kind + ", ".join([TILE] * len(carried))
        self.line(f"scf.yield {first}{_listed(left)} : {kinds}")
        self.assign(carried, left)
        self.indent -= 1
        self.line("}")

    def assign(self, names: list[str], values: list[str]) -> None:
        self.python.append("  " * self.indent + f"{', '.join(names)} = {', '.join(values)}")


def _listed(names: list[str]) -> str:
    return ", ".join(f"%{name}" for name in names)


@dataclass(frozen=True)
class Program:
    text: str
    python: str

    def computes(self, x: np.ndarray, n: int) -> np.ndarray:
        scope: dict[str, object] = {"np": np, "x": x, "n": n}
        exec(self.python, scope)
        result = scope["z"]
        assert isinstance(result, np.ndarray)
        return result


def program(body: str, name: str) -> str:
    """A kernel over two arrays of 16 x 64 floats, %px and %pz, and a number %n."""
    views = "".join(
        f"""  %v{each} = pto.make_tensor_view %{each},
    shape = [%rows, %cols], strides = [%cols, %k1] : !pto.tensor_view<?x?xf32>
  %p{each} = pto.partition_view %v{each}, offsets = [%k0, %k0], sizes = [%rows, %cols]
    : !pto.tensor_view<?x?xf32> -> {VIEW}
"""
        for each in "xz"
    )
    numbers = {"k0": 0, "k1": 1, "k2": 2, "rows": 16, "cols": 64}
    constants = "".join(f"  %{n} = arith.constant {v} : index\n" for n, v in numbers.items())
    head = f"func.func @{name}(%x: !pto.ptr<f32>, %z: !pto.ptr<f32>, %n: index) {{\n"
    return f"{head}{constants}{views}{body}\n  return\n}}\n"


def random_program(seed: int) -> Program:
    """The same seed always gives the same program, called @f{seed}."""
    writer = Writer(random.Random(seed))
    writer.line(f"%x0 = pto.tload %px : {VIEW} -> {TILE}", "x0 = x")
    known = ["x0"]
    writer.operation(known)
    for _ in range(2):
        writer.random.choice([writer.loop, writer.while_loop])(known)
        writer.statements(known, "", 1)
    writer.line(f"pto.tstore %{known[-1]}, %pz : ({TILE}, {VIEW}) -> ()", f"z = {known[-1]}")
    body = "\n".join(writer.text)
    return Program(program(body, f"f{seed}"), "if True:\n" + "\n".join(writer.python))
