"""Which instructions are compiled when a launch is repeated, and what the others lack.

    python tools/compiled.py            print a line for every instruction
    python tools/compiled.py TCVT       and the calls of one that run as their body does
    python tools/compiled.py micro      the same of the operations of scopes
    python tools/compiled.py count DIR WHENCE  how often each occurs in the `.pto` files of a folder

A call is every sample of an instruction, on every target that has it; the others run as the NumPy
code of their record, which gives the same bytes. `instruction_counts.json` is what `count` printed
for the programs of a public assembler; it says which, and when.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import sys
from collections import Counter
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from ptokit import *  # noqa: F403 - samples name what they are made of
from ptokit.base.diagnostics import PtoError
from ptokit.base.dtypes import DType
from ptokit.base.location import Location
from ptokit.engines.compiled.replay import Tape
from ptokit.engines.compiled.scopes import lacks
from ptokit.from_text import load_parts, loads
from ptokit.frontend.session import running
from ptokit.isa import INSTRUCTIONS
from ptokit.isa.micro import MICRO, Micro
from ptokit.isa.micro.samples import examples, kinds, line, types
from ptokit.isa.samples import Sample, samples
from ptokit.isa.spec import Insn
from ptokit.isa.targets import TARGETS
from ptokit.machine.machine import Machine
from ptokit.machine.objects import GlobalObject
from tests.support import sample_operands

MANY = 60  # of the most frequent ones, which all are to have code

# Why some of them have none.
WITHOUT = {
    "GETVAL": "it hands a value on: a program that asks for one is not repeated",
    "TPRINT": "it writes to the terminal",
}


# Of scopes: what indices and counts of data decide, streams, and what permutes by a prefix. Some of
# them are compiled where their masks are known when a scope is written.
_OF_SCOPES = """
    vselr vsldb vgather2 vgather2_bc vgatherb vsstb vscatter vsqz vusqz vsunpack vldas
    vldus init_align vstus vstas vstur vstar sprclr pstu sprsti sprsts vmi.vselr vmi.channel_split
    vmi.channel_merge vmi.unpack vmi.pack vmi.active_prefix_index vmi.compress vmi.expand_load
    vmi.vgather vmi.vgatherb vmi.gather vmi.compress_store vmi.vscatter vmi.scatter vmi.vdhist
    vmi.vchist
"""
AS_BODIES_OF_SCOPES = _OF_SCOPES.split()


@dataclass
class Coverage:
    """Of the calls of an instruction, how many are compiled."""

    calls: int = 0
    compiled: int = 0
    lacks: dict[str, list[str]] = field(default_factory=dict[str, list[str]])  # with the calls


def covered(insn: Insn) -> Coverage:
    """What becomes of every sample of an instruction."""
    found = Coverage()
    for target in TARGETS.values():
        if target.name in insn.targets:
            for sample in samples(insn, target):
                _look(sample, found)
    return found


def covered_in_scopes(record: Micro) -> Coverage:
    """What becomes of an operation of scopes, for every combination of its types."""
    found = Coverage()
    for T, U in kinds(record):
        module = loads(sample_function(record, T, U)).module
        assert module.functions[0].body is not None
        why = lacks(module.functions[0].body)
        found.calls += 1
        found.compiled += not why
        if why:
            found.lacks.setdefault(why.partition(": ")[2], []).append(f"{T.name} {U.name}")
    return found


def sample_function(record: Micro, T: DType, U: DType) -> str:
    """A function that is handed everything an operation takes."""
    given = types(record, T, U)
    names: list[tuple[str, str]] = []
    for slot in record.operands:
        if not slot.is_optional:
            many = [f"{slot.name}{n}" for n in range(3)] if slot.is_list else [slot.name]
            names += [(name, given[slot.name]) for name in many]
    params = ", ".join(f"%{name}: {type_}" for name, type_ in names)
    shown = line(record, given, written=examples(record, T, U))
    return f"func.func private @f({params}) {{\n{shown}\nreturn\n}}"


def _look(sample: Sample, found: Coverage) -> None:
    insn, machine = sample.insn, Machine(sample.target, "auto")
    with running(machine), contextlib.redirect_stdout(io.StringIO()):
        try:
            operands = sample_operands(sample, 0)
            views = (o for o in operands.values() if isinstance(o, GlobalObject))
            tape = Tape([v.pointer.buffer.owner for v in views if v.pointer is not None])
            tape.follow(machine)
            attrs = tuple(sample.attrs[a.name] for a in insn.attrs)
            machine.execute(insn, tuple(operands.values()), attrs, Location("sample", 1))
        except PtoError:  # it is refused
            return
    tape.finish()
    if tape.reason or not (tape.words or tape.bodies):  # it moves no data
        return
    found.calls += 1
    found.compiled += not tape.bodies
    for reason in tape.lacks.values():
        found.lacks.setdefault(reason, []).append(str(sample))


def counted() -> dict[str, int]:
    """How often programs use each instruction that moves data, the most frequent first."""
    found = json.loads(Path(__file__).with_name("instruction_counts.json").read_text("utf-8"))
    used = found["counts"].items()
    return {name: n for name, n in used if covered(INSTRUCTIONS[name]).calls}


def often() -> list[str]:
    """The instructions that programs use most."""
    return list(counted())[:MANY]


def count(folder: Path, whence: str) -> dict[str, Any]:
    """How often each instruction occurs in the files that can be read, and which these were."""
    found: Counter[str] = Counter()
    paths, read = sorted(folder.rglob("*.pto")), 0
    for path in paths:
        with contextlib.suppress(PtoError):
            parts = load_parts(path).values()
            read += 1
            for program in parts:
                found.update(op.insn.name for op in program.module.walk() if op.insn is not None)
    about = {"source": whence, "date": date.today().isoformat(), "files": len(paths), "read": read}
    return about | {"counts": dict(found.most_common())}


def in_examples() -> list[str]:
    """The instructions that the examples call."""
    files = sorted((Path(__file__).resolve().parent.parent / "examples").glob("*.py"))
    words = {word for file in files for word in re.findall(r"\w+", file.read_text("utf-8"))}
    return sorted(words & INSTRUCTIONS.keys())


def main() -> None:
    if sys.argv[1:2] == ["count"]:
        print(json.dumps(count(Path(sys.argv[2]), sys.argv[3]), indent=1))
        return
    is_micro = sys.argv[1:] == ["micro"]
    names = sys.argv[1:] or list(INSTRUCTIONS)
    if is_micro:
        names = [record.name for record in MICRO.values() if record.is_inside]
    whole = some = 0
    for name in names:
        found = covered_in_scopes(MICRO[name]) if is_micro else covered(INSTRUCTIONS[name])
        if not found.calls:
            continue
        whole += found.compiled == found.calls
        some += 0 < found.compiled < found.calls
        print(f"{name:24}{found.compiled:5} of {found.calls:3}  {'; '.join(found.lacks)}".rstrip())
        if sys.argv[1:] and not is_micro:
            for calls in found.lacks.values():
                print(*(f"    {call}" for call in calls), sep="\n")
    if is_micro or not sys.argv[1:]:
        print(f"\n{whole} of {len(names)} are compiled, {some} for some of their operands")
    if not sys.argv[1:]:
        for group, of in (("the examples", in_examples()), ("most programs", often())):
            every = {name: covered(INSTRUCTIONS[name]) for name in of}
            working = {name: each for name, each in every.items() if each.calls}
            lacking = [name for name, each in working.items() if not each.compiled]
            print(f"{len(working) - len(lacking)} of {len(working)} of {group} are compiled")
            print(
                *(f"    not {name}: {WITHOUT.get(name, 'not yet')}" for name in lacking), sep="\n"
            )
        used = list(counted().values())
        share = sum(used[:MANY]) / sum(used)
        print(f"the {MANY} of most programs are {share:.1%} of what these have that moves data")


if __name__ == "__main__":
    main()
