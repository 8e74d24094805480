"""What would mend a finding: lines to insert, derived from the blocks and loops around its lines.

* Two pipes, one line behind the other in a block: a flag, set behind the first statement and waited
  for before the second.
* Around a loop: a flag that goes round - primed before the loop, waited for and set in every round,
  drained behind it; where a list of buffers is indexed, with an id for each of them.
* One pipe that does not keep its order: a barrier.
* Two cores, blocks or ranks: signals and meetings (`across.py`).
* A flag of which one end is missing: that end. A set and a wait that were meant for each other and
  name other pipes or ids: one of them as the other says. An Event of other pipes: the right one.
* A numbered buffer that is acquired or released alone (`buffers.py`).

Remedies come in order of preference. The last ones hold the waiting pipe up until everything before
has happened: they lose overlap, and cannot be wrong.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import Diagnostic
from ptokit.base.evidence import Evidence
from ptokit.base.patterns import regex
from ptokit.isa.opcodes import op_codes
from ptokit.isa.spec import Pipe
from ptokit.isa.sync import set_flag, wait_flag
from ptokit.repair.across import freed, remedies_across
from ptokit.repair.buffers import remedies_of_buffers
from ptokit.repair.outline import Meeting, Outline, Statement
from ptokit.repair.spelling import Spelling, other_end
from ptokit.repair.steps import Remedy, Step, spelling_of


def remedies(
    program: Outline, found: Diagnostic, file: str, is_tried: bool = True
) -> Iterator[Remedy]:
    """What may mend a finding, the best first, each only once; `is_tried`: also bold guesses."""
    told: set[tuple[tuple[str, int, bool, str], ...]] = set()
    for remedy in _all(program, found, file, is_tried):
        key = tuple((s.code, s.line, s.instead, s.at.block.indent) for s in remedy.steps)
        if key not in told:
            told.add(key)
            yield remedy


def _all(program: Outline, found: Diagnostic, file: str, is_tried: bool) -> Iterator[Remedy]:
    at = found.location
    near = program.find(at.line) if at is not None and at.file == file else None
    if near is None:
        return
    yield from _mismatched(program, near, is_tried)
    yield from remedies_of_buffers(program, near)
    if found.evidence is not None:
        yield from _of_race(program, found, file, is_tried)
    else:
        yield from _of_flag(program, near)
    if is_tried:
        yield from freed(program, near)


# ---- races ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Edge:
    """An order that is missing between two pipes."""

    src: Pipe
    dst: Pipe
    free: Sequence[int]  # event ids that nobody uses for this pair


def _of_race(program: Outline, found: Diagnostic, file: str, is_tried: bool) -> Iterator[Remedy]:
    evidence = found.evidence
    assert evidence is not None
    places = evidence.earlier.location, evidence.later.location
    one, other = (
        program.find(at.line) if at is not None and at.file == file else None for at in places
    )
    is_inside = "->" in evidence.edge or evidence.edge.startswith("barrier ")
    if other is None:
        return
    spelling = spelling_of(program)
    if not is_inside:  # flags do not leave a core
        if is_tried:
            yield from remedies_across(program, spelling, found, one, other)
        return
    if evidence.free is None:
        return
    src, dst = Pipe[evidence.earlier.pipe], Pipe[evidence.later.pipe]
    if src is dst:
        yield Remedy((Step(spelling.barrier(src), other),))
        return
    edge = _Edge(src, dst, evidence.free)
    if one is not None:
        yield from _wrong_events(program, evidence, one if is_tried else None, other)
        yield from _missing_ends(program, edge, one, other)
        for meeting in program.meetings(one, other):
            yield from _flags(spelling, edge, meeting)
    for number in edge.free[:1]:
        codes = (spelling.flag(insn, src, dst, number) for insn in (set_flag, wait_flag))
        yield Remedy(tuple(Step(code, other) for code in codes))
    yield Remedy((Step(spelling.barrier(Pipe.ALL), other),))


def _flags(spelling: Spelling, edge: _Edge, meeting: Meeting) -> Iterator[Remedy]:
    """A flag of its own for two statements of one block."""
    one, other, loop = meeting.earlier, meeting.later, meeting.loop
    pair = edge.src, edge.dst
    if meeting.is_forward:
        for number in edge.free[:1]:
            yield Remedy(
                (
                    Step(spelling.flag(set_flag, *pair, number), one, behind=True),
                    Step(spelling.flag(wait_flag, *pair, number), other),
                )
            )
    if loop is None:
        return
    for ids, inside in _round_ids(edge.free, one, other):
        yield Remedy(
            (
                *(Step(spelling.flag(set_flag, *pair, n), loop, why="prime") for n in ids),
                Step(spelling.flag(wait_flag, *pair, inside), other),
                Step(spelling.flag(set_flag, *pair, inside), one, behind=True),
                *(
                    Step(spelling.flag(wait_flag, *pair, n), loop, behind=True, why="drain")
                    for n in ids
                ),
            )
        )


def _round_ids(
    free: Sequence[int], one: Statement, other: Statement
) -> Iterator[tuple[list[int], int | str]]:
    """Ids of a flag that goes round: one per buffer of a list that both index alike, or one."""
    for name, index in sorted(_indexed(one) & _indexed(other)):
        ids = list(range(_length(other, name)))
        if ids and set(ids) <= set(free):
            yield ids, index
    for number in free[:1]:
        yield [number], number


def _indexed(statement: Statement) -> set[tuple[str, str]]:
    """The lists that a simple statement of Python indexes, and by what that changes."""
    if statement.node is None or statement.blocks:
        return set()
    return {
        (node.value.id, ast.unparse(node.slice))
        for node in ast.walk(statement.node)
        if isinstance(node, ast.Subscript)
        and isinstance(node.value, ast.Name)
        and any(isinstance(part, ast.Name) for part in ast.walk(node.slice))
        and not any(isinstance(part, ast.Slice) for part in ast.walk(node.slice))
    }


def _length(user: Statement, name: str) -> int:
    """How many elements a list has, where the function that uses it writes it out."""
    *_, function = (user, *user.around)
    for each in function.inside():
        if isinstance(each.node, ast.Assign):
            for target in each.node.targets:
                pairs = [(target, each.node.value)]
                if isinstance(target, ast.Tuple) and isinstance(each.node.value, ast.Tuple):
                    pairs = list(zip(target.elts, each.node.value.elts, strict=False))
                for left, right in pairs:
                    if isinstance(left, ast.Name) and left.id == name:
                        return len(right.elts) if isinstance(right, ast.List) else 0
    return 0


# ---- flags of which one end is missing -----------------------------------------------------------


@dataclass(frozen=True)
class _Flag:
    """A statement that sets a flag or waits for it."""

    at: Statement
    code: str
    is_set: bool
    what: str  # its pipes and id, as they are written


_ENDS = {set_flag.name: True, wait_flag.name: False}
_CALL = regex(rf"(?:\w+\.)*({'|'.join(_ENDS)})(?:_dyn)?\s*[(\[](.*)[)\]]")


def _written_flags(program: Outline, near: Statement) -> list[_Flag]:
    """The flags of a program: of its function, those that call it and those that are called."""
    found: list[_Flag] = []
    for each in program.related(near):
        if not each.blocks:
            code = program.code(each)
            call = _CALL.match(code)
            if call is not None:
                found.append(_Flag(each, code, _ENDS[call[1]], re.sub(r"\s", "", call[2])))
    return found


def _uneven(flags: Iterable[_Flag]) -> dict[str, int]:
    """Flags that are not set as often as waited for, by what they are: sets minus waits."""
    balance: Counter[str] = Counter()
    for flag in flags:
        balance[flag.what] += 1 if flag.is_set else -1
    return {what: count for what, count in balance.items() if count}


def _mismatched(program: Outline, near: Statement, is_tried: bool) -> Iterator[Remedy]:
    """Sets without waits and waits without sets: each as the other end of one of the others.

    Those of one block were meant for each other; of others only a trial can tell.
    """
    flags = _written_flags(program, near)
    uneven = _uneven(flags)
    lonely = [flag for flag in flags if uneven.get(flag.what, 0) * (1 if flag.is_set else -1) > 0]
    for one in lonely:
        for other in lonely:
            if one.is_set != other.is_set and (is_tried or one.at.block is other.at.block):
                yield Remedy((Step(other_end(other.code), one.at, instead=True),))


def _wrong_events(
    program: Outline, evidence: Evidence, one: Statement | None, other: Statement
) -> Iterator[Remedy]:
    """An Event that one statement waits for, or is recorded by the other, and is not of their
    pipes: one that is."""
    if other.node is None:
        return
    pair = evidence.earlier, evidence.later
    classes = [
        [name for name, code in op_codes().items() if code.pipe.name == each.pipe
         and f"{name}_".startswith(f"{each.instruction}_")]
        for each in pair
    ]  # fmt: skip
    loads = (n for n in ast.walk(other.node) if isinstance(n, ast.Name))
    awaited = {n.id for n in loads if isinstance(n.ctx, ast.Load)}
    for each in program.related(other):
        code = "" if each.blocks else program.code(each)
        event = _EVENT.search(code)
        if event is None or not (each is one or code.split(" ")[0] in awaited):
            continue
        start, stop = event.span()
        for first in classes[0]:
            for second in classes[1]:
                said = f"Event[{event[1]}Op.{first}, {event[1]}Op.{second}"
                if _pipes_of(event) != [Pipe[access.pipe] for access in pair]:
                    yield Remedy((Step(code[:start] + said + code[stop:], each, instead=True),))


def _pipes_of(event: re.Match[str]) -> list[Pipe]:
    """The pipes of the two classes of an Event."""
    return [op_codes()[name].pipe for name in event.groups()[1:] if name in op_codes()]


_EVENT = regex(r"\bEvent\[((?:\w+\.)?)Op\.(\w+), (?:\w+\.)?Op\.(\w+)")


def _unwaited(program: Outline, edge: _Edge, other: Statement) -> Iterator[Remedy]:
    """Events between two pipes that are recorded and never waited for: the wait.

    Around a loop it stands behind the record: the event of the last round is another one.
    """
    codes = [(each, program.code(each)) for each in program.related(other) if not each.blocks]
    for each, code in codes:
        made, event = re.match(r"(\w+) = ", code), _EVENT.search(code)
        if made is None or event is None or "](" not in code:
            continue
        users = [s for s, c in codes if s is not each and re.search(rf"\b{made[1]}\b", c)]
        recorded = [s for s in users if program.code(s).startswith(f"{made[1]}.Record(")]
        if _pipes_of(event) == [edge.src, edge.dst] and users == recorded:
            last = (each, *recorded)[-1]
            for met in program.meetings(last, other):
                if met.earlier is last:
                    at = met.later if met.is_forward else last
                    yield Remedy((Step(f"{made[1]}.Wait()", at, behind=not met.is_forward),))


def _missing_ends(
    program: Outline, edge: _Edge, one: Statement, other: Statement
) -> Iterator[Remedy]:
    """Flags between two pipes of which only one end is written: the other end, where it belongs."""
    yield from _unwaited(program, edge, other)
    flags = _written_flags(program, other)
    uneven = _uneven(flags)
    for flag in flags:
        pipes = [
            Pipe[name] for name in re.findall(r"PIPE_(\w+)", flag.what) if name in Pipe.__members__
        ]
        if flag.what not in uneven or pipes != [edge.src, edge.dst]:
            continue
        if flag.is_set and uneven[flag.what] > 0:
            for met in program.meetings(flag.at, other):
                if met.earlier is flag.at:  # it runs as often as the wait
                    yield Remedy((Step(other_end(flag.code), met.later),))
        elif not flag.is_set and uneven[flag.what] < 0:
            for met in program.meetings(one, flag.at):
                if met.later is flag.at:
                    yield Remedy((Step(other_end(flag.code), met.earlier, behind=True),))


def _of_flag(program: Outline, at: Statement) -> Iterator[Remedy]:
    """A wait that nothing ends, or a flag that stays up: the other end, in each place it may have
    been meant for."""
    flags = _written_flags(program, at)
    flag = next((each for each in flags if each.at is at), None)
    if flag is None:
        return
    code = other_end(flag.code)
    same = [each for each in flags if each.what == flag.what]
    loop = next((each for each in at.around if each.is_loop), None)
    if flag.is_set:  # nobody waits
        for each in [f.at for f in same if f.is_set]:
            around = next((s for s in each.around if s.is_loop), None)
            if around is not None:
                yield Remedy((Step(code, around, behind=True, why="drain"),))
        if loop is not None:
            yield Remedy((Step(code, loop.blocks[0].statements[0]),))
        yield Remedy((Step(code, at, behind=True),))
        return
    if loop is not None:
        yield Remedy((Step(code, loop, why="prime"),))
        yield Remedy((Step(code, loop.blocks[0].statements[-1], behind=True),))
    yield Remedy((Step(code, at),))
