"""Random programs: tiles, loads, stores, vector work, loops and branches, as IR."""

from __future__ import annotations

import random
from dataclasses import dataclass

from ptokit.base.dtypes import f32
from ptokit.base.enums import TileType
from ptokit.base.tiles import TileSpec
from ptokit.ir.attributes import IntAttr, StringAttr, UnitAttr
from ptokit.ir.builder import Builder
from ptokit.ir.core import Block, Function, Module, Value
from ptokit.ir.types import F32, I1, I64, INDEX, PtrType, ScalarType, TileBufType, ViewType
from ptokit.isa import INSTRUCTIONS

ROWS, COLS, BLOCKS, ARRAYS = 8, 32, 3, 2
TILE = TileBufType(TileSpec.of(TileType.Vec, f32, ROWS, COLS))
VIEW = ViewType("tensor_view", (ROWS * BLOCKS, COLS), F32)
PART = ViewType("partition_tensor_view", (ROWS, COLS), F32)


@dataclass
class Maker:
    """Writes one random program."""

    random: random.Random
    builder: Builder
    tiles: list[Value]
    views: list[Value]
    zero: Value
    rows: Value
    cols: Value
    counter: Value | None = None

    def part(self) -> Value:
        """A block of an array, sometimes one that the loop chooses."""
        build = self.builder
        if self.counter is not None and self.random.random() < 0.5:
            blocks = build.constant(BLOCKS)
            operands = {"lhs": self.counter, "rhs": blocks}
            block = build.op("arith.remsi", operands, [INDEX]).result
        else:
            block = build.constant(self.random.randrange(BLOCKS))
        start = build.op("arith.muli", {"lhs": block, "rhs": self.rows}, [INDEX]).result
        sizes = {"offsets": [start, self.zero], "sizes": [self.rows, self.cols]}
        source = self.random.choice(self.views)
        return build.op("pto.partition_view", {"source": source, **sizes}, [PART]).result

    def tile(self) -> Value:
        return self.random.choice(self.tiles)

    def load(self, tile: Value) -> None:
        self.builder.instruction(INSTRUCTIONS["TLOAD"], {"src": self.part(), "dst": tile})

    def statement(self, depth: int) -> None:
        kind = self.random.choice(
            ["load", "load", "store", "add", "add", "scale", "loop", "branch"]
        )
        build = self.builder
        if kind == "load":
            self.load(self.tile())
        elif kind == "store":
            build.instruction(INSTRUCTIONS["TSTORE"], {"src": self.tile(), "dst": self.part()})
        elif kind == "add":
            operands = {"src0": self.tile(), "src1": self.tile(), "dst": self.tile()}
            build.instruction(INSTRUCTIONS["TMAX"], operands)
        elif kind == "scale":
            factor = build.constant(self.random.choice([0.5, -1.0, 2.0]), F32)
            operands = {"src": self.tile(), "scalar": factor, "dst": self.tile()}
            build.instruction(INSTRUCTIONS["TMULS"], operands)
        elif depth < 3:
            (self.loop if kind == "loop" else self.branch)(depth)

    def body(self, depth: int) -> Block:
        outer = self.builder.block
        self.builder.block = block = Block()
        for _ in range(self.random.randrange(1, 5)):
            self.statement(depth + 1)
        self.builder.op("scf.yield")
        self.builder.block = outer
        return block

    def loop(self, depth: int) -> None:
        trips = self.builder.constant(self.random.choice([0, 1, 2, 3]))
        one = self.builder.constant(1)
        saved, variable = self.counter, Value("i", INDEX)
        self.counter = variable
        block = self.body(depth)
        block.args.insert(0, variable)
        self.counter = saved
        operands = {"lower": self.zero, "upper": trips, "step": one}
        self.builder.op("scf.for", operands, regions=[block])

    def branch(self, depth: int) -> None:
        counter = self.counter or self.zero
        two = self.builder.constant(2)
        parity = self.builder.op("arith.remsi", {"lhs": counter, "rhs": two}, [INDEX]).result
        number = {"predicate": IntAttr(self.random.choice([0, 1]), I64)}
        operands = {"lhs": parity, "rhs": self.zero}
        condition = self.builder.op("arith.cmpi", operands, [I1], number).result
        regions = [self.body(depth), self.body(depth)]
        self.builder.op("scf.if", {"condition": condition}, regions=regions)


def random_program(seed: int, target: str) -> Module:
    """A legal program without a single flag or address."""
    chooser = random.Random(seed)
    body = Block([Value(f"x{n}", PtrType(ScalarType("f32"))) for n in range(ARRAYS)])
    function = Function("main", body, attrs={"pto.entry": UnitAttr()})
    build = Builder(body)
    zero, one = build.constant(0), build.constant(1)
    rows, cols, all_rows = build.constant(ROWS), build.constant(COLS), build.constant(ROWS * BLOCKS)
    sizes = {"shape": [all_rows, cols], "strides": [cols, one]}
    views = [
        build.op("pto.make_tensor_view", {"ptr": p, **sizes}, [VIEW]).result for p in body.args
    ]
    tiles = [build.op("pto.alloc_tile", {}, [TILE]).result for _ in range(chooser.randrange(2, 5))]
    maker = Maker(chooser, build, tiles, views, zero, rows, cols)
    for tile in tiles:
        maker.load(tile)  # nothing may read what was never written
    for _ in range(chooser.randrange(3, 9)):
        maker.statement(0)
    build.op("func.return")
    return Module([function], {"pto.target_arch": StringAttr(target)})
