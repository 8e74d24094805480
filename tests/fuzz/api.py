"""Random calls of the Python API with hostile arguments: `python -m tests.fuzz.api --seeds 0:5000`.

Every instruction of the table, every public function, class and type constructor, and the methods
of what they make is called with numbers out of any range, arrays that are none, and objects that
mean nothing here; alone, and in kernels on every path. A call may work, or be refused: by a
diagnostic, or by a TypeError, ValueError or AttributeError whose traceback shows nothing of ours.
Whatever else comes out is a bug of ptokit, and is printed with its seed.
"""

from __future__ import annotations

import argparse
import contextlib
import inspect
import io
import linecache
import random
import resource
import signal
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from enum import EnumType, IntEnum
from fractions import Fraction
from typing import Any

import numpy as np

import ptokit
import ptokit.micro
from ptokit.base.diagnostics import InternalError, PtoError
from ptokit.base.dtypes import DType
from ptokit.base.location import is_ours
from ptokit.frontend.instruction import Instruction
from ptokit.frontend.session import current, device, reset
from ptokit.isa import INSTRUCTIONS
from ptokit.isa.samples import Sample, samples
from ptokit.isa.spec import Insn
from ptokit.isa.targets import TARGETS
from tests.support import sample_operands

SECONDS = 20  # that one call may take
MEMORY = 6 << 30  # and the bytes of address space that all of them have
USAGE = (TypeError, ValueError, AttributeError)  # what Python itself says of a call that is wrong


class Whole(int):
    """A number of somebody else's."""


class Anything:
    """An object that has every attribute."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything()


def _numbers() -> list[Any]:
    return [
        *(
            0,
            1,
            -1,
            2,
            3,
            31,
            255,
            -64,
            2**15,
            2**31,
            -(2**31) - 1,
            2**63,
            2**64,
            10**20,
            10**400,
            10**5000,
        ),
        *(0.5, -0.0, 2.0, 1e39, -1e308, float("nan"), float("inf"), -float("inf"), True, False),
        *(np.float32(1.5), np.int8(-3), np.uint64(2**64 - 1), np.float64("nan"), np.bool_(True)),
        *(np.longdouble("1e4000"), np.complex64(1), 1j, Fraction(1, 3), Decimal("1e30"), Whole(3)),
        *(np.timedelta64(3, "s"), ptokit.CmpMode.LT, ptokit.Layout.DN, ptokit.PIPE_ALL),
    ]


def _arrays() -> list[Any]:
    packed = np.zeros(6, np.dtype([("a", np.int8), ("b", np.float32)]))
    return [
        *(np.array(1.5), np.array(3), np.zeros(0, np.float32), np.zeros((4, 4), np.float32)),
        *(np.zeros(64, np.float32), np.zeros((1,) * 6, np.int32), np.zeros((2, 3), object)),
        *(np.ma.masked_array(np.zeros((16, 64), np.float32), True), packed, packed["b"]),
        *(np.zeros(4, np.complex64), np.array(["x"]), np.zeros(8, ">f4"), np.arange(8.0)[::-1]),
        *(np.broadcast_to(np.float32(1), (16, 64)), np.zeros((16, 64), np.float64)),
        *(np.zeros(3, "M8[s]"), np.matrix("1 2"), memoryview(b"abcd")),
    ]


def _things() -> list[Any]:
    return [
        *(None, object(), Anything(), Anything, int, ptokit.Tile, ptokit.TADD, ptokit, ..., print),
        *("", "x", "1", "a2a3", "\udcff", b"x", [], [1, 2], [None], (), (1,), {}, {1: 2}, {3}),
        *(slice(None), slice(3, "x"), range(4), iter([1]), lambda: 1, NotImplemented, "x" * 5000),
        *(ptokit.float32, ptokit.TileType.Vec, ptokit.Op.TADD, np.float32, np.dtype("f4")),
    ]


def _ours() -> list[Any]:
    """Objects of ptokit's, made for the machine in force."""
    made: list[Callable[[], Any]] = [
        lambda: ptokit.Tile[ptokit.TileType.Vec, ptokit.float32, 16, 64](),
        lambda: ptokit.TileAcc[ptokit.float32, 32, 32](),
        lambda: ptokit.Tile[*_VEC, ptokit.BLayout.RowMajor, -1, -1](8, 32),
        lambda: ptokit.ConvTile[
            ptokit.TileType.Mat,
            ptokit.float16,
            4096,
            ptokit.Layout.NC1HWC0,
            ptokit.ConvTileShape[1, 1, 8, 16, 16],
        ](),
        lambda: ptokit.GlobalTensor(np.zeros((16, 64), np.float32)),
        lambda: ptokit.ptr(np.zeros(64, np.int32)),
        lambda: ptokit.TPipe[0, ptokit.Direction.DIR_C2V, 4096, 2](np.zeros(8192, np.uint8), 0, 0),
        lambda: ptokit.Event[ptokit.Op.TLOAD, ptokit.Op.TADD](),
        lambda: ptokit.AsyncSession(),
        lambda: ptokit.MrgSortExecutedNumList(),
        lambda: ptokit.comm.ParallelGroup(
            [ptokit.GlobalTensor(np.zeros((16, 64), np.float32)) for _ in range(2)], 0
        ),
        lambda: ptokit.comm.World(2),
    ]
    return made


POOLS: list[Callable[[], list[Any]]] = [_numbers, _numbers, _arrays, _things, _ours]


class Call:
    """The call of a seed: what is called with what, told as it goes."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.told: list[str] = []

    def hostile(self) -> Any:
        """A value that is seldom what was meant."""
        pool = self.random.choice(POOLS)
        value = self.random.choice(pool())
        return value() if pool is _ours else value

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def some(self, most: int) -> list[Any]:
        return [self.hostile() for _ in range(self.random.randrange(most + 1))]

    def tell(self, *words: Any) -> None:
        self.told += [_told(word) for word in words]

    # ---- what is called ----------------------------------------------------------------------

    def run(self) -> None:
        kinds = [self.instruction] * 6 + [self.function] * 3
        kinds += [self.method] * 2 + [self.view, self.kernel, self.of_kernel, self.of_text]
        kinds += [self.registers] * 2
        target, mode = self.random.choice(list(TARGETS)), self.random.choice(["manual", "auto"])
        with device(target, mode, check=False):
            self.tell(target, mode)
            self.random.choice(kinds)(target)

    def sample(self, target: str, insns: list[Insn]) -> tuple[Sample, list[Any]]:
        """A legal call of some instruction that the target has."""
        insn = self.random.choice(insns)
        found = self.random.choice(list(samples(insn, TARGETS[target])) or [None])
        if found is None or (found.same and self.chance(0.5)):
            return self.sample(target, insns)
        machine = current()
        mode, machine.mode = machine.mode, "auto"  # which places the tiles
        try:
            operands = sample_operands(found)
        finally:
            machine.mode = mode
        return found, [v for v in operands.values() if v is not None]

    def instruction(self, target: str) -> None:
        """An instruction with some of its operands and template arguments replaced."""
        insns = [i for i in INSTRUCTIONS.values() if target in i.targets and not i.overload_of]
        found, operands = self.sample(target, insns)
        called: Any = Instruction(found.insn)
        self.tell(found.insn.name)
        if found.insn.attrs and self.chance(0.3):
            given = tuple(self.template(found.insn))
            self.tell("[", *given, "]")
            called = called[given]
        named = self.damage(operands, [o.name for o in found.insn.operands])
        self.tell(*operands, named)
        result = called(*operands, **named)
        if self.chance(0.2):
            self.use(result)

    def template(self, insn: Insn) -> Iterator[Any]:
        for attr in insn.attrs:
            if self.chance(0.5):
                values = list(attr.type) if issubclass(attr.type, IntEnum) else [0, 1, 7, 2**40]
                yield self.hostile() if self.chance(0.3) else self.random.choice(values)

    def damage(self, operands: list[Any], names: list[str]) -> dict[str, Any]:
        """Replace, drop, repeat or name some of the arguments of a call."""
        for _ in range(self.random.choice([1, 1, 1, 2, 3])):
            where = self.random.randrange(len(operands) + 1)
            if where < len(operands) and self.chance(0.85):
                operands[where] = self.hostile()
            elif self.chance(0.5):
                operands.insert(where, self.hostile())
            else:
                del operands[where:]
        if self.chance(0.1):
            return {self.random.choice([*names, "x"]): self.hostile()}
        return {}

    def function(self, target: str) -> None:
        """Something public, called or formed; then what it gives."""
        space = self.random.choice([ptokit, ptokit, ptokit.comm])
        name = self.random.choice(list(_public(space)))
        thing = getattr(space, name)
        self.tell(name)
        if hasattr(type(thing), "__getitem__") and self.chance(0.7):
            given = tuple(self.brackets(name))
            self.tell("[", *given, "]")
            thing = thing[given if len(given) != 1 else given[0]]
        if self.chance(0.9):
            self.use(thing)

    def method(self, target: str) -> None:
        """What can be asked of an object of ours."""
        thing = self.random.choice(_ours())()
        self.tell(thing)
        for _ in range(3):
            thing = self.ask(thing)

    def view(self, target: str) -> None:
        """An array as global memory, moved to a tile and back."""
        array = self.random.choice(_arrays()) if self.chance(0.7) else self.hostile()
        self.tell("GlobalTensor", array)
        made = ptokit.GlobalTensor(array)
        if self.chance(0.5):
            key = tuple(self.hostile() if self.chance(0.4) else slice(0, 4) for _ in range(2))
            self.tell("key", key)
            made = made[key]
        tile = self.random.choice(_ours()[:4])()
        self.tell(tile)
        ptokit.TLOAD(tile, made)
        ptokit.TSTORE(made, tile)

    def brackets(self, name: str) -> Iterator[Any]:
        """Template arguments: some that a type could take, some that none does."""
        for each in self.random.choice(_BRACKETS.get(name, [()])):
            yield self.hostile() if self.chance(0.25) else each
        yield from self.some(1 if self.chance(0.4) else 0)

    def use(self, thing: Any) -> None:
        """Call a thing, enter it, or ask something of it."""
        if callable(thing) and self.chance(0.8):
            given = self.some(_arity(thing))
            names = [p.name for p in _parameters(thing)] or ["x"]
            named = {self.random.choice(names): self.hostile()} if self.chance(0.1) else {}
            self.tell("(", *given, named, ")")
            thing = thing(*given, **named)
        for _ in range(self.random.randrange(3)):
            thing = self.ask(thing)

    def ask(self, thing: Any) -> Any:
        """An attribute, an element, an operator or a block."""
        module = type(thing).__module__
        if not module.startswith("ptokit") or module.startswith(("ptokit.base", "ptokit.isa")):
            return None  # not ours, or what ours is made of
        way = self.random.randrange(5)
        if way == 0:
            key = self.hostile() if self.chance(0.5) else (slice(0, 16), self.hostile())
            self.tell("key", key)
            return thing[key]
        if way == 1 and hasattr(thing, "__enter__"):
            self.tell("with")
            with thing as entered:
                return entered
        if way == 2:
            other = self.hostile()
            self.tell("+", other)
            return thing + other
        names = [n for n in dir(thing) if _is_for_users(thing, n)]
        if not names:
            return None
        name = self.random.choice(names)
        self.tell(f".{name}")
        member = getattr(thing, name)
        if inspect.isfunction(member):
            return None  # a method of objects, or a function that an object keeps
        if callable(member) and not isinstance(member, type):
            given = self.some(_arity(member))
            self.tell("(", *given, ")")
            return member(*given)
        return member

    # ---- in kernels --------------------------------------------------------------------------

    def kernel(self, target: str) -> None:
        """A kernel of one instruction, launched on some path with hostile arguments."""
        insns = [i for i in INSTRUCTIONS.values() if "." not in i.name and target in i.targets]
        found, operands = self.sample(target, [i for i in insns if not i.overload_of])
        self.damage(operands, [])
        names = [f"a{n}" for n in range(len(operands))]
        known = {n for n in names if self.chance(0.3)}
        shown = ", ".join(
            [n for n in names if n not in known] + ["*"] * bool(known) + sorted(known)
        )
        body = f"{found.insn.name}({', '.join(names)})"
        mode = self.random.choice(["manual", "auto"])
        self.tell("kernel", body, shown)
        launched = _kernel(f"def k({shown}):\n    {body}\n", mode)
        values = dict(zip(names, operands, strict=True))
        consts = {n: values.pop(n) for n in list(values) if n in known}
        self.launch(launched, target, list(values.values()), consts)

    def registers(self, target: str) -> None:
        """A kernel of one operation below tiles, inside a scope or outside."""
        name = self.random.choice(ptokit.micro.__all__)
        values = {f"h{n}": self.hostile() for n in range(3)}
        words = ["v", "v", "m", "p", "x", "s", "0", "64", "'NORM'", *values]
        given = ", ".join(self.random.choice(words) for _ in range(self.random.randrange(5)))
        form = self.random.choice(["", "", "", "[half]", "[32]", "[h0]"])
        indent = " " * self.random.choice([4, 8, 8, 8])
        line = f"{name}{form}({given})"
        self.tell("registers", line, values)
        text = f"{_SCOPE}{indent}{line}\n"
        args = [np.zeros(256, np.float32), 3]
        self.launch(_kernel(text, "manual", values), "a5", args, {})

    def of_kernel(self, target: str) -> None:
        """A kernel that is right, asked for something with hostile arguments and options."""
        args: list[Any] = [np.zeros((16, 64), np.float32), np.zeros((16, 64), np.float32), 1.5]
        if self.chance(0.7):
            args[self.random.randrange(3)] = self.hostile()
        launched = _kernel(_GOOD, "auto")
        self.launch(launched, target, args, {})

    def of_text(self, target: str) -> None:
        """A program in text, asked for something, or its kernel launched."""
        program = ptokit.loads(_TEXT)
        if self.chance(0.5):
            self.tell("program")
            self.ask(program)
            return
        args: list[Any] = [np.zeros((16, 64), np.float32), 3]
        args[self.random.randrange(2)] = self.hostile()
        self.launch(program["f"], target, args, {})

    def launch(self, kernel: Any, target: str, args: list[Any], consts: dict[str, Any]) -> None:
        way = self.random.choice(
            ["eager", "lowered", "lowered", "text", "cpp", "check", "grid", "time", "memory_map"]
        )
        self.tell(way, *args, consts)
        options = {n: self.hostile() for n in _OPTIONS if self.chance(0.05)}
        options = {"target": target, **options}
        self.tell(options)
        if way == "text":
            kernel.text(*args, **{"form": self.random.choice(["l1", "l2", "l3", "x"]), **options})
        elif way == "cpp":
            kernel.cpp(*args, **options, **consts)
        elif way == "time":
            kernel.time(self.small(), tuple(args), **options, **consts)
        elif way == "memory_map":
            chosen = {n: v for n, v in options.items() if n not in ("place", "sync")}
            kernel.memory_map(*args, **chosen, **consts)
        elif way == "check":
            del options["target"]
            kernel.check("all", *args, **options, **consts)
        else:
            more = {n: self.small() for n in _RUN_OPTIONS if self.chance(0.05)}
            self.tell(more)
            if way == "grid":
                kernel[self.small()](*args, **options, **more, **consts)
            else:
                kernel[1](*args, path=way, **options, **more, **consts)

    def small(self) -> Any:
        """A grid: a large one is legal and takes its time."""
        value = self.hostile()
        return 2 if isinstance(value, int) and value > 64 else value


_OPTIONS = ("target", "defines", "rules", "allow", "place", "sync")
_RUN_OPTIONS = (
    "seed", "schedule", "jobs", "check", "engine", "max_steps", "max_seconds", "slack", "timing",
)  # fmt: skip
_SCOPE = """def k(x, s):
    p = castptr(0, float32, "ub")
    with vecscope():
        m = pset_b32("PAT_ALL")
        v = vlds(p, 0)
"""
_GOOD = """def k(x, y, s):
    a = Tile[TileType.Vec, float32, 16, 64]()
    TLOAD(a, GlobalTensor(x))
    TADDS(a, a, s)
    TSTORE(GlobalTensor(y), a)
"""
_TEXT = """func.func @f(%x: !pto.ptr<f32, gm>, %n: i32) {
  %c0 = arith.constant 0 : index
  %v = pto.load_scalar %x[%c0] : !pto.ptr<f32, gm> -> f32
  %t = pto.alloc_tile : !pto.tile_buf<vec, 8x32xf32>
  pto.texpands ins(%v : f32) outs(%t : !pto.tile_buf<vec, 8x32xf32>)
  pto.tadds ins(%t, %n : !pto.tile_buf<vec, 8x32xf32>, i32) outs(%t : !pto.tile_buf<vec, 8x32xf32>)
  return
}
"""
_VEC = (ptokit.TileType.Vec, ptokit.float32, 16, 64)
_BRACKETS: dict[str, list[tuple[Any, ...]]] = {
    "Tile": [_VEC, (*_VEC, ptokit.BLayout.RowMajor, -1, -1), (*_VEC, ptokit.BLayout.ColMajor)],
    "GlobalTensor": [
        (ptokit.float32, ptokit.Shape[1, 1, 1, 16, 64], ptokit.Stride[1, 1, 1, 64, 1])
    ],
    "ConvTile": [(ptokit.TileType.Mat, ptokit.float16, 2048, ptokit.Layout.NC1HWC0)],
    "Shape": [(1, 1, 1, 16, 64), (-1,) * 5, (16, 64)],
    "Stride": [(1, 1, 1, 64, 1), (-1,) * 5],
    "TPipe": [(0, ptokit.Direction.DIR_C2V, 4096, 2)],
    "Event": [(ptokit.Op.TLOAD, ptokit.Op.TADD)],
} | {n: [(ptokit.float32, 32, 32)] for n in ptokit.__all__ if n.startswith("Tile") and len(n) > 6}
_source = [0]


def _kernel(text: str, mode: str, values: dict[str, Any] | None = None) -> Any:
    """A kernel of this source, whose lines can be found."""
    _source[0] += 1
    name = f"<fuzz {_source[0]}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    below = {name: getattr(ptokit.micro, name) for name in ptokit.micro.__all__}
    space: dict[str, Any] = {**below, **vars(ptokit), **(values or {})}
    exec(compile(text, name, "exec"), space)
    return ptokit.kernel(mode=mode)(space["k"])


def _public(space: Any) -> Iterator[str]:
    """What users call or form: no instruction (they are called elsewhere) and no constant."""
    for name in sorted(space.__all__):
        thing = getattr(space, name)
        plain = isinstance(thing, (Instruction, DType, EnumType, int)) or thing is DType
        if plain or inspect.ismodule(thing) or name == "Kernel":
            continue
        if not (isinstance(thing, type) and issubclass(thing, BaseException | Warning)):
            yield name


def _is_for_users(thing: Any, name: str) -> bool:
    """Methods of the machine's own objects are for the machine, but for those of the pages."""
    member = getattr(type(thing), name, None)
    inner = str(getattr(member, "__module__", "")).startswith("ptokit.machine")
    return not name.startswith("_") and (name[0].isupper() or not inner)


def _parameters(thing: Any) -> list[inspect.Parameter]:
    try:
        found = inspect.signature(thing).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p for p in found if p.kind is not p.VAR_KEYWORD]


def _arity(thing: Any) -> int:
    return min(len(_parameters(thing)) or 3, 6)


def _told(word: Any) -> str:
    try:
        text = repr(word)
    except Exception as error:
        text = f"<{type(word).__name__}, whose repr raises {error!r}>"
    return text.replace("\n", " ")[:100]


# ---- what comes of it ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Outcome:
    """What came of the call of a seed: "works", "refused", or what leaked."""

    seed: int
    verdict: str
    kind: str = ""  # leaks with the same kind have the same cause
    told: str = ""


class Slow(BaseException):
    """A call took too long."""


def outcome(seed: int) -> Outcome:
    """Make the call of a seed."""
    call = Call(seed)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            call.run()
    except (Exception, Slow) as error:
        at = own_frame(error)
        refused = isinstance(error, (PtoError, *USAGE)) and not isinstance(error, InternalError)
        if not refused or at:
            told = f"{str(error)[:300]}\n    {' '.join(call.told)}"
            return Outcome(seed, "leaked", f"{type(error).__name__} at {at}", told)
        return Outcome(seed, "refused")
    finally:
        reset()
    return Outcome(seed, "works")


def own_frame(error: BaseException) -> str:
    """The last frame of ours that a traceback shows."""
    shown = [f for f, _ in traceback.walk_tb(error.__traceback__) if is_ours(f)]
    if not shown:
        return ""
    code = shown[-1].f_code
    return f"{code.co_filename.rpartition('ptokit/')[2]}:{shown[-1].f_lineno} {code.co_name}"


@contextlib.contextmanager
def limits() -> Iterator[None]:
    """Stop calls that take too long or too much memory."""

    def late(*_: object) -> None:
        raise Slow

    handler = signal.signal(signal.SIGALRM, late)
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        signal.alarm(0)
        signal.signal(signal.SIGALRM, handler)


def outcomes(seeds: range) -> Iterator[Outcome]:
    """The calls of these seeds, one after the other."""
    with limits():
        for seed in seeds:
            signal.alarm(SECONDS)
            yield outcome(seed)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.api", description=__doc__)
    parser.add_argument("--seeds", default="0:5000", metavar="FROM:TO")
    first, last = map(int, parser.parse_args().seeds.split(":"))
    began = time.monotonic()
    counts: Counter[str] = Counter()
    kinds: dict[str, Outcome] = {}
    for each in outcomes(range(first, last)):
        counts[each.verdict] += 1
        if each.verdict == "leaked" and kinds.setdefault(each.kind, each) is each:
            print(f"seed {each.seed}: {each.kind}: {each.told}", flush=True)
    seconds = time.monotonic() - began
    said = f"{counts['works']} work, {counts['refused']} refused, {counts['leaked']} leak"
    print(f"fuzz.api: {last - first} calls, seeds {first}:{last}: {said}; {seconds:.0f} s")
    return 1 if kinds else 0


if __name__ == "__main__":
    sys.exit(main())
