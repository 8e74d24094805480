"""Random programs with loops, checked trip by trip and with steady trips passed over.

    python -m tests.hazards.loops --seeds 0:10000
    python -m tests.hazards.loops --mutants        every example, a piece of its order taken out

Both must find the same. Programs have nested loops, buffers that take turns, flags that go round a
loop, views that go through arrays in many ways - forwards, backwards, half a tile at a time, back
to what an earlier trip wrote - and some of the order that they would need is left out. Prints the
seeds for which the findings differ, and a closing line.
"""

from __future__ import annotations

import argparse
import linecache
import random
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ptokit import *
from ptokit.base.diagnostics import Diagnostic
from ptokit.machine import replay
from tests.hazards.support import check

ROOT = Path(__file__).resolve().parents[2]
ROWS, COLS = 96, 256
# Where a view lies in a loop: `i` counts its trips.
COLUMNS = (
    "0", "16", "16 * (i % 16)", "240 - 16 * (i % 16)", "8 * (i % 31)", "32 * (i % 8)",
    "16 * ((i + 1) % 16)", "16 * (i // 4 % 16)", "16 * (i * i % 16)", "16 * (i % 2)",
)  # fmt: skip
LINES = ("0", "32", "16 * (i % 6)", "8 * (i % 11)", "16 * (i // 16 % 6)", "16 * get_block_idx()")
PIPES = {"TLOAD": "MTE2", "TSTORE": "MTE3", "TADDS": "V", "TADD": "V", "TEXPANDS": "V"}


class Writer:
    """Writes the source of one program."""

    def __init__(self, seed: int) -> None:
        self._choose = random.Random(seed)
        self.lines: list[str] = []
        self._care = self._choose.choice((1.0, 1.0, 0.97, 0.9, 0.7))  # how much is ordered
        self._last = ""  # the pipe of the last instruction
        self.blocks = self._choose.choice((1, 1, 1, 2, 3))

    def source(self) -> str:
        """The program, a function of its arrays."""
        self._say(0, "def program():")
        for name, address in zip("abcd", (0, 0x400, 0x800, 0x600), strict=True):
            self._say(1, f"{name} = at(F32(), {address})")
            self._say(1, f"TEXPANDS({name}, 1.0)")
            self._say(1, "pipe_barrier(PIPE_ALL)")
        self._say(1, "i = 0")
        for _ in range(self._choose.randint(1, 3)):
            if self._choose.random() < 0.3:
                self._statement(1)
            self._loop(1, 0)
            if self._choose.random() < 0.4:
                self._say(1, "pipe_barrier(PIPE_ALL)")
                if self.blocks > 1 and self._choose.random() < 0.7:
                    self._say(1, "SYNCALL()")
        return "\n".join(self.lines) + "\n"

    def _say(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def _order(self, depth: int, text: str) -> None:
        """A piece of synchronisation, which may be forgotten."""
        if self._choose.random() < self._care:
            self._say(depth, text)

    def _loop(self, depth: int, level: int) -> None:
        choose = self._choose
        ends = choose.sample((("V", "MTE2"), ("MTE3", "V"), ("MTE3", "MTE2")), choose.randint(0, 3))
        for src, dst in ends:
            self._order(depth, f"set_flag(PIPE_{src}, PIPE_{dst}, EVENT_ID{level})")
        name = "ij"[level]
        self._say(depth, f"for {name} in range({choose.randint(5, 24) if not level else 4}):")
        for src, dst in ends:
            self._order(depth + 1, f"wait_flag(PIPE_{src}, PIPE_{dst}, EVENT_ID{level})")
        for _ in range(choose.randint(2, 5)):
            if not level and choose.random() < 0.12:
                self._loop(depth + 1, 1)
            elif choose.random() < 0.15:
                self._say(depth + 1, f"if {name} % 2:")
                self._statement(depth + 2)
                self._say(depth + 1, "else:")
                self._statement(depth + 2)
            else:
                self._statement(depth + 1)
        if choose.random() < 0.2:
            self._order(depth + 1, "pipe_barrier(PIPE_ALL)")
        for src, dst in ends:
            self._order(depth + 1, f"set_flag(PIPE_{src}, PIPE_{dst}, EVENT_ID{level})")
        for src, dst in ends:
            self._order(depth, f"wait_flag(PIPE_{src}, PIPE_{dst}, EVENT_ID{level})")

    def _statement(self, depth: int) -> None:
        choose = self._choose
        name = choose.choice(("TLOAD", "TLOAD", "TSTORE", "TSTORE", "TADDS", "TADD", "TEXPANDS"))
        pipe = PIPES[name]
        if self._last and self._last != pipe:
            self._order(depth, f"PtoSetWaitFlag[PIPE_{self._last}, PIPE_{pipe}]()")
        elif self._last == pipe:
            self._order(depth, f"pipe_barrier(PIPE_{pipe})")
        self._last = pipe
        tiles = [choose.choice("abcd") for _ in range(3)]
        view = f"part({choose.choice('xyz')}, {choose.choice(LINES)}, {choose.choice(COLUMNS)})"
        atomic = "[AtomicType.AtomicAdd]" if choose.random() < 0.2 else ""
        self._say(
            depth,
            {
                "TLOAD": f"TLOAD({tiles[0]}, {view})",
                "TSTORE": f"TSTORE{atomic}({view}, {tiles[0]})",
                "TADDS": f"TADDS({tiles[0]}, {tiles[1]}, 1.0)",
                "TADD": f"TADD({', '.join(tiles)})",
                "TEXPANDS": f"TEXPANDS({tiles[0]}, 2.0)",
            }[name],
        )


class Outcome(NamedTuple):
    """What the two ways found, and how many trips were passed over."""

    full: list[str]
    short: list[str]
    passed: int


def outcome(seed: int) -> Outcome:
    """Run the program of a seed in both ways."""
    writer = Writer(seed)
    source, name = writer.source(), f"<program {seed}>"
    linecache.cache[name] = len(source), None, source.splitlines(keepends=True), name

    def run(hazards: Any) -> list[str]:
        arrays = {n: np.zeros((ROWS, COLS), np.float32) for n in "xyz"}
        names: dict[str, Any] = {**globals(), **arrays, "part": part}
        exec(compile(source, name, "exec"), names)
        with warnings.catch_warnings(action="ignore"):
            found = check(names["program"], hazards=hazards, grid=writer.blocks)
        return sorted(map(shown, found))

    with eagerly() as passed:
        return Outcome(run("full"), run(True), sum(passed))


def part(array: Any, row: int, col: int) -> Any:
    """A tile of an array."""
    return GlobalTensor(array)[row : row + 16, col : col + 16]


def at(tile: Any, address: int) -> Any:
    """A tile bound to an address."""
    TASSIGN(tile, address)
    return tile


F32 = Tile[TileType.Vec, float32, 16, 16]


def shown(found: Diagnostic) -> str:
    """All that a finding says, but for where arrays happen to lie."""
    places = [str(n.location) for n in found.notes]
    values = [pair for pair in found.got if pair[0] != "bytes"]
    return f"{found.severity} {found.code} {found.location} {places} {found.message} {values}"


@contextmanager
def eagerly() -> Iterator[list[int]]:
    """Pass over steady trips however few they are; gives how many entries were passed over."""
    passed: list[int] = []
    usual, least = replay.Replay._pass, replay._LEAST_SAVED

    def counted(self: Any, start: int, length: int, stop: int) -> int:
        reached = usual(self, start, length, stop)
        passed.append(reached > self._quiet - 1 > start)
        return reached

    replay.Replay._pass, replay._LEAST_SAVED = counted, 0
    try:
        yield passed
    finally:
        replay.Replay._pass, replay._LEAST_SAVED = usual, least


def mutant_outcomes(path: Path) -> Iterator[tuple[str, Outcome]]:
    """The mutants of an example, and the example itself, on every target."""
    sys.path[:0] = [str(ROOT / "examples"), str(ROOT / "tools")]
    from mutants import load, manual_cases, run
    from mutation import mutants

    def in_both_ways(case: Any, target: str) -> Outcome:
        with eagerly() as passed:
            case.kernel.programs.memory.forget_verdicts()
            ways = [run(case, target, check=check)[0] for check in ("full", True)]
            full, short = (sorted(map(shown, found)) for found in ways)
            return Outcome(full, short, sum(passed))

    written = path.read_text("utf-8")
    sources = {str(mutant): mutant.source for mutant in mutants(written)}
    sources["as it is"] = written
    with tempfile.TemporaryDirectory() as folder:
        for number, (name, source) in enumerate(sources.items()):
            changed = Path(folder) / f"{path.stem}_{number}.py"
            changed.write_text(source, "utf-8")
            for case, target in manual_cases(load(changed)):
                if not hasattr(case, "kernel"):  # several programs, which launch by themselves
                    continue
                yield f"{path.stem} {name} [{case.name}, {target}]", in_both_ways(case, target)


def examples() -> list[Path]:
    """The examples that may order their pipes by hand."""
    found = sorted((ROOT / "examples").glob("*.py"))
    return [path for path in found if path.stem not in ("harness", "run_all")]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.hazards.loops", description=__doc__)
    parser.add_argument("--seeds", default="0:1000", metavar="FROM:TO")
    parser.add_argument("--mutants", action="store_true")
    options = parser.parse_args()
    first, last = map(int, options.seeds.split(":"))
    what = "mutants of examples" if options.mutants else f"programs of seeds {options.seeds}"
    found = ((f"seed {seed}", outcome(seed)) for seed in range(first, last))
    if options.mutants:
        found = chain.from_iterable(map(mutant_outcomes, examples()))
    tally: Counter[str] = Counter()
    for name, (full, short, passed) in found:
        tally["all"] += 1
        tally["findings"] += bool(full)
        tally["passed"] += bool(passed)
        if full != short:
            tally["wrong"] += 1
            print(name)
            print(*(f"  only in full: {each}" for each in set(full) - set(short)), sep="\n")
            print(*(f"  only short:   {each}" for each in set(short) - set(full)), sep="\n")
    print(
        f"loops: {tally['all']} {what}: {tally['findings']} with findings, {tally['passed']} with "
        f"trips passed over, {tally['wrong']} with different findings"
    )
    return 1 if tally["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
