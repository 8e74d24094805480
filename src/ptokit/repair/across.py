"""What would mend a race between cores, blocks or ranks.

* Blocks meet at SYNCALL: one before the later access, or before what stands around it.
* Cores of one block tell each other: a signal that nobody waits for gets its wait, one that comes
  too early or from another pipe is put where it belongs, and where there is none a new one is given
  behind the earlier access and waited for before the later one - around loops primed before that of
  the giver, and drained behind that of the taker.
* A signal to another rank comes behind the work that it tells of: the scalar unit waits for it.
  Where it adds one in every round of a loop over a range, the other rank waits for the number of
  the round; any other protocol is the program's own, and nothing here derives it.

These are guesses that only a trial can tell apart: one that blocks for ever is none.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache

from ptokit.base.comm_enums import NotifyOp, WaitCmp
from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import Diagnostic
from ptokit.base.evidence import BETWEEN_BLOCKS, BETWEEN_CORES, BETWEEN_RANKS, Evidence
from ptokit.base.patterns import regex
from ptokit.isa.comm_signal import TNOTIFY, TWAIT
from ptokit.isa.effects import Reach
from ptokit.isa.pipes import TFREE, TPOP
from ptokit.isa.spec import Pipe
from ptokit.isa.sync import set_ffts_base_addr, set_flag, wait_flag
from ptokit.isa.targets import TARGETS
from ptokit.repair.outline import Outline, Statement
from ptokit.repair.signals import core_signals, names, signal_of
from ptokit.repair.spelling import SECOND, Spelling
from ptokit.repair.steps import Remedy, Step


@dataclass(frozen=True)
class _Signal:
    """A statement that tells another core or rank something, or waits to be told."""

    at: Statement
    code: str
    is_given: bool
    id: str  # as it is written; empty: that of a rank


@lru_cache(maxsize=1)
def _words() -> re.Pattern[str]:
    """A line that signals other cores, waits for them, or does either with other ranks."""
    gives = names(*(each.gives for each in core_signals()))
    takes = names(*(each.takes for each in core_signals()))
    ranks = names(TNOTIFY, TWAIT)
    return re.compile(rf"(?:\w+\.)*?(?:({gives})|({takes})|({ranks}))\b(.*)", re.DOTALL)


_NOTIFY = TNOTIFY.name.rpartition(".")[2]
_MESSAGE = regex(r"getFFTSMsg\([^,]*,\s*(.*?)\)\)\s*$")
_PIPE = regex(r"PIPE_\w+")


def remedies_across(
    program: Outline, spelling: Spelling, found: Diagnostic, one: Statement | None, other: Statement
) -> Iterator[Remedy]:
    """What may order two accesses of different cores, the likeliest first."""
    evidence = found.evidence
    assert evidence is not None
    if evidence.edge == BETWEEN_BLOCKS:
        yield from _meet(spelling, evidence, (other, *([] if one is None else [one])))
    if one is None or evidence.edge not in (BETWEEN_CORES, BETWEEN_RANKS):
        return
    signals = _signals(program, other, one)
    # Which of the two came first in a run says little of which was meant to.
    turned = replace(evidence, earlier=evidence.later, later=evidence.earlier)
    ways = (evidence, one, other), (turned, other, one)
    if evidence.edge == BETWEEN_RANKS:
        src = Pipe[evidence.earlier.pipe]
        if src not in (Pipe.S, Pipe.ALL):
            flag = (spelling.flag(insn, src, Pipe.S, 0) for insn in (set_flag, wait_flag))
            yield Remedy(tuple(Step(code, one, behind=True) for code in flag))
        yield from _moved(signals, one, other)
        for each, first, second in ways:
            yield from _counted(signals, each, first, second)
        return
    for each, first, second in ways:
        yield from _on_other_pipes(signals, each, first, second)
    for each, first, second in ways:
        yield from _awaited(signals, spelling, each, first, second)
        yield from _moved(signals, first, second)
    for each, first, second in ways:
        yield from _new_signal(program, spelling, each, found.target, first, second)


# ---- blocks --------------------------------------------------------------------------------------


def _meet(spelling: Spelling, evidence: Evidence, ends: Iterable[Statement]) -> Iterator[Remedy]:
    """All blocks must come to it equally often: perhaps only around what stands in a branch."""
    cores = evidence.earlier.core, evidence.later.core
    kinds = {"cube" in each for each in cores}
    code = spelling.meeting("mix" if len(kinds) > 1 else "cube" if kinds == {True} else "vector")
    for end in ends:
        for at in (end, *end.around):
            if not at.function:
                yield Remedy((Step(code, at),))


# ---- cores of one block --------------------------------------------------------------------------


def _signals(program: Outline, *near: Statement) -> list[_Signal]:
    found: dict[Statement, _Signal] = {}
    for each in (s for place in near for s in program.related(place)):
        if each.blocks or each in found:
            continue
        code = program.code(each)
        word = _words().match(code.removeprefix("pto."))
        if word is not None:
            given = word[1] is not None or word[3] == _NOTIFY
            found[each] = _Signal(each, code, given, "" if word[3] else _id(code))
    return list(found.values())


def _id(code: str) -> str:
    """The id of a signal, as it is written: that of a message, or the last operand."""
    message = _MESSAGE.search(code)
    if message is not None:
        return message[1]
    operands = re.sub(r"\{.*", "", code).strip().removesuffix(")").removesuffix("]")
    return re.split(r"[,(\[]", operands)[-1].strip()


def _loop(statement: Statement) -> Statement | None:
    return next((each for each in statement.around if each.is_loop), None)


def _section(statement: Statement) -> Statement:
    """The statement of a function in which one stands: the program of one kind of core."""
    *_, last = (statement, *(each for each in statement.around if not each.function))
    return last


def _awaited(
    signals: list[_Signal],
    spelling: Spelling,
    evidence: Evidence,
    one: Statement,
    other: Statement,
) -> Iterator[Remedy]:
    """A signal behind the earlier access: the wait for it before the later one."""
    dst, section = Pipe[evidence.later.pipe], _section(one)
    given = [s for s in signals if s.is_given and s.id and _section(s.at) is section]
    behind = [s for s in given if s.at.first > one.first]
    for signal in sorted(behind, key=lambda s: s.at.first):
        ids = [signal.id]
        pair = signal_of(signal.code)
        if pair is not None and pair.by_core:  # who gives it decides which of the two is meant
            plain = re.sub(rf"\s*\+\s*{SECOND}$", "", signal.id)
            ids = [plain, f"{plain} + {SECOND}"]
        loop = _loop(signal.at)
        for id in ids:
            code = spelling.awaited(signal.code, dst, id)
            for wait in _in_front_of(other, code):
                yield Remedy((wait,))
            if loop is not None:
                yield Remedy((Step(signal.code, loop, why="prime"), Step(code, other)))


def _in_front_of(other: Statement, code: str) -> Iterator[Step]:
    """Before a statement, or in the branch right before it, which not every round takes."""
    yield Step(code, other)
    beside = other.block.statements
    at = beside.index(other)
    if at and beside[at - 1].blocks and not beside[at - 1].is_loop:
        yield Step(code, beside[at - 1].blocks[0].statements[-1], behind=True)


def _moved(signals: list[_Signal], one: Statement, other: Statement) -> Iterator[Remedy]:
    """A signal in front of the earlier access, or a wait behind the later one: the other way."""
    for signal in signals:
        if signal.is_given and signal.at.block is one.block and signal.at.last < one.first:
            yield Remedy(
                (Step(signal.code, one, behind=True), Step("", signal.at, instead=True)),
            )
        if not signal.is_given and signal.at.block is other.block and signal.at.first > other.last:
            yield Remedy((Step(signal.code, other), Step("", signal.at, instead=True)))


def _on_other_pipes(
    signals: list[_Signal], evidence: Evidence, one: Statement, other: Statement
) -> Iterator[Remedy]:
    """A signal behind the work of another pipe than the earlier access, a wait of another one."""
    for signal in signals:
        access, at = (evidence.earlier, one) if signal.is_given else (evidence.later, other)
        is_meant = signal.id and _section(signal.at) is _section(at)
        written = _PIPE.search(signal.code) if is_meant else None
        if written is not None and written[0] != f"PIPE_{access.pipe}":
            code = _PIPE.sub(f"PIPE_{access.pipe}", signal.code, count=1)
            yield Remedy((Step(code, signal.at, instead=True),))


def _new_signal(
    program: Outline,
    spelling: Spelling,
    evidence: Evidence,
    on: str,
    one: Statement,
    other: Statement,
) -> Iterator[Remedy]:
    target = TARGETS.get(on)
    if target is None or not evidence.free:
        return
    id, gives_cube = evidence.free[0], "cube" in evidence.earlier.core
    pair = Pipe[evidence.earlier.pipe], Pipe[evidence.later.pipe]
    by_core = target.core_signals is Reach.CORE
    if not by_core and program.is_python:
        # The address of the flags comes from the host: without it there is nobody to tell.
        related = (*program.related(one), *program.related(other))
        if not any(set_ffts_base_addr.name in program.code(s) for s in related if not s.blocks):
            return
    sets, waits = spelling.signal(*pair, id, by_core=by_core, from_cube=gives_cube)
    behind = [Step(code, one, behind=True) for code in sets]
    before = [Step(code, other) for code in waits]
    giver, taker = _loop(one), _loop(other)
    goes_round = giver is not None and taker is not None
    if not goes_round or evidence.earlier.does == "writes":  # what is written is read behind it
        yield Remedy((*behind, *before))
    if giver is not None and taker is not None:
        yield Remedy(
            (
                *(Step(code, giver, why="prime") for code in sets),
                *before,
                *behind,
                *(Step(code, taker, behind=True, why="drain") for code in waits),
            )
        )


# ---- ranks ---------------------------------------------------------------------------------------


def _counted(
    signals: list[_Signal], evidence: Evidence, one: Statement, other: Statement
) -> Iterator[Remedy]:
    """A signal to another rank that counts rounds: the wait for this round, or for the last one.

    What is written is there in this round; what is read has been so in the last one.
    """
    reads = evidence.earlier.does == "reads"
    for signal in signals:
        node = signal.at.node
        if not signal.is_given or signal.id or signal.at.first < one.first:
            continue
        match node:
            case ast.Expr(
                ast.Call(
                    args=[ast.Call(func=ast.Attribute(attr="signal") as word), ast.Constant(1), _]
                )
            ) if signal.code.endswith(f".{NotifyOp.AtomicAdd.name})"):
                head = signal.code[: signal.code.index(_NOTIFY)]
                wait = f"{head}{TWAIT.name.rpartition('.')[2]}({ast.unparse(word)}()"
                for number in [*_rounds(other)][-1 if reads else 0 :][:1]:
                    code = f"{wait}, {number}, {head}WaitCmp.{WaitCmp.GE.name})"
                    yield Remedy((Step(code, other),))
            case _:
                pass


def _rounds(statement: Statement) -> Iterator[str]:
    """How many rounds of the loop around a statement have begun, and have ended."""
    loop = _loop(statement)
    match None if loop is None else loop.node:
        case None:
            yield "1"
        case ast.For(target=ast.Name(id=name), iter=ast.Call(args=[*first, _])) if len(first) < 2:
            start = ast.unparse(first[0]) if first else "0"
            begun = {"0": f"{name} + 1", "1": name}.get(start, f"{name} - ({start}) + 1")
            ended = {"0": name, "1": f"{name} - 1"}.get(start, f"{name} - ({start})")
            yield from (begun, ended)
        case _:
            pass


# ---- FIFOs ---------------------------------------------------------------------------------------


def freed(program: Outline, near: Statement) -> Iterator[Remedy]:
    """Entries that are taken and never given back: the TFREE, as far behind the TPOP as may be."""
    codes = {s: program.code(s) for s in program.related(near) if not s.blocks}
    pop = re.compile(rf"(?:\w+\.)*{TPOP.name}(\[[^\]]*\])?\((\w+),.*\)$")
    for at, code in codes.items():
        taken = pop.match(code)
        if taken is None:
            continue
        free = re.compile(rf"{TFREE.name}(\[[^\]]*\])?\({taken[2]}\b")
        inside = at.block.statements
        if any(free.search(codes[s]) for s in _section(at).inside() if s in codes):
            continue
        head = code[: code.index(TPOP.name)]
        back = f"{head}{TFREE.name}{taken[1] or ''}({taken[2]})"
        for last in reversed(inside[inside.index(at) :]):
            yield Remedy((Step(back, last, behind=True),))
