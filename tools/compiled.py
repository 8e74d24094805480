"""Which instructions are compiled when a launch is repeated, and what the others lack.

    python tools/compiled.py            print a line for every instruction
    python tools/compiled.py TCVT       and the calls of one that run as their body does

A call is every sample of an instruction, on every target that has it; the others run as the NumPy
code of their record, which gives the same bytes.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from ptokit import *  # noqa: F403 - samples name what they are made of
from ptokit.base.diagnostics import PtoError
from ptokit.base.location import Location
from ptokit.engines.compiled.replay import Tape
from ptokit.frontend.session import running
from ptokit.isa import INSTRUCTIONS
from ptokit.isa.samples import Sample, samples
from ptokit.isa.spec import Insn
from ptokit.isa.targets import TARGETS
from ptokit.machine.machine import Machine
from ptokit.machine.objects import GlobalObject
from tests.support import sample_operands

_OFTEN = """
    TLOAD TSTORE TEXTRACT TCVT TMATMUL TMATMUL_ACC TMOV TADD TMULS TMUL TROWEXPANDMUL TEXPANDS
    TCOLEXPANDMUL TADDS TROWSUM TSUB TPUSH TPOP TEXP TCI TDIV TROWMAX TMAX TGATHER TFILLPAD TDIVS
    TROWEXPANDDIV TRECIP TMAXS TQUANT TNEG TMINS TSUBS TROWEXPANDSUB TINSERT TSQRT TABS
    TCOLEXPAND TRSQRT TGEMV TROWMIN TCOLSUM TCOLMAX TROWEXPANDADD TCOLMIN TPRELU TROWPROD TTRANS
    TCOLEXPANDDIV TROWEXPANDMAX TCONCAT TCOLPROD TXORS TROWEXPAND TXOR TREM TMIN TROWEXPANDMIN
    TCOLEXPANDADD TTRI TCOLEXPANDSUB TAXPY TLRELU TRELU TIMG2COL TDEQUANT
    TLOG TPARTADD TPARTMAX TPARTMIN SETVAL TSEL TSELS TCMP TCMPS
    TROWARGMAX TROWARGMIN TSORT32 TMRGSORT TGATHERB TSCATTER TMATMUL_MX TGEMV_MX
"""
_AS_BODIES = """
    TCOLARGMAX TCOLARGMIN TREMS
    THISTOGRAM
"""
OFTEN = _OFTEN.split()  # those of almost all lines of public programs
AS_BODIES = _AS_BODIES.split()  # as frequent as the last of them, and not compiled


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


def in_examples() -> list[str]:
    """The instructions that the examples call."""
    files = sorted((Path(__file__).resolve().parent.parent / "examples").glob("*.py"))
    words = {word for file in files for word in re.findall(r"\w+", file.read_text("utf-8"))}
    return sorted(words & INSTRUCTIONS.keys())


def main() -> None:
    names = sys.argv[1:] or list(INSTRUCTIONS)
    whole = some = 0
    for name in names:
        found = covered(INSTRUCTIONS[name])
        if not found.calls:
            continue
        whole += found.compiled == found.calls
        some += 0 < found.compiled < found.calls
        print(f"{name:24}{found.compiled:5} of {found.calls:3}  {'; '.join(found.lacks)}".rstrip())
        if sys.argv[1:]:
            for calls in found.lacks.values():
                print(*(f"    {call}" for call in calls), sep="\n")
    if not sys.argv[1:]:
        print(f"\n{whole} instructions are compiled, {some} for some of their operands")
        for group, of in (("the examples", in_examples()), ("most programs", [*OFTEN, *AS_BODIES])):
            counted = {name: covered(INSTRUCTIONS[name]) for name in of}
            working = {name: each for name, each in counted.items() if each.calls}
            lacking = [name for name, each in working.items() if not each.compiled]
            count = f"{len(working) - len(lacking)} of {len(working)} instructions"
            print(f"{count} of {group} are compiled{', not ' * bool(lacking)}{', '.join(lacking)}")


if __name__ == "__main__":
    main()
