"""How what happens before a run grows: rows of `bench/growth.py`.

Programs of doubling size are read, lowered from Python, verified, placed, ordered and checked: long
ones, ones with many tiles - alive at once or one after another -, loops twelve deep, and branches.
Processor time of the best of a few rounds; the collector of Python is left out, whose rounds come
in lumps.
"""

from __future__ import annotations

import gc
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib import util
from pathlib import Path
from typing import Any

import numpy as np

from ptokit.from_text import Program
from ptokit.ir.parser import parse
from ptokit.isa.targets import target
from ptokit.passes.insert_sync import InsertSync
from ptokit.passes.place import Place
from ptokit.passes.verify import Verify

DEEP = 12
TILE, PART = "!pto.tile_buf<vec, 1x8xf32>", "!pto.partition_tensor_view<1x8xf32>"
VIEW = "!pto.tensor_view<?x?xf32>"
STEPS = ("parse", "verify", "place", "order", "check", "lower")
Steps = dict[str, list[float]]


# ---- programs ----------------------------------------------------------------------------------


def step(number: int, a: str, b: str, c: str) -> str:
    """Eight operations: the sum and the product of two rows."""
    whole = f"offsets = [%o{number}, %c0], sizes = [%c1, %c8] : {VIEW} -> {PART}"
    return f"""
    %o{number} = arith.constant {number} : index
    %p{number} = pto.partition_view %vx, {whole}
    %q{number} = pto.partition_view %vy, {whole}
    pto.tload ins(%p{number} : {PART}) outs({a} : {TILE})
    pto.tload ins(%p{number} : {PART}) outs({b} : {TILE})
    pto.tadd ins({a}, {b} : {TILE}, {TILE}) outs({c} : {TILE})
    pto.tmul ins({c}, {b} : {TILE}, {TILE}) outs({a} : {TILE})
    pto.tstore ins({a} : {TILE}) outs(%q{number} : {PART})"""


def program(body: str, tiles: int) -> str:
    """A function with two arrays, some tiles, and a body."""
    view = f"shape = [%n, %c8], strides = [%c8, %c1] : {VIEW}"
    made = "".join(f"\n    %t{n} = pto.alloc_tile : {TILE}" for n in range(tiles))
    return f"""func.func @f(%x: !pto.ptr<f32>, %y: !pto.ptr<f32>, %n: index) {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %vx = pto.make_tensor_view %x, {view}
    %vy = pto.make_tensor_view %y, {view}{made}{body}
    return
}}"""


def steps(first: int, count: int, tiles: int) -> Iterator[str]:
    for n in range(first, first + count):
        yield step(n, *(f"%t{(n + k) % tiles}" for k in range(3)))


def straight(operations: int) -> str:
    return program("".join(steps(0, operations // 8, 16)), 16)


def in_turn(tiles: int) -> str:
    """Every tile is used for a while."""
    return program("".join(steps(0, tiles, tiles)), tiles)


def together(tiles: int) -> str:
    """All tiles are loaded before the first is stored."""
    body = "".join(steps(0, tiles, tiles))
    again = (f"\n    pto.tadd ins(%t{n}, %t{n} : {TILE}, {TILE}) outs(%t{n} : {TILE})"
             for n in range(tiles))  # fmt: skip
    return program(body + "".join(again), tiles)


def deep(operations: int) -> str:
    each = operations // 8 // DEEP
    levels = (
        f"\n    scf.for %i{n} = %c0 to %n step %c1 {{{''.join(steps(n * each, each, 16))}"
        for n in range(DEEP)
    )
    return program("".join(levels) + "}" * DEEP, 16)


def branches(operations: int) -> str:
    ways = (
        f"\n    %z{n} = arith.cmpi slt, %c8, %n : index\n    scf.if %z{n} {{{body}\n    }}"
        for n, body in enumerate(steps(0, operations // 10, 16))
    )
    return program("".join(ways), 16)


SERIES: dict[str, tuple[Callable[[int], str], tuple[int, ...]]] = {
    "operations": (straight, (4000, 8000, 16_000, 32_000)),
    "tiles in turn": (in_turn, (125, 250, 500, 1000)),
    "tiles alive at once": (together, (125, 250, 500, 1000)),
    f"operations {DEEP} deep": (deep, (4000, 8000, 16_000, 32_000)),
    "operations in branches": (branches, (4000, 8000, 16_000, 32_000)),
}
KERNEL = """from ptokit import *

T = Tile[TileType.Vec, float32, 1, 8]


@kernel(mode="auto")
def unrolled(x, y, *, steps, tiles):
    gx, gy = GlobalTensor(x), GlobalTensor(y)
    t = [T() for _ in static_range(tiles)]
    for n in static_range(steps):
        a, b, c = t[n % tiles], t[(n + 1) % tiles], t[(n + 2) % tiles]
        TLOAD(a, gx[n : n + 1, :])
        TLOAD(b, gx[n : n + 1, :])
        TADD(c, a, b)
        TMUL(a, c, b)
        TSTORE(gy[n : n + 1, :], a)
"""


# ---- measuring ---------------------------------------------------------------------------------


def seconds(call: Callable[[], Any]) -> tuple[float, Any]:
    started = time.process_time()
    result = call()
    return time.process_time() - started, result


def of_text(text: str) -> dict[str, float]:
    """The time of every step, each on the result of the one before."""
    on = target("a2a3")
    found: dict[str, float] = {}
    found["parse"], module = seconds(lambda: parse(text))
    found["verify"], _ = seconds(lambda: Verify().run(module, on))
    found["place"], placed = seconds(lambda: Place().run(module, on))
    found["order"], _ = seconds(lambda: InsertSync().run(placed, on))
    found["check"], _ = seconds(lambda: Program(module).check(on))
    return found


def of_kernel(kernel: Any, operations: int, tiles: int) -> dict[str, float]:
    """The time from Python to the IR as written."""
    x = np.zeros((operations // 8, 8), np.float32)
    arguments = kernel.source.bind((x, x), {"steps": operations // 8, "tiles": tiles})
    return {"lower": seconds(lambda: kernel.source.written(target("a2a3"), arguments, 1))[0]}


def loaded(folder: str) -> Any:
    path = Path(folder, "unrolled.py")
    path.write_text(KERNEL, "utf-8")
    spec = util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.unrolled


def best(call: Callable[[], dict[str, float]], rounds: int) -> dict[str, float]:
    found: list[dict[str, float]] = []
    for _ in range(rounds):
        gc.collect()
        gc.disable()
        try:
            found.append(call())
        finally:
            gc.enable()
    return {name: min(each[name] for each in found) for name in found[0]}


def rows(
    quick: bool, is_chosen: Callable[[str], bool]
) -> Iterator[tuple[str, str, tuple[int, ...], list[float]]]:
    """What grows, the step, the sizes, and the seconds at each, of the rows that are chosen."""
    rounds = 1 if quick else 3
    with tempfile.TemporaryDirectory() as folder:
        kernel = loaded(folder)
        for name, (make, sizes) in SERIES.items():
            if not is_chosen(name):
                continue
            sizes = sizes[:2] if quick else sizes
            found: dict[str, list[float]] = {}
            for size in sizes:
                text = make(size)
                measured = best(lambda text=text: of_text(text), rounds)
                if make is straight:
                    measured |= best(lambda n=size: of_kernel(kernel, n, 16), rounds)
                elif make is in_turn:
                    measured |= best(lambda n=size: of_kernel(kernel, 8 * n, n), rounds)
                for each, time_ in measured.items():
                    found.setdefault(each, []).append(time_)
            for each in STEPS:
                if each in found:
                    yield name, each, sizes, found[each]
