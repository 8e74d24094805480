"""Random kernels as people write them: Python source, legal or with one deliberate mistake.

A kernel has tiles in variables and lists, numbers that only a run knows, helpers, loops of every
kind and branches, parts of parts of arrays, tiles that one round hands to the next. In auto mode
nothing is placed or ordered; in manual mode every tile has its address and barriers, flags or
events follow every instruction, so that leaving some out is a mistake with a name. Some run on a
cluster and hand tiles through a FIFO, to the vector cores, to the cube core, or both ways. Seeds
from `WIDER` on also draw more reductions, conversions and products of halves. The same seed always
gives the same source.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

ROWS, COLS, BLOCKS = 8, 32, 4  # of a tile; blocks of an array
WIDER = 10_000  # the first seed that draws from more instructions
RING = 4 * 32 * 32 * 4  # bytes for the slots of a FIFO on A2/A3

ONCE = Path(__file__).parent / "once"  # programs that found something, as they were then
HEADER = '''"""Seed {seed}: {mode} mode, n = {number}{mistake}."""

from ptokit import *

T = Tile[TileType.Vec, float32, 8, 32]
I = Tile[TileType.Vec, int32, 8, 32]
C = Tile[TileType.Vec, float32, 8, 1, BLayout.ColMajor]
Wide = Tile[TileType.Vec, float32, 4, 64]
Loose = Tile[TileType.Vec, float32, 8, 32, BLayout.RowMajor, DYNAMIC, DYNAMIC]
Mat = Tile[TileType.Mat, float32, 32, 32, BLayout.ColMajor, 32, 32, SLayout.RowMajor]
Half = Tile[TileType.Vec, float32, 16, 32]
R = Tile[TileType.Vec, float32, 1, 32]
H = Tile[TileType.Vec, half, 8, 32]
Mat16 = Tile[TileType.Mat, half, 32, 32, BLayout.ColMajor, 32, 32, SLayout.RowMajor]
Half16 = Tile[TileType.Vec, half, 16, 32]
UP = TileSplitAxis.TILE_UP_DOWN


class Pair:
    def __init__(self, first, second):
        self.first, self.second = first, second

    def swap(self):
        self.first, self.second = self.second, self.first


def part(x, block):
    return GlobalTensor(x)[block * 8 : block * 8 + 8, :]


def added(into, other, amount):
    TADDS(into, other, amount)
    return into


def larger(a, b, into):
    TMAX(into, a, b)
    return into, a


def twice(act):
    act()
    act()


def scaled(by):
    def act(tile):
        TMULS(tile, tile, by)

    return act


'''

# What a deliberate mistake is called; most kernels have none.
MISTAKES = (
    *("", "", "", "", "", "", "unwritten", "outside", "types", "capacity", "region", "unordered"),
    *("flags", "overlap", "wrong event"),
)
MANUAL = ("unordered", "overlap", "wrong event")  # where the author places and orders
FIFO_MISTAKES = ("", "", "", "one pop too many", "a slot too few given back", "types")


@dataclass(frozen=True)
class Program:
    """The source of a kernel called `k` with its arguments: two arrays, a number, a ring."""

    seed: int
    source: str
    mode: str
    mistake: str
    number: int

    def arguments(self) -> tuple[np.ndarray, np.ndarray, int, np.ndarray]:
        rng = np.random.default_rng(self.seed)
        x = rng.integers(-9, 10, (ROWS * BLOCKS, COLS)).astype(np.float32)
        return x, np.zeros_like(x), self.number, np.zeros(RING, np.uint8)


def random_program(seed: int, mode: str = "", mistake: str | None = None) -> Program:
    """The kernel of a seed, of a mode and with a mistake that are given or drawn as well."""
    chooser = random.Random(seed)
    drawn = chooser.choice(["auto", "auto", "auto", "manual"]), chooser.choice(MISTAKES)
    mode = mode or drawn[0]
    mistake = drawn[1] if mistake is None else mistake
    if (mistake in MANUAL and mode == "auto") or (mistake == "flags" and mode == "manual"):
        mistake = ""
    writer = _Writer(chooser, mode, mistake, is_wider=seed >= WIDER)
    if mode == "auto" and chooser.random() < 0.15:
        writer.mistake = mistake = chooser.choice(FIFO_MISTAKES)
        writer.cluster() if chooser.random() < 0.6 else writer.to_cube()
    elif writer.is_wider and mode == "auto" and chooser.random() < 0.15:
        writer.mistake = mistake = chooser.choice(("", "", "", "one pop too many", "types"))
        writer.round_trip()
    else:
        writer.kernel()
    said = f", mistake: {mistake}" if mistake else ""
    number = chooser.choice([0, 1, 2, 3, 5])
    head = HEADER.format(seed=seed, mode=mode, number=number, mistake=said)
    return Program(seed, head + "\n".join(writer.lines) + "\n", mode, mistake, number)


def kept_programs() -> list[Program]:
    """Programs that doors once did not agree about."""
    found: list[Program] = []
    for path in sorted(ONCE.glob("*.txt")):
        source = path.read_text("utf-8")
        said = re.match(r'"""Seed (\d+): (\w+) mode, n = (\d+)(?:, mistake: (.*?))?\."""', source)
        assert said is not None, path
        seed, mode, number, mistake = said.groups()
        found.append(Program(int(seed), source, mode, mistake or "", int(number)))
    return found


# How work of each pipe is followed by that of the others, and a class of each for events.
_CLASSES = {"MTE2": "TLOAD", "V": "TADD", "MTE3": "TSTORE_VEC"}


def _slots(depth: int) -> str:
    """SlotNum, and LocalSlotNum where its default is more than texts allow."""
    return "1, 1" if depth == 1 else str(depth)


@dataclass
class _Writer:
    """Writes the lines of one kernel."""

    random: random.Random
    mode: str
    mistake: str
    is_wider: bool = False
    lines: list[str] = field(default_factory=list[str])
    indent: int = 0
    tiles: list[str] = field(default_factory=list[str])  # expressions that are tiles with contents
    counters: list[str] = field(default_factory=list[str])  # loop variables in scope, outside in
    loops: list[str] = field(default_factory=list[str])  # kinds of the loops around
    names: int = 0
    address: int = 0
    depth: int = 0

    # ---- lines -------------------------------------------------------------------------------

    def write(self, line: str) -> None:
        self.lines.append("    " * self.indent + line)

    def do(self, line: str) -> None:
        """An instruction; in manual mode with the order that everything after it needs."""
        if self.mode != "manual":
            self.write(line)
            return
        if self.mistake == "unordered" and self.chance(0.2):
            self.write(line)
            return
        way = self.random.choice(["barrier", "barrier", "barrier", "flags", "event"])
        pipe = {"TLOAD": "MTE2", "TSTORE": "MTE3"}.get(line.partition("(")[0], "V")
        others = [each for each in _CLASSES if each != pipe]
        if way == "barrier":
            self.write(line)
            self.write("pipe_barrier(PIPE_ALL)")
            return
        if way == "event":
            name, first = self.name("v"), others.pop()
            waits = "TSTORE_MAT" if self.mistake == "wrong event" else _CLASSES[first]
            self.write(f"{name} = Event[Op.{_CLASSES[pipe]}, Op.{waits}]({line})")
            self.write(f"{name}.Wait()")
        else:
            self.write(line)
        for each in others:
            self.write(f"PtoSetWaitFlag[PIPE_{pipe}, PIPE_{each}]()")
        self.write(f"pipe_barrier(PIPE_{pipe})")

    def name(self, stem: str) -> str:
        self.names += 1
        return f"{stem}{self.names}"

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def declare(self, name: str, kind: str, size: int = 1024) -> None:
        """A new tile; in manual mode at an address of its own."""
        self.write(f"{name} = {kind}")
        if self.mode == "manual":
            self.write(f"TASSIGN({name}, {self.address:#x})")
            self.address += size

    def inside(self, write: Callable[[], None]) -> None:
        """The body of a loop or branch; what it declares is not known behind it."""
        known = list(self.tiles)
        self.indent += 1
        self.depth += 1
        write()
        self.depth -= 1
        self.indent -= 1
        self.tiles = known

    # ---- operands ----------------------------------------------------------------------------

    def tile(self) -> str:
        return self.random.choice(self.tiles)

    def simple(self) -> str:
        """A tile in a plain variable."""
        return self.random.choice([t for t in self.tiles if t.isidentifier()])

    def block(self) -> str:
        if self.mistake == "outside" and self.chance(0.2):
            return str(BLOCKS)
        if self.counters and self.chance(0.6):
            return f"{self.random.choice(self.counters)} % {BLOCKS}"
        return self.random.choice([*map(str, range(BLOCKS)), f"n % {BLOCKS}"])

    def scalar(self) -> str:
        number = str(self.random.choice([0.5, 1.0, -2.0]))
        if self.counters and self.chance(0.3):
            return f"{self.random.choice(self.counters)} * {number}"
        return self.random.choice([number, number, "n + 1", "total", "float(n) * 0.5"])

    def condition(self) -> str:
        tests = ["n > 2", "n % 2 == 0", "total < 3", "n == 1 or n == 3"]
        for counter in self.counters:
            tests += [f"{counter} % 2 == 0", f"{counter} < n", f"not {counter} == 1"]
        return self.random.choice(tests)

    # ---- statements --------------------------------------------------------------------------

    def kernel(self) -> None:
        self.write(f'@kernel(mode="{self.mode}")')
        self.write("def k(x, y, n, ring):")
        self.indent = 1
        self.write("total = 0")
        for _ in range(self.random.randrange(2, 5)):
            name = self.name("t")
            self.declare(name, "T()")
            self.do(f"TLOAD({name}, part(x, {self.random.randrange(BLOCKS)}))")
            self.tiles.append(name)
        count = self.random.randrange(3, 10)
        wrong = self.random.randrange(count)
        for n in range(count):
            self.statement()
            if self.mistake and n == wrong:
                self.wrong()
        for name in self.random.sample(self.tiles, min(2, len(self.tiles))):
            self.do(f"TSTORE(part(y, {self.random.randrange(BLOCKS)}), {name})")

    def cluster(self) -> None:
        """A product on the cube core, handed to both vector cores through a FIFO."""
        depth = self.random.choice([1, 2, 4])
        trips = self.random.choice(["n", "n + 1", "3"])
        self.write('@kernel(mode="auto", core="mix")')
        self.write("def k(x, y, n, ring):")
        self.indent = 1
        self.write("total = 0")
        self.write(f"pipe = TPipe[0, Direction.DIR_C2V, 4096, {_slots(depth)}](ring, 0x8000, 0)")
        self.write("with cube_section():")
        self.indent = 2
        self.product()
        self.write(f"for i in range({trips}):")
        self.write("    TMATMUL_ACC(acc, left, right)" if self.chance(0.5) else "    pass")
        self.write("    TPUSH[TileSplitAxis.TILE_UP_DOWN](pipe, acc)")
        self.indent = 1
        self.write("with vector_section():")
        self.indent = 2
        self.write("popped, more = Half(), Half()")
        self.write("first = get_subblockid() * 16")
        self.write("TEXPANDS(more, 0.0)")
        more = " + 1" if self.mistake == "one pop too many" else ""
        self.write(f"for j in range({trips}{more}):")
        self.counters, self.tiles = ["j"], ["more"]
        self.indent = 3
        self.write("TPOP[TileSplitAxis.TILE_UP_DOWN](pipe, popped)")
        name = self.random.choice(["TADD", "TMAX"])
        kept = self.chance(0.5)
        self.write(f"{name}(more, popped, {'more' if kept else 'popped'})")
        if self.mistake == "types":
            self.write("TADD(I(), popped, popped)")
        if self.chance(0.5):
            self.write(f"if {self.condition()}:")
            self.write(f"    TADDS(more, more, {self.scalar()})")
        if self.mistake == "a slot too few given back":
            self.write("if j > 0:")
            self.indent = 4
        self.write("TFREE[TileSplitAxis.TILE_UP_DOWN](pipe)")
        self.indent = 2 if self.chance(0.5) else 3
        self.write("TSTORE(GlobalTensor(y)[first : first + 16, :], more)")

    def to_cube(self) -> None:
        """Tiles of both vector cores, handed to the cube core through a FIFO."""
        depth = self.random.choice([1, 2, 4])
        trips = self.random.choice(["n", "n + 1", "3"])
        self.write('@kernel(mode="auto", core="mix")')
        self.write("def k(x, y, n, ring):")
        self.indent = 1
        self.write("total = 0")
        self.write(f"pipe = TPipe[0, Direction.DIR_V2C, 4096, {_slots(depth)}](ring, 0, 0x8000)")
        self.write("with vector_section():")
        self.indent = 2
        self.write("half = Half()")
        self.write("first = get_subblockid() * 16")
        self.write("TLOAD(half, GlobalTensor(x)[first : first + 16, :])")
        more = " + 1" if self.mistake == "one pop too many" else ""
        self.write(f"for i in range({trips}):")
        self.counters, self.tiles = ["i"], ["half"]
        self.indent = 3
        self.write(f"TADDS(half, half, {self.scalar()})")
        if self.mistake == "types":
            self.write("TADD(I(), half, half)")
        self.write("TPUSH[TileSplitAxis.TILE_UP_DOWN](pipe, half)")
        self.indent = 1
        self.write("with cube_section():")
        self.indent = 2
        self.write("right, acc = TileRight[float32, 32, 32](), TileAcc[float32, 32, 32]()")
        self.write("left, popped, b = TileLeft[float32, 32, 32](), Mat(), Mat()")
        self.write("TLOAD(b, GlobalTensor(x))")
        self.write("TMOV(right, b)")
        self.write(f"for j in range({trips}{more}):")
        self.indent = 3
        self.write("TPOP[TileSplitAxis.TILE_UP_DOWN](pipe, popped)")
        self.write("TMOV(left, popped)")
        if self.mistake == "a slot too few given back":
            self.write("if j > 0:")
            self.indent = 4
        self.write("TFREE[TileSplitAxis.TILE_UP_DOWN](pipe)")
        self.indent = 3
        self.write("TMATMUL(acc, left, right)")
        self.write("TSTORE(GlobalTensor(y), acc)")

    def round_trip(self) -> None:
        """Vector cores prepare an operand of the cube core, and take the product back."""
        depth, trips = self.random.choice([1, 2, 4]), self.random.choice(["n", "n + 1", "3"])
        self.write('@kernel(mode="auto", core="mix")')
        self.write("def k(x, y, n, ring):")
        self.indent = 1
        self.write("total = 0")
        self.write(f"back = TPipe[0, Direction.DIR_V2C, 2048, {depth}](ring, 0, 0x8000)")
        self.write(
            f"pipe = TPipe[2, Direction.DIR_C2V, 4096, {min(depth, 2)}](ptr(ring, 8192), 0x8000, 0)"
        )
        self.write("with vector_section():")
        self.indent = 2
        self.write("first = get_subblockid() * 16")
        self.write("mine, given, popped = Half(), Half16(), Half()")
        self.write("TLOAD(mine, GlobalTensor(x)[first : first + 16, :])")
        self.write(f"for j in range({trips}):")
        self.counters, self.tiles = ["j"], ["mine"]
        self.indent = 3
        if self.chance(0.5):
            self.write(f"if {self.condition()}:")
            self.write(f"    TADDS(mine, mine, {self.scalar()})")
        self.write(
            f"TCVT({'I()' if self.mistake == 'types' else 'given'}, mine, {self.rounding()})"
        )
        self.write("TPUSH[UP](back, given)")
        self.write("TPOP[UP](pipe, popped)")
        self.write("TADD(mine, popped, mine)" if self.chance(0.5) else "TADDS(mine, popped, 0.5)")
        self.write("TFREE[UP](pipe)")
        self.indent = 2
        self.write("TSTORE(GlobalTensor(y)[first : first + 16, :], mine)")
        self.indent = 1
        self.write("with cube_section():")
        self.indent = 2
        self.write("taken = Mat16()")
        self.write("left, right = TileLeft[half, 32, 32](), TileRight[half, 32, 32]()")
        self.write("acc = TileAcc[float32, 32, 32]()")
        self.write(
            f"for i in range({trips}{' + 1' if self.mistake == 'one pop too many' else ''}):"
        )
        self.indent = 3
        self.write("TPOP[UP](back, taken)")
        self.write("TMOV(left, taken)")
        self.write("TMOV(right, taken)")
        self.write("TFREE[UP](back)")
        self.write("TMATMUL(acc, left, right)")
        self.write("TPUSH[UP](pipe, acc)")

    def product(self) -> None:
        self.write("a, b = Mat(), Mat()")
        self.write("left, right = TileLeft[float32, 32, 32](), TileRight[float32, 32, 32]()")
        self.write("acc = TileAcc[float32, 32, 32]()")
        self.write("TLOAD(a, GlobalTensor(x))")
        self.write("TLOAD(b, GlobalTensor(x))")
        self.write("TMOV(left, a)")
        self.write("TMOV(right, b)")
        self.write("TMATMUL(acc, left, right)")

    def stored_product(self) -> None:
        if self.mode == "manual":
            return  # its tiles have no addresses
        self.product()
        self.write("TSTORE(GlobalTensor(y), acc)")

    def statement(self) -> None:
        kinds = [
            *(self.load, self.store, self.binary, self.binary, self.unary, self.fresh, self.swap),
            *(self.count, self.helper, self.column, self.convert, self.listed, self.pair),
            *(self.listed_change, self.either, self.reshaped, self.loose, self.stored_product),
            *(self.sliced, self.sliced, self.numbers, self.local, self.by_name, self.method),
        ]
        if self.is_wider:
            kinds += [self.rows, self.columns, self.halves, self.whole, self.half_product]
        if self.depth < 2:
            kinds += [self.loop, self.loop, self.branch, self.branch, self.while_loop]
            kinds += [self.handed_on, self.several, self.by_data]
        if self.loops and self.depth:
            kinds += [self.leave]
        if self.mistake:
            kinds += [self.wrong]
        self.random.choice(kinds)()

    def load(self) -> None:
        self.do(f"TLOAD({self.tile()}, part(x, {self.block()}))")

    def store(self) -> None:
        self.do(f"TSTORE(part(y, {self.block()}), {self.tile()})")

    def binary(self) -> None:
        name = self.random.choice(["TADD", "TMAX", "TMIN", "TSUB"])
        self.do(f"{name}({self.tile()}, {self.tile()}, {self.tile()})")

    def unary(self) -> None:
        name = self.random.choice(["TADDS", "TMAXS", "TMULS"])
        self.do(f"{name}({self.tile()}, {self.tile()}, {self.scalar()})")

    def fresh(self) -> None:
        name = self.name("t")
        self.declare(name, "T()")
        if self.chance(0.5):
            self.do(f"TLOAD({name}, part(x, {self.block()}))")
        else:
            self.do(f"TEXPANDS({name}, {self.scalar()})")
        self.tiles.append(name)

    def swap(self) -> None:
        a, b = self.simple(), self.simple()
        self.write(f"{a}, {b} = {b}, {a}")

    def count(self) -> None:
        added = self.random.choice(["1", "n", *self.counters])
        self.write(self.random.choice([f"total = total + {added}", f"total += {added}"]))

    def helper(self) -> None:
        if self.mode == "manual":
            return  # a helper has no barriers
        if self.chance(0.5):
            self.write(f"added({self.tile()}, {self.tile()}, {self.scalar()})")
        else:
            a, b = self.simple(), self.simple()
            self.write(f"{a}, {b} = larger({a}, {b}, {self.simple()})")

    def column(self) -> None:
        name, scratch, source = self.name("c"), self.name("s"), self.tile()
        self.declare(name, "C()", 32)
        self.declare(scratch, "T()")
        self.do(f"TROWMAX({name}, {source}, {scratch})")
        self.do(f"TROWEXPANDSUB({source}, {source}, {name})")

    def convert(self) -> None:
        name = self.name("i")
        self.declare(name, "I()")
        self.do(f"TCVT({name}, {self.tile()}, RoundMode.CAST_RINT)")
        self.do(f"TCVT({self.tile()}, {name}, RoundMode.CAST_RINT)")

    def rounding(self) -> str:
        return "RoundMode.CAST_" + self.random.choice(["RINT", "ROUND", "FLOOR", "CEIL", "TRUNC"])

    def rows(self) -> None:
        """A reduction along the rows, and what it gives spread over them again."""
        name, scratch, source = self.name("c"), self.name("s"), self.tile()
        self.declare(name, "C()", 32)
        self.declare(scratch, "T()")
        self.do(
            f"{self.random.choice(['TROWSUM', 'TROWMIN', 'TROWMAX'])}({name}, {source}, {scratch})"
        )
        self.do(f"TROWEXPANDADD({source}, {source}, {name})")

    def columns(self) -> None:
        name, source = self.name("r"), self.tile()
        self.declare(name, "R()", 128)
        self.do(f"{self.random.choice(['TCOLSUM', 'TCOLMIN', 'TCOLMAX'])}({name}, {source})")
        self.do(f"TCOLEXPANDADD({source}, {source}, {name})")

    def halves(self) -> None:
        """A conversion that rounds, and back."""
        name = self.name("h")
        self.declare(name, "H()", 512)
        self.do(f"TCVT({name}, {self.tile()}, {self.rounding()})")
        self.do(f"TCVT({self.tile()}, {name}, RoundMode.CAST_NONE)")

    def whole(self) -> None:
        """To integers that wrap or saturate, and back."""
        name = self.name("i")
        self.declare(name, "I()")
        self.do(f"TCVT({name}, {self.tile()}, {self.rounding()})")
        self.do(f"TADDS({name}, {name}, {self.random.choice(['1', '-3', 'n'])})")
        self.do(f"TCVT({self.tile()}, {name}, RoundMode.CAST_RINT)")

    def half_product(self) -> None:
        """A product whose operands the fix pipe has rounded."""
        if self.mode == "manual":
            return  # its tiles have no addresses
        self.product()
        self.write("half_a, half_b = Mat16(), Mat16()")
        self.write("left16, right16 = TileLeft[half, 32, 32](), TileRight[half, 32, 32]()")
        self.write("TMOV(half_a, acc)")
        self.write("TMOV(half_b, acc)")
        self.write("TMOV(left16, half_a)")
        self.write("TMOV(right16, half_b)")
        self.write("TMATMUL(acc, left16, right16)")
        self.write("TSTORE(GlobalTensor(y), acc)")

    def listed(self) -> None:
        name, count = self.name("l"), self.random.choice([2, 3])
        items = [self.simple() for _ in range(count)]
        self.write(f"{name} = [{', '.join(items)}]")
        self.tiles.append(f"{name}[{self.random.randrange(count)}]")
        if self.counters and self.chance(0.5):
            self.tiles.append(f"{name}[{self.counters[-1]} % {count}]")

    def listed_change(self) -> None:
        lists = [t for t in self.tiles if t.startswith("l") and "%" not in t]
        if lists:
            self.write(f"{self.random.choice(lists)} = {self.simple()}")

    def pair(self) -> None:
        name = self.name("p")
        self.write(f"{name} = Pair({self.simple()}, {self.simple()})")
        self.tiles += [f"{name}.first", f"{name}.second"]

    def either(self) -> None:
        name = self.name("t")
        self.write(f"{name} = {self.simple()} if {self.condition()} else {self.simple()}")
        self.tiles.append(name)

    def reshaped(self) -> None:
        name = self.name("w")
        self.write(f"{name} = Wide()")
        self.write(f"TRESHAPE({name}, {self.tile()})")
        self.do(f"TMULS({name}, {name}, {self.scalar()})")

    def loose(self) -> None:
        name, rows = self.name("v"), self.random.choice(["n + 1", "4", "8"])
        self.declare(name, f"Loose({rows}, 32)")
        size = f"part(x, {self.block()})[0:{rows}, :]"
        self.do(f"TLOAD({name}, {size})")
        self.do(f"TADDS({name}, {name}, {self.scalar()})")
        self.do(f"TSTORE(part(y, {self.block()})[0:{rows}, :], {name})")

    def sliced(self) -> None:
        """A part of a part of an array; only a run tells where it begins."""
        first, name = self.random.randrange(0, 16), self.name("g")
        rows = self.random.choice([8, 12, 16])
        self.write(f"{name} = GlobalTensor(x)[{first} : {first + rows}, :]")
        counts = [f"{c} % {rows - 7}" for c in self.counters]
        at = self.random.choice([f"n % {rows - 7}", str(rows - 8), *counts])
        if self.mistake == "outside" and self.chance(0.4):
            at = self.random.choice(["n", "n + 4", f"{rows - 6}", "n - 2"])
        self.do(f"TLOAD({self.tile()}, {name}[{at} : {at} + 8, :])")

    def numbers(self) -> None:
        """Numbers in a list, which loops and branches change."""
        name = self.name("q")
        self.write(f"{name} = [1, n, total]")
        if self.depth < 2:
            self.write(f"for {name}_i in range({self.random.choice(['n', '3'])}):")
            self.write(f"    {name}[{self.random.randrange(3)}] = {name}[0] + {name}_i")
        if self.chance(0.5):
            self.write(f"if {self.condition()}:")
            self.write(f"    {name}[0], {name}[1] = {name}[1], min({name}[0], 4)")
        self.do(f"TADDS({self.tile()}, {self.tile()}, {name}[{self.random.randrange(3)}])")

    def local(self) -> None:
        """A function of the kernel's own, or one that another one makes."""
        if self.mode == "manual":
            return
        name, tile = self.name("f"), self.simple()
        if self.chance(0.5):
            self.write(f"def {name}():")
            self.write(f"    TADDS({tile}, {tile}, {self.scalar()})")
            self.write(f"twice({name})")
        else:
            self.write(f"scaled({self.random.choice(['0.5', 'n'])})({tile})")

    def by_name(self) -> None:
        self.do(f"TADDS(scalar={self.scalar()}, dst={self.tile()}, src={self.tile()})")

    def method(self) -> None:
        pairs = sorted({t.partition(".")[0] for t in self.tiles if t.endswith(".first")})
        if pairs:
            self.write(f"{self.random.choice(pairs)}.swap()")

    # ---- control flow ------------------------------------------------------------------------

    def handed_on(self) -> None:
        """Each round makes a tile of what the last one has left."""
        if self.mode == "manual":
            return
        kept, made = self.name("t"), self.name("m")
        self.write(f"{kept} = {self.simple()}")
        self.tiles.append(kept)
        self.write(f"for {made}_i in range({self.random.choice(['n', '3'])}):")
        self.counters.append(f"{made}_i")
        self.loops.append("for")

        def body() -> None:
            self.write(f"{made} = T()")
            self.do(f"TADDS({made}, {kept}, {self.scalar()})")
            self.tiles.append(made)
            self.statements()
            self.write(f"{kept} = {made}")

        self.inside(body)
        self.loops.pop()
        self.counters.pop()

    def several(self) -> None:
        """Tiles that are made together, and taken by turns."""
        name, count = self.name("l"), self.random.choice([2, 3])
        if self.mode == "manual":
            items = [self.name("t") for _ in range(count)]
            for item in items:
                self.declare(item, "T()")
            self.write(f"{name} = [{', '.join(items)}]")
        else:
            self.write(f"{name} = [T() for _ in range({count})]")
        for item in range(count):
            self.do(f"TLOAD({name}[{item}], part(x, {self.block()}))")
        self.write(f"for {name}_i in range({self.random.choice(['n', '4'])}):")
        self.indent += 1
        chosen, next_ = f"{name}[{name}_i % {count}]", f"{name}[({name}_i + 1) % {count}]"
        self.do(f"TADD({chosen}, {chosen}, {self.random.choice([next_, self.simple()])})")
        if self.chance(0.5):
            self.do(f"TSTORE(part(y, {name}_i % {BLOCKS}), {chosen})")
        self.indent -= 1
        self.tiles.append(f"{name}[0]")

    def by_data(self) -> None:
        """What an array or a tile holds decides."""
        if self.mode == "manual":
            return
        name, at = self.name("d"), self.random.randrange(COLS)
        read = f"load_scalar(x, {at})" if self.chance(0.5) else f"{self.tile()}.GetValue({at})"
        self.write(f"{name} = {read}")
        self.write(f"if {name} > {self.random.choice(['0.0', 'n'])}:")
        self.inside(self.statements)

    def statements(self) -> None:
        for _ in range(self.random.randrange(1, 4)):
            self.statement()
        self.write("pass")

    def loop(self) -> None:
        counter = self.name("i")
        steps = self.random.choice(["n", "n", "3", "1, n + 1", "0, 6, 2", "n, 0, -1"])
        known = self.chance(0.15)
        self.write(f"for {counter} in {'static_range(3)' if known else f'range({steps})'}:")
        self.counters.append(counter)
        self.loops.append("static" if known else "for")
        self.inside(self.statements)
        self.loops.pop()
        self.counters.pop()

    def while_loop(self) -> None:
        counter = self.name("j")
        self.write(f"{counter} = 0")
        self.write(f"while {counter} < {self.random.choice(['n', '3', 'n + 1'])}:")
        self.counters.append(counter)
        self.loops.append("while")

        def body() -> None:
            self.write(f"{counter} = {counter} + 1")
            self.statements()

        self.inside(body)
        self.loops.pop()
        self.counters.pop()

    def branch(self) -> None:
        self.write(f"if {self.condition()}:")
        self.inside(self.statements)
        if self.chance(0.3):
            self.write(f"elif {self.condition()}:")
            self.inside(self.statements)
        if self.chance(0.6):
            self.write("else:")
            self.inside(self.statements)

    def leave(self) -> None:
        self.write(f"if {self.condition()}:")
        self.indent += 1
        self.write(self.random.choice(["break", "continue"]))
        self.indent -= 1

    # ---- mistakes ----------------------------------------------------------------------------

    def wrong(self) -> None:
        name = self.name("e")
        if self.mistake == "unwritten":
            self.declare(name, "T()")
            self.do(f"TADD({self.tile()}, {name}, {self.tile()})")
        elif self.mistake == "types":
            self.declare(name, "I()")
            self.do(f"TEXPANDS({name}, 1)")
            self.do(f"TADD({self.tile()}, {name}, {self.tile()})")
        elif self.mistake == "capacity":
            self.declare(name, "Tile[TileType.Vec, float32, 512, 128]()", 512 * 128 * 4)
            self.do(f"TEXPANDS({name}, 1.0)")
            self.do(f"TADDS({name}, {name}, 1.0)")
        elif self.mistake == "flags":
            pipes = self.random.choice(["PIPE_MTE2, PIPE_V", "PIPE_V, PIPE_MTE3"])
            self.write(f"set_flag({pipes}, EVENT_ID0)")
            self.write(f"wait_flag({pipes}, EVENT_ID0)")
        elif self.mistake == "overlap" and self.address:
            self.write(f"{name} = T()")
            self.write(f"TASSIGN({name}, {self.random.randrange(0, self.address, 512):#x})")
            self.do(f"TEXPANDS({name}, 1.0)")
        elif self.mistake == "region":
            self.declare(name, "Loose(4, 32)")
            self.do(f"TEXPANDS({name}, 1.0)")
            self.do(f"TADD({self.tile()}, {name}, {self.tile()})")
