"""Repeated launches against what a user would write instead: the NumPy call, and our own steps.

    python bench/fast.py            print the table; words choose rows: `gemm 1024`, `softmax`
    python bench/fast.py --json     print it as JSON
    python bench/fast.py --docs     write docs/guide/speed.md, its numbers and its picture
    python bench/fast.py --whole    every size and type, also those that take minutes

All ways to a result are measured in one run, in interleaved rounds, on one thread; the best call
counts, and every result is compared with the definition. `first` is the launch that is executed
step by step with all checks, `steps` one whose verdict is known, `again` the repetition; `threads`
the repetition on two threads, of launches with several blocks. What is measured is in `ways.py`;
torch and Triton's interpreter take part where the Python that runs this has them.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

# One thread against one thread: NumPy's BLAS and torch look at these when they are loaded.
os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import numpy as np
from ways import Row, rows

from ptokit.engines.compiled.host import host

ROUNDS = 9  # at most
LONG = 3.0  # seconds after which a row has no more rounds, from the third on
SLOW = 0.5  # seconds of a call of others that is not made again
MOST = 780.0  # seconds after which a page has no more rows
DOCS = Path(__file__).resolve().parent.parent / "docs/guide"
ONCE = ("steps", "torch", "torch f32", "triton")  # that may take long; our steps always do


def measure(row: Row) -> dict[str, float]:
    """Microseconds of each way in its best call."""
    ways, best = row.ways, dict[str, float]()

    def timed(name: str) -> np.ndarray:
        # Of one thread, the time it has run: others may want the processor, too.
        clock = time.perf_counter if name == "threads" else time.thread_time
        started = clock()
        found = ways[name]()
        best[name] = min(best.get(name, float("inf")), clock() - started)
        return found

    started = time.perf_counter()
    ways["again"]()
    first = time.perf_counter() - started
    atol = max(2e-2 * float(np.std(row.expected)), 1e-3)
    for name in ways:
        found = timed(name)
        np.testing.assert_allclose(found, row.expected, rtol=1e-2, atol=atol, err_msg=name)
    once = {name for name in ways if (name in ONCE and best[name] > SLOW) or name == "steps"}
    started = time.perf_counter()
    for number in range(ROUNDS):
        if number >= 2 and time.perf_counter() - started > LONG:
            break
        for name in ways:
            if name not in once:
                timed(name)
                # What came before has used the caches; long calls do not notice.
                for _ in range(2 if best[name] < 0.05 else 0):
                    timed(name)
    return {"first": first * 1e6} | {name: best[name] * 1e6 for name in ways}


HEADS = ("first", "steps", "again", "numpy", "torch", "torch f32", "triton")
COMPARED = ("x NumPy", "x torch", "steps / again", "2 threads")
Table = Mapping[str, Mapping[str, float]]

# Rows whose name begins so take at most so many times as long as another way.
GOALS = (
    ("GEMM 1024 f32, tiles 128x128x64", "numpy", 1.15),
    *((f"GEMM {size} f16, tiles 128x128x128", "numpy", 0.9) for size in (512, 1024, 2048)),
    ("GEMM 1024 f32, tiles 64x64x32", "numpy", 1.3),
    ("GEMM 1024 f16, tiles 64x64x32", "numpy", 1.3),
    ("attention 1024x64 f16", "torch", 0.65),
    ("attention 4096x64 f16", "torch", 0.65),
    ("attention 1024x64 f16", "torch f32", 1.1),
    ("attention 4096x64 f16", "torch f32", 1.1),
    ("softmax 1024x128", "torch", 1.2),
    *((f"chain 512, tiles {side}x{side}", "numpy", 1.3) for side in (16, 64, 128)),
)


def line(us: Mapping[str, float]) -> list[str]:
    """The cells of a row: microseconds of each way, and how they compare."""
    cells = [f"{us[way]:.0f}" if way in us else "" for way in HEADS]
    for way, other in (("again", "numpy"), ("again", "torch"), ("steps", "again")):
        cells.append(f"{us[way] / us[other]:.2f}" if other in us else "")
    return [*cells, f"{us['again'] / us['threads']:.2f}" if "threads" in us else ""]


def goals(table: Table) -> list[str]:
    """What was aimed at, and what came of it."""
    found: list[str] = []
    for name, way, most in GOALS:
        us = table.get(name)
        if us is not None and way in us:
            ratio = us["again"] / us[way]
            verdict = "met" if ratio <= most else "missed"
            found.append(f"{name}: {ratio:.2f} x {way}, at most {most}: {verdict}")
    if "4096 x TADD 16x16" in table:
        each = table["4096 x TADD 16x16"]["again"] * 1000 / 4096
        found.append(f"TADD 16x16: {each:.1f} ns, at most 15: {'met' if each <= 15 else 'missed'}")
    least = min(table, key=lambda name: table[name]["steps"] / table[name]["again"])
    gain = table[least]["steps"] / table[least]["again"]
    verdict = "met" if gain >= 10 else "missed"
    if gain < 10 and "numpy" in table[least]:  # steps of large tiles are calls of BLAS already
        bound = table[least]["steps"] / table[least]["numpy"]
        verdict += f", its steps take {bound:.1f} times as long as the one call of NumPy"
    found.append(f"steps / again: {gain:.1f} or more ({least}), at least 10: {verdict}")
    for name, us in table.items():
        if "threads" in us:
            gain = us["again"] / us["threads"]
            verdict = "met" if gain >= 1.6 else "missed"
            found.append(
                f"{name}: {gain:.2f} times as fast on two threads, at least 1.6: {verdict}"
            )
    return found


def picture(table: Table) -> str:
    """The repetition next to the NumPy call, as bars."""
    high, left, unit, most = 22, 290, 150, 3.0
    width, height = left + unit * most + 70, high * len(table) + 30
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{width:.0f}" height="{height}" fill="#fff"/>',
    ]
    numbers: list[str] = []  # in front of the marks that they would be crossed out by
    for row, (name, us) in enumerate(table.items()):
        ratio, top = us["again"] / us["numpy"], high * row
        colour = "#2a7" if ratio <= 1 else "#68b"
        end = left + unit * min(ratio, most)
        parts += [
            f'<text x="{left - 8}" y="{top + 15}" text-anchor="end">{name}</text>',
            f'<rect x="{left}" y="{top + 3}" width="{end - left:.0f}" height="{high - 6}" '
            f'fill="{colour}"/>',
        ]
        numbers.append(
            f'<text x="{end + 5:.0f}" y="{top + 15}" stroke="#fff" stroke-width="4" '
            f'paint-order="stroke">{ratio:.2f}</text>'
        )
        if "torch" in us:
            mark = left + unit * min(us["torch"] / us["numpy"], most)
            parts.append(f'<path d="M{mark:.0f} {top + 2}v{high - 4}" stroke="#c40"/>')
    end = high * len(table)
    parts.append(f'<path d="M{left + unit} 0V{end}" stroke="#222" stroke-dasharray="3 3"/>')
    words = "NumPy = 1; torch: the red mark" if any("torch" in us for us in table.values()) else ""
    parts.append(
        f'<text x="{left + unit}" y="{end + 16}" text-anchor="middle">{words or "NumPy = 1"}</text>'
    )
    return "\n".join([*parts, *numbers, "</svg>", ""])


PAGE = """# How fast launches are

The second launch of a kernel with the same sizes runs as code compiled for the processor; nothing
in the kernel or the call has to change. The table is what `python bench/fast.py --docs` measured on
one thread of a {processor} ({when}): microseconds, all ways in interleaved rounds of one run, the
best call of up to {rounds} rounds. `first` is a launch that is executed step by step with all
checks, `steps` one whose verdict is known, `again` the repetition, launch included; `numpy`,
`torch` and `triton` (its interpreter) are what one would write instead, on one thread too, and
`torch f32` is the attention of torch in float32. `speed.json` has the numbers, `bench/ways.py` says
what each row does; `--whole` adds the sizes and types that are left out here.{left_out}

![Repeated launches relative to NumPy](pictures/speed.svg)

{table}

## Goals

{goals}

## First launches

Sizes that were never seen need no second launch where nothing is checked (`path="lowered"` and
`check=False`): the program runs as one function of the processor, with its loops, and instructions
are calls into the library as soon as they have met their operands. Once that is compiled, such
launches of GEMM, softmax and chains took a quarter to a fourteenth of their steps.
`kernel.coverage` says what Python executes all the same, and why; undefined bytes and bounds are
checked as in steps.

A program whose cores wait for each other - FIFOs, signals between cores, barriers of all blocks -
is interpreted in its first launch, also where nobody checks it. A core does not stop where one of
its pipes waits: it goes on issuing, and what it issues for that pipe lies in a queue until another
core gives the signal, in the midst of whose program it is then done. Code that does an instruction
where it stands cannot do that; a core that stopped instead would need every signal that its own
later instructions give to be on its way already, and would do the work in another order than the
steps, which a program that nobody checked may show. A function in Python runs as it stands the
first time, since only running it shows what it does beside its instructions. The second launch
repeats both as compiled code.

The second launch waits for its functions: those that no process has wanted before are compiled
together, and kept in the cache for the next one. `python bench/compiling.py` prints both times,
with the tile operations that a kernel is written in: about a millisecond for a function, or less,
three to six for a product or an exponential, and at most 1.3 ms for all of them from the cache.
Fifty tile operations of forty kinds come to thirty functions, still about twice the 20 ms that we
aim at. Nearly all of it is the compiler choosing instructions, so what counts is how much there
is to compile, and how much it is asked to do: loops and addresses are written as a processor likes
them, and only sums of products and functions of many steps, which gain from it, have their
instructions combined and put in order. Functions of a product share their parts and have only the
steps that its sizes need, copies of all types are one function, and a function that any kernel has
wanted before is in the cache. A second thread would not help: llvmlite lets one at a time into the
compiler. Loading the compiler itself takes a process another 20 ms, once.

Which instructions are compiled, and what the others lack, `python tools/compiled.py` prints; the
others run as the NumPy code of their record, on the same memory. `python tools/repeats.py DIR`
holds repeated launches of the programs of a folder against their steps.

## What bounds what

- Large products are bound by the multiplications themselves: NumPy's library and ours reach about
  90 % of what the processor can do, so that on top of float32 little is to be gained, and f16 gains
  the conversion. What a tile's product is added to is added last, as in the reference: where tiles
  are short along k, as 32 or 64 elements, the sums go through memory after each of them.
- torch multiplies bf16 with instructions for pairs of products, which round otherwise than float32
  and take subnormal numbers for zero. Records leave the rounding inside the cube open, but what a
  launch leaves would then depend on whether a processor has them: bf16 takes the time of float32.
- Steps of large tiles are calls of NumPy's BLAS already. Where they take a few times as long as one
  call for the whole product, no code can be ten times as fast as they are.
- Exponentials are the exact result, rounded once, on every computer and in every launch; those of
  torch are a polynomial in float32, which is shorter, and right but for the last bits. Two floats
  decide which one is the nearest, and a long computation in doubles where they cannot.
- Two threads share the memory: since one thread takes a third less time for softmax over 16 MB, two
  gain less than 1.6. Two processes that do it at once slow each other down by a sixth.
- Sums of rows have the order of the target, which is that of its vector registers.
- Top-k sorts whole rows, as the instructions that the kernel is written in do; torch selects.
- Of small launches 15 to 20 us are Python: arguments are compared with those of the launch that is
  repeated, and arrays are asked where they lie.
"""


def processor() -> str:
    """The computer, with the vectors that the code is made for."""
    found = host()
    if found is None:
        return "computer without LLVM"
    vectors = "AVX-512" if "+avx512f" in found.features else "AVX2 at most"
    return f"{found.processor} with {vectors}"


def documents(table: Table, left_out: Sequence[str]) -> dict[Path, str]:
    """The page about speed, with its numbers and its picture."""
    heads = ["", *HEADS, *COMPARED]
    listed = [[name, *line(us)] for name, us in table.items()]
    used = [n for n, head in enumerate(heads) if not head or any(cells[n] for cells in listed)]
    lines = [
        f"| {' | '.join(cells[n] for n in used)} |"
        for cells in (heads, ["---"] * len(heads), *listed)
    ]
    page = PAGE.format(
        processor=processor(),
        when=time.strftime("%Y-%m-%d"),
        rounds=ROUNDS,
        table="\n".join(lines),
        left_out=f" Not measured this time: {'; '.join(left_out)}." if left_out else "",
        goals="\n".join(f"- {each}" for each in goals(table)),
    )
    return {
        DOCS / "speed.md": page,
        DOCS / "speed.json": json.dumps(table, indent=1) + "\n",
        DOCS / "pictures/speed.svg": picture(table),
    }


def publish(table: Table, left_out: Sequence[str]) -> None:
    """Write the page."""
    for path, text in documents(table, left_out).items():
        path.write_text(text)


def main() -> None:
    options = [word for word in sys.argv[1:] if word.startswith("--")]
    words = [word.lower() for word in sys.argv[1:] if word not in options]
    prints = "--json" not in options
    if prints:
        print(f"{processor()}; microseconds, one thread\n")
        heads = ("first", "steps", "again", "numpy", "torch", "tor. f32", "triton")
        heads = (*heads, "x numpy", "x torch", "x steps", "2 thr.")
        print(f"{'':42}{''.join(f'{head:>10}' for head in heads)}")
    table: dict[str, Mapping[str, float]] = {}
    started, left_out = time.perf_counter(), list[str]()
    for name, make in rows("--whole" in options):
        if "--docs" in options and time.perf_counter() - started > MOST:
            left_out.append(name)
        elif all(word in name.lower() for word in words):
            table[name] = measure(make())
            if "--docs" in options:  # what was measured is kept, whatever comes next
                publish(table, left_out)
            if prints:
                print(f"{name:42}{''.join(f'{c:>10}' for c in line(table[name]))}", flush=True)
    if not prints:
        print(json.dumps(table, indent=1))
    elif table:
        print("", *goals(table), sep="\n")
    if "--docs" in options:
        publish(table, left_out)


if __name__ == "__main__":
    main()
