"""Take one piece of synchronisation out of every manual example at a time, and see who notices.

python tools/mutants.py [--schedules 200] [FILE ...]

Each wait, set, barrier, push, pop, free and trailing event is removed on its own. A mutant counts
as found when the checked run complains. A mutant that passes silently must be harmless: no schedule
may change its result. The unmodified example must stay silent under many random schedules.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from ptokit import PtoError
from ptokit.machine.explore import schedules

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples"
SYNC = {
    "set_flag", "wait_flag", "pipe_barrier", "get_buf", "rls_buf", "TSYNC", "SYNCALL",
    "PtoSetWaitFlag", "ffts_cross_core_sync", "wait_flag_dev", "set_intra_block",
    "wait_intra_block", "TPUSH", "TPOP", "TFREE", "TALLOC", "dcci", "dsb",
}  # fmt: skip
PROOF = 24  # schedules a silent mutant must survive


@dataclass(frozen=True)
class Mutant:
    """One example with one thing taken out."""

    line: int
    function: str  # the function it was taken out of
    removed: str
    source: str


@dataclass
class Tally:
    """The counts of the closing line."""

    found: int = 0
    missed: int = 0
    harmless: int = 0
    false_alarms: int = 0

    def __str__(self) -> str:
        return (
            f"mutants: {self.found} of {self.found + self.missed} found, {self.harmless} harmless "
            f"silent, {self.false_alarms} false alarms"
        )


def called(node: ast.AST) -> str:
    """The name a call goes to, brackets aside."""
    while isinstance(node, ast.Call | ast.Subscript | ast.Attribute):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def mutants(source: str) -> Iterator[Mutant]:
    """Every program that lacks one piece of synchronisation."""
    for function in ast.parse(source).body:
        if isinstance(function, ast.FunctionDef):
            yield from _mutants_of(function, source)


def _mutants_of(function: ast.FunctionDef, source: str) -> Iterator[Mutant]:
    lines, name = source.splitlines(), function.name
    for node in ast.walk(function):
        if isinstance(node, ast.Expr) and called(node.value) in SYNC:
            text = ast.get_source_segment(source, node) or ""
            yield Mutant(node.lineno, name, text, _without(lines, node, "pass"))
        elif isinstance(node, ast.Call):
            events = [a for a in node.args if isinstance(a, ast.Name) and a.id.startswith("e")]
            for event in events if called(node)[:1] == "T" and called(node) != "TSYNC" else []:
                rest = [a for a in node.args if a is not event]
                changed = ast.Call(node.func, rest, node.keywords)
                without = _without(lines, node, ast.unparse(changed))
                yield Mutant(node.lineno, name, f"the event {event.id}", without)


def _without(lines: list[str], node: Any, instead: str) -> str:
    """The source with a node replaced; all other lines keep their numbers."""
    first, last = node.lineno - 1, node.end_lineno - 1
    changed = list(lines)
    tail = lines[last][node.end_col_offset :]
    changed[first] = lines[first][: node.col_offset] + instead + tail
    changed[first + 1 : last + 1] = [""] * (last - first)
    return "\n".join(changed) + "\n"


def load(path: Path) -> ModuleType:
    """Import an example from a file."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None  # noqa: PT018
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def manual_cases(module: ModuleType) -> list[tuple[Any, str]]:
    """The cases of an example that order their pipes by hand, per target."""
    return [
        (case, target)
        for case in module.CASES
        if case.kernel.mode == "manual"
        for target in case.targets
    ]


def run(case: Any, target: str, check: bool, **how: Any) -> str:
    """Run a case; return what went wrong, in one line."""
    arguments = list(case.inputs(np.random.default_rng(7)))
    wanted = case.expected(*arguments)
    try:
        case.kernel[case.blocks](*arguments, target=target, check=check, **how, **case.consts)
    except PtoError as error:
        return f"{error.diagnostics[0].location}: {error.diagnostics[0].message}"
    for got, want in zip(arguments[-case.outputs :], wanted, strict=True):
        a, b = np.asarray(got, np.float64), np.asarray(want, np.float64)
        if not np.abs(a - b).max() <= case.rtol * max(np.abs(b).max(), 1e-30):
            return "wrong result"
    return ""


def survives(case: Any, target: str) -> str:
    """Whether no schedule changes the result; otherwise what changed it."""
    for schedule in schedules(PROOF):
        complaint = run(case, target, False, schedule=schedule)
        if complaint:
            return f"{schedule}: {complaint}"
    return ""


def examine(path: Path, count: int, tally: Tally, verbose: bool) -> None:
    """Check one example and all its mutants."""
    source = path.read_text("utf-8")
    cases = manual_cases(load(path))
    for case, target in cases:
        for seed in (None, *range(count)):
            complaint = run(case, target, True, seed=seed)
            if complaint:
                tally.false_alarms += 1
                print(f"{path.name}: {case.name} on {target}, seed {seed}: {complaint}")
                break
    with tempfile.TemporaryDirectory() as folder:
        for number, mutant in enumerate(mutants(source)):
            changed = Path(folder) / f"{path.stem}_{number}.py"
            changed.write_text(mutant.source, "utf-8")
            cases = manual_cases(load(changed))
            own = [c for c in cases if c[0].kernel.name == mutant.function]
            for case, target in own or cases:  # a helper concerns all kernels
                _judge(path, mutant, case, target, tally, verbose)


def _judge(path: Path, mutant: Mutant, case: Any, target: str, tally: Tally, verbose: bool) -> None:
    complaint = run(case, target, True)
    if complaint:
        tally.found += 1
        verdict = f"found: {complaint.replace(chr(10), ' ')}"
    else:
        changed = survives(case, target)
        tally.harmless += not changed
        tally.missed += bool(changed)
        verdict = f"MISSED: {changed}" if changed else "harmless"
    if verbose or verdict.startswith("MISSED"):
        print(f"{path.name}:{mutant.line} [{target}] without {mutant.removed}: {verdict}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--schedules", type=int, default=200)
    parser.add_argument("-v", "--verbose", action="store_true")
    options = parser.parse_args()
    sys.path.insert(0, str(EXAMPLES))
    tally = Tally()
    files = options.files or [
        p for p in sorted(EXAMPLES.glob("*.py")) if 'mode="manual"' in p.read_text("utf-8")
    ]
    for path in files:
        before = (tally.found, tally.harmless)
        examine(path, options.schedules, tally, options.verbose)
        found, harmless = tally.found - before[0], tally.harmless - before[1]
        print(f"{path.name:<28} {found} found, {harmless} harmless")
    print(tally)
    return 1 if tally.missed or tally.false_alarms else 0


if __name__ == "__main__":
    sys.exit(main())
