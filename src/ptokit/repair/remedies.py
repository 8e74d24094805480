"""What would mend a finding: lines to insert, derived from the blocks and loops around its lines.

* Two pipes, one line behind the other in a block: a flag, set behind the first statement and waited
  for before the second.
* Around a loop: a flag that goes round - primed before the loop, waited for and set in every round,
  drained behind it; where a list of buffers is indexed, with an id for each of them.
* One pipe that does not keep its order: a barrier.
* A flag of which one end is missing: that end.

Remedies come in order of preference. The last ones hold the waiting pipe up until everything before
has happened: they lose overlap, and cannot be wrong.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ptokit.base.diagnostics import Diagnostic
from ptokit.base.evidence import Evidence
from ptokit.isa.spec import Pipe
from ptokit.isa.sync import set_flag, wait_flag
from ptokit.repair.outline import Meeting, Outline, Statement
from ptokit.repair.spelling import PythonSpelling, Spelling, TextSpelling, other_end


@dataclass(frozen=True)
class Step:
    """A line to insert before or behind a statement."""

    code: str
    at: Statement
    behind: bool = False
    why: str = ""  # "prime", "drain"

    @property
    def line(self) -> int:
        """The line before which it is inserted."""
        return self.at.last + 1 if self.behind else self.at.first

    def __str__(self) -> str:
        place = f"behind line {self.at.last}" if self.behind else f"before line {self.at.first}"
        return f"{f'{self.why}: ' if self.why else ''}{self.code} {place}"


@dataclass(frozen=True)
class Remedy:
    """Lines that belong together."""

    steps: tuple[Step, ...]

    def __str__(self) -> str:
        return "; ".join(map(str, self.steps))

    def applied(self, program: Outline) -> str:
        """The text of the program with the lines in place."""
        lines = program.text.splitlines(keepends=True)
        inserted: dict[int, list[str]] = {}
        for step in self.steps:
            inserted.setdefault(step.line, []).append(f"{step.at.block.indent}{step.code}\n")
        heading = spelling_of(program).heading(" ".join(step.code for step in self.steps))
        if heading is not None:
            inserted.setdefault(heading[0] + 1, []).append(f"{heading[1]}\n")
        if lines and not lines[-1].endswith("\n"):
            lines[-1] += "\n"
        for line in sorted(inserted, reverse=True):
            lines[line - 1 : line - 1] = inserted[line]
        return "".join(lines)


def spelling_of(program: Outline) -> Spelling:
    """How flags are written in a program."""
    return PythonSpelling(program.text) if program.is_python else TextSpelling()


def remedies(program: Outline, found: Diagnostic, file: str) -> Iterator[Remedy]:
    """What may mend a finding, the best first, each only once."""
    told: set[tuple[tuple[str, int], ...]] = set()
    for remedy in _all(program, found, file):
        key = tuple((step.code, step.line) for step in remedy.steps)
        if key not in told:
            told.add(key)
            yield remedy


def _all(program: Outline, found: Diagnostic, file: str) -> Iterator[Remedy]:
    if found.evidence is not None:
        yield from _of_race(program, found.evidence, file)
    elif found.location is not None and found.location.file == file:
        flag = program.find(found.location.line)
        if flag is not None:
            yield from _of_flag(program, flag)


# ---- races ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Edge:
    """An order that is missing between two pipes."""

    src: Pipe
    dst: Pipe
    free: Sequence[int]  # event ids that nobody uses for this pair


def _of_race(program: Outline, evidence: Evidence, file: str) -> Iterator[Remedy]:
    places = evidence.earlier.location, evidence.later.location
    one, other = (
        program.find(at.line) if at is not None and at.file == file else None for at in places
    )
    if other is None or evidence.free is None:
        return
    spelling = spelling_of(program)
    src, dst = Pipe[evidence.earlier.pipe], Pipe[evidence.later.pipe]
    if src is dst:
        yield Remedy((Step(spelling.barrier(src), other),))
        return
    edge = _Edge(src, dst, evidence.free)
    if one is not None:
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
_CALL = re.compile(rf"\b({'|'.join(_ENDS)})(?:_dyn)?\s*[(\[](.*)[)\]]")


def _written_flags(program: Outline) -> list[_Flag]:
    found: list[_Flag] = []
    for each in program:
        if not each.blocks:
            code = program.code(each)
            call = _CALL.search(code)
            if call is not None:
                found.append(_Flag(each, code, _ENDS[call[1]], re.sub(r"\s", "", call[2])))
    return found


def _uneven(flags: Iterable[_Flag]) -> dict[str, int]:
    """Flags that are not set as often as waited for, by what they are: sets minus waits."""
    balance: Counter[str] = Counter()
    for flag in flags:
        balance[flag.what] += 1 if flag.is_set else -1
    return {what: count for what, count in balance.items() if count}


def _missing_ends(
    program: Outline, edge: _Edge, one: Statement, other: Statement
) -> Iterator[Remedy]:
    """Flags between two pipes of which only one end is written: the other end, where it belongs."""
    flags = _written_flags(program)
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
    flags = _written_flags(program)
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
