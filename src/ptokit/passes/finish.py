"""Finishing a program: the two steps between what was written and what can run.

*Placing* gives an address to every tile that has none. *Ordering* puts flags and barriers between
the pipes. Whoever runs, converts or writes a program out comes here, so that all of them see the
same program and the same complaints:

| | place | order |
|---|---|---|
| nothing said | tiles without an address get one | functions that do not order their pipes |
| `place=True` | the same, and addresses that are bound while it runs are no reason not to | |
| `place=False` | none: a tile without an address is an error | |
| `sync="insert"` | | all functions but those that set or wait for flags |
| `sync="keep"` | | never: the order is the author's, and is checked when the program runs |

Other ways to order them are in `steps.py`.

A program that binds addresses while it runs (TASSIGN) is its author's in both respects: nothing
can be inserted around tiles that lie wherever a register says.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ptokit.base.diagnostics import Diagnostic, ProgramError
from ptokit.base.policy import DEFAULT, Policy
from ptokit.ir.core import Module, Op
from ptokit.ir.flow import allocates
from ptokit.ir.ordering import orders_pipes
from ptokit.ir.types import BufferType
from ptokit.isa.targets import Target
from ptokit.passes.blocks import refuse_jumps
from ptokit.passes.call_graph import callees, callers_first
from ptokit.passes.place import Place
from ptokit.passes.steps import INSERT, KEEP, Mode, Steps
from ptokit.passes.sync_modes import kept_by, order
from ptokit.passes.verify import Verify


def finish(
    module: Module,
    target: Target,
    steps: Steps,
    policy: Policy = DEFAULT,
    is_one_core: bool = False,
    told: list[Diagnostic] | None = None,
) -> Module:
    """The program ready to run, or all that is wrong with it. Its tiles are buffers (Level 2, 3).

    `is_one_core`: one core plays the parts of both kinds, and its pipes are ordered across them.
    `told` takes the warnings.
    """
    place, inserted = decided(module, steps)
    mode = replace(Mode.of(steps.sync or INSERT), is_reduced=steps.is_reduced)
    found = Verify(is_manual=not place, policy=policy).warnings(module, target)
    if place and _loose(module):
        refuse_jumps(module, "placing tiles")
        # Who orders pipes by hand has not thought of tiles that come to lie over each other.
        is_kept = len(inserted) < sum(f.body is not None for f in module.functions)
        is_kept = is_kept or bool(kept_by(mode, module, inserted))
        module = Place(is_apart=is_kept).run(module, target)
        # Rules about addresses could not be asked before: two operands may turn out to be one.
        found = Verify(is_manual=True, policy=policy).warnings(module, target)
    refuse_jumps(module, "ordering pipes", inserted)
    if inserted and not steps.is_verdict:
        left: list[Diagnostic] = []
        module = order(mode, module, target, inserted, is_one_core, left)
        found += policy.judge(left)
    if told is not None:
        told += found
    return module


def decided(module: Module, steps: Steps) -> tuple[bool, frozenset[str]]:
    """Whether tiles are placed, and the functions whose pipes are ordered."""
    bound = next(_bound(module), None)
    place = bound is None if steps.place is None else steps.place
    if steps.sync not in (None, KEEP) and bound is not None:
        raise ProgramError([_moving(bound)])
    if steps.sync == KEEP or bound is not None:
        return place, frozenset()
    kept = _ordered(module) if steps.sync is None else set[str]()
    names = (f.name for f in module.functions if f.body is not None)
    return place, frozenset(name for name in names if name not in kept)


def _ordered(module: Module) -> set[str]:
    """The functions whose pipes the author orders: here, in what they call, or around the call."""
    own = {f.name for f in module.functions if any(orders_pipes(op) for op in f.walk())}
    found = set(own)
    for function in reversed(callers_first(module)):
        if found.intersection(callees(function)):
            found.add(function.name)
    for function in callers_first(module):
        if function.name in own:
            own.update(callees(function))
    return found | own


def _bound(module: Module) -> Iterator[Op]:
    """The operations that give a tile its address while the program runs."""
    for op in module.walk():
        is_binding = op.insn is not None and op.insn.binds and op.operand("addr") is not None
        if is_binding and isinstance(op.operands[0].type, BufferType):
            yield op


def _loose(module: Module) -> bool:
    return any(allocates(op) and op.operand("addr") is None for op in module.walk())


def _moving(op: Op) -> Diagnostic:
    return Diagnostic(
        "sync.bound",
        "nothing can be inserted where tiles are bound to addresses while the program runs: which "
        "of them share bytes is not known before",
        op.location,
        fix="give the tile its address where it is made, or order the pipes by hand: sync=keep",
    )
