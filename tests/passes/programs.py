"""Random programs as IR: tiles that loops rotate, branches choose and helpers rename.

A program has variables that hold tiles. Statements load, store, compute, make new tiles and give
old ones new shapes; loops carry some variables and hand them on in any order, branches yield one
tile or another. There is not a single address or flag in it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ptokit.base.dtypes import f32
from ptokit.base.enums import TileType
from ptokit.base.tiles import TileSpec
from ptokit.ir.attributes import ArrayAttr, IntAttr, StringAttr, UnitAttr
from ptokit.ir.builder import Builder
from ptokit.ir.core import Block, Function, Module, Value
from ptokit.ir.types import F32, I1, I64, INDEX, PtrType, ScalarType, TileBufType, ViewType
from ptokit.isa import INSTRUCTIONS

ROWS, COLS, BLOCKS, ARRAYS = 8, 32, 3, 2
SHAPES = ((ROWS, COLS), (ROWS // 2, COLS))
TILES = {shape: TileBufType(TileSpec.of(TileType.Vec, f32, *shape)) for shape in SHAPES}
OTHER = {
    shape: TileBufType(TileSpec.of(TileType.Vec, f32, shape[0] // 2, shape[1] * 2))
    for shape in SHAPES
}
VIEW = ViewType("tensor_view", (ROWS * BLOCKS, COLS), F32)
BINARY = ("TMAX", "TMIN", "TPARTMAX")  # the last one does not go element by element
STATEMENTS = (
    *("load", "load", "store", "binary", "binary", "scale", "fresh", "reshape"),
    *("swap", "loop", "loop", "branch", "switch", "while"),
)


@dataclass
class Maker:
    """Writes one random program."""

    random: random.Random
    builder: Builder
    variables: list[Value]
    views: list[Value]
    zero: Value
    one: Value
    counter: Value | None = None
    trips: tuple[int, ...] = (0, 1, 2, 3, 4)
    most: int = 3  # levels of loops and branches
    parts: dict[int, Value] = field(default_factory=dict[int, Value])

    # ---- operands ----------------------------------------------------------------------------

    def variable(self, shape: tuple[int, int] | None = None) -> int:
        """The number of a variable, of one that holds tiles of a shape if asked for."""
        fitting = [n for n, v in enumerate(self.variables) if shape in (None, shape_of(v))]
        return self.random.choice(fitting)

    def tile(self, shape: tuple[int, int] | None = None) -> Value:
        return self.variables[self.variable(shape)]

    def calculate(self, name: str, lhs: Value, rhs: Value) -> Value:
        return self.builder.op(f"arith.{name}", {"lhs": lhs, "rhs": rhs}, [INDEX]).result

    def is_equal(self, lhs: Value, rhs: Value, predicate: int = 0) -> Value:
        number = {"predicate": IntAttr(predicate, I64)}
        return self.builder.op("arith.cmpi", {"lhs": lhs, "rhs": rhs}, [I1], number).result

    def modulo(self, number: int) -> Value:
        """The round of the loop around, modulo a number."""
        return self.calculate("remsi", self.counter or self.zero, self.builder.constant(number))

    def part(self, shape: tuple[int, int]) -> Value:
        """A block of an array, sometimes one that the loop chooses."""
        build = self.builder
        if self.counter is not None and self.random.random() < 0.5:
            block = self.modulo(BLOCKS)
        else:
            block = build.constant(self.random.randrange(BLOCKS))
        start = self.calculate("muli", block, build.constant(ROWS))
        sizes = [build.constant(n) for n in shape]
        operands = {"offsets": [start, self.zero], "sizes": sizes}
        source = self.random.choice(self.views)
        part = ViewType("partition_tensor_view", shape, F32)
        return build.op("pto.partition_view", {"source": source, **operands}, [part]).result

    # ---- statements --------------------------------------------------------------------------

    def run(self, name: str, **operands: Value) -> None:
        self.builder.instruction(INSTRUCTIONS[name], operands)

    def load(self, tile: Value) -> None:
        self.run("TLOAD", src=self.part(shape_of(tile)), dst=tile)

    def alloc(self, type_: TileBufType) -> Value:
        return self.builder.op("pto.alloc_tile", {}, [type_]).result

    def scaled(self, source: Value, dst: Value) -> None:
        factor = self.builder.constant(self.random.choice([0.5, -1.0, 2.0]), F32)
        self.run("TMULS", src=source, scalar=factor, dst=dst)

    def statement(self, depth: int) -> None:
        kind = self.random.choice(STATEMENTS)
        if kind == "load":
            self.load(self.tile())
        elif kind == "store":
            tile = self.tile()
            self.run("TSTORE", src=tile, dst=self.part(shape_of(tile)))
        elif kind == "binary":
            first = self.tile()
            second, dst = self.tile(shape_of(first)), self.tile(shape_of(first))
            self.run(self.random.choice(BINARY), src0=first, src1=second, dst=dst)
        elif kind == "scale":
            source = self.tile()
            self.scaled(source, self.tile(shape_of(source)))
        elif kind == "fresh":
            number = self.variable()
            shape = shape_of(self.variables[number])
            made = self.alloc(TILES[shape])
            if self.random.random() < 0.5:
                self.load(made)
            else:  # it begins where another one may end
                self.run("TPARTMAX", src0=self.tile(shape), src1=self.tile(shape), dst=made)
            self.variables[number] = made
        elif kind == "reshape":
            source = self.tile()
            other = self.alloc(OTHER[shape_of(source)])
            self.run("TRESHAPE", src=source, dst=other)
            self.scaled(other, other)
        elif kind == "swap":
            number = self.variable()
            self.variables[number] = self.tile(shape_of(self.variables[number]))
        elif depth < self.most:
            write = {"loop": self.loop, "branch": self.branch, "while": self.while_loop}
            write.get(kind, self.switch)(depth)

    # ---- regions -----------------------------------------------------------------------------

    def body(
        self, depth: int, args: list[Value], carried: Sequence[int], end: Callable[[], None]
    ) -> Block:
        """A region in which the carried variables are the last of its arguments."""
        outer, saved = self.builder.block, list(self.variables)
        self.builder.block = block = Block(args)
        for number, arg in zip(carried, args[len(args) - len(carried) :], strict=True):
            self.variables[number] = arg
        for _ in range(self.random.randrange(1, 5)):
            self.statement(depth + 1)
        end()
        self.builder.block, self.variables = outer, saved
        return block

    def carried(self) -> list[int]:
        count = self.random.randrange(len(self.variables) + 1)
        return sorted(self.random.sample(range(len(self.variables)), count))

    def handed_on(self, carried: Sequence[int]) -> list[Value]:
        """What a region yields: its variables as they are, rotated, or any that fit."""
        values = [self.variables[n] for n in carried]
        for shape in SHAPES:
            places = [n for n, v in enumerate(values) if shape_of(v) == shape]
            kind = self.random.choice(["same", "rotate", "rotate", "any"])
            if kind == "rotate":
                turned = [values[n] for n in (*places[1:], *places[:1])]
                for place, value in zip(places, turned, strict=True):
                    values[place] = value
            elif kind == "any":
                for place in places:
                    values[place] = self.tile(shape)
        return values

    def take(self, carried: Sequence[int], results: Sequence[Value]) -> None:
        for number, result in zip(carried, results, strict=True):
            self.variables[number] = result

    def loop(self, depth: int) -> None:
        build, carried = self.builder, self.carried()
        inits = [self.variables[n] for n in carried]
        trips = build.constant(self.random.choice(self.trips))
        saved, variable = self.counter, Value("i", INDEX)
        self.counter = variable
        args = [variable, *(Value("t", v.type) for v in inits)]
        block = self.body(
            depth, args, carried, lambda: self._end("scf.yield", self.handed_on(carried))
        )
        self.counter = saved
        operands = {"lower": self.zero, "upper": trips, "step": self.one, "inits": inits}
        types = [v.type for v in inits]
        self.take(carried, build.op("scf.for", operands, types, regions=[block]).results)

    def while_loop(self, depth: int) -> None:
        """A loop that counts by itself; its condition hands the tiles on in another order."""
        build, carried = self.builder, self.carried()
        inits = [self.variables[n] for n in carried]
        trips = build.constant(self.random.choice(self.trips))
        types = [INDEX, *(v.type for v in inits)]
        saved = self.counter
        before = Block([Value("n", t) for t in types])
        outer, build.block = build.block, before
        goes_on = self.is_equal(before.args[0], trips, 2)  # less than
        names, self.variables = self.variables, list(self.variables)
        self.take(carried, before.args[1:])
        passed = self.handed_on(carried)
        build.op("scf.condition", {"condition": goes_on, "args": [before.args[0], *passed]})
        build.block, self.variables = outer, names
        args = [Value("n", t) for t in types]
        self.counter = args[0]

        def end() -> None:
            following = self.calculate("addi", args[0], self.one)
            self._end("scf.yield", [following, *self.handed_on(carried)])

        after = self.body(depth, args, carried, end)
        self.counter = saved
        operands = {"inits": [self.zero, *inits]}
        made = build.op("scf.while", operands, types, regions=[before, after])
        self.take(carried, made.results[1:])

    def branch(self, depth: int) -> None:
        condition = self.is_equal(self.modulo(2), self.zero, self.random.choice([0, 1]))
        self._choice("scf.if", {"condition": condition}, 2, depth)

    def switch(self, depth: int) -> None:
        cases = ArrayAttr((IntAttr(0, I64), IntAttr(1, I64)), ScalarType("i64"))
        self._choice("scf.index_switch", {"arg": self.modulo(3)}, 3, depth, cases)

    def _choice(
        self,
        name: str,
        operands: dict[str, Value],
        regions: int,
        depth: int,
        cases: ArrayAttr | None = None,
    ) -> None:
        carried = self.carried()
        types = [self.variables[n].type for n in carried]
        blocks = [
            self.body(depth, [], (), lambda: self._end("scf.yield", self.handed_on(carried)))
            for _ in range(regions)
        ]
        attrs = {} if cases is None else {"cases": cases}
        made = self.builder.op(name, operands, types, attrs, regions=blocks)
        self.take(carried, made.results)

    def _end(self, name: str, values: list[Value]) -> None:
        self.builder.op(name, {"args": values})


def shape_of(value: Value) -> tuple[int, int]:
    assert isinstance(value.type, TileBufType)
    return value.type.spec.rows, value.type.spec.cols


def _start(chooser: random.Random) -> tuple[Function, Maker]:
    body = Block([Value(f"x{n}", PtrType(ScalarType("f32"))) for n in range(ARRAYS)])
    function = Function("main", body, attrs={"pto.entry": UnitAttr()})
    build = Builder(body)
    zero, one = build.constant(0), build.constant(1)
    cols, all_rows = build.constant(COLS), build.constant(ROWS * BLOCKS)
    sizes = {"shape": [all_rows, cols], "strides": [cols, one]}
    views = [
        build.op("pto.make_tensor_view", {"ptr": p, **sizes}, [VIEW]).result for p in body.args
    ]
    return function, Maker(chooser, build, [], views, zero, one)


def _finish(function: Function, maker: Maker, target: str) -> Module:
    """Some variables are looked at in the end; the others may end earlier."""
    count = maker.random.randrange(1, 3)
    for tile in maker.random.sample(maker.variables, min(count, len(maker.variables))):
        maker.run("TSTORE", src=tile, dst=maker.part(shape_of(tile)))
    maker.builder.op("func.return")
    return Module([function], {"pto.target_arch": StringAttr(target)})


def random_program(seed: int, target: str, levels: int = 3) -> Module:
    """A legal program without a single flag or address, with loops and branches up to a depth."""
    chooser = random.Random(seed)
    function, maker = _start(chooser)
    maker.most = levels
    shapes = [chooser.choice(SHAPES) for _ in range(chooser.randrange(2, 7))]
    maker.variables = [maker.alloc(TILES[shape]) for shape in shapes]
    for tile in maker.variables:
        maker.load(tile)  # nothing may read what was never written
    for _ in range(chooser.randrange(3, 9) if levels else 16):
        maker.statement(0)
    return _finish(function, maker, target)


def rotation(count: int, rounds: int, seed: int, target: str) -> Module:
    """A loop that rotates its tiles, and touches only the first of them in every round.

    Before and behind that, it needs a tile for a moment, which must not share bytes with any of
    them: what a round does not touch, the next one may.
    """
    chooser = random.Random(seed)
    function, maker = _start(chooser)
    build = maker.builder
    tiles = [maker.alloc(TILES[SHAPES[0]]) for _ in range(count)]
    for tile in tiles:
        maker.load(tile)
    args = [Value("i", INDEX), *(Value("t", t.type) for t in tiles)]
    outer, build.block = build.block, Block(args)
    maker.counter = args[0]
    first, last = maker.alloc(TILES[SHAPES[0]]), maker.alloc(TILES[SHAPES[0]])
    maker.load(first)
    maker.run("TMAX", src0=args[1], src1=first, dst=args[1])
    maker.load(last)
    maker.run("TSTORE", src=last, dst=maker.part(SHAPES[0]))
    build.op("scf.yield", {"args": [*args[2:], args[1]]})
    body, build.block, maker.counter = build.block, outer, None
    operands = {"lower": maker.zero, "upper": build.constant(rounds), "step": maker.one}
    types = [t.type for t in tiles]
    loop = build.op("scf.for", {**operands, "inits": tiles}, types, regions=[body])
    maker.variables = loop.results[-1:]
    return _finish(function, maker, target)
