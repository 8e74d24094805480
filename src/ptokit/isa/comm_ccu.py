"""Collectives by the collective unit of A5: the kernel rings a gate, the unit moves the data.

Every member executes the instruction. What the unit is to do comes from the host in reality; here
it is what the root's own call says. The unit fires when the last member has rung, behind all that
the members knew to be complete then, and tells nobody but the host when it is done.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from ptokit.base.comm_enums import CcuInputSource, ReduceOp
from ptokit.base.dataclass import dataclass
from ptokit.base.dtypes import dtype
from ptokit.base.layout import Array
from ptokit.isa.comm_rules import Dims, stacked
from ptokit.isa.elementwise import TADD, TMAX, TMIN
from ptokit.isa.facts import Ops
from ptokit.isa.services import Refused, World
from ptokit.isa.spec import Pipe

COMBINES = {ReduceOp.Sum: TADD, ReduceOp.Max: TMAX, ReduceOp.Min: TMIN}


@dataclass(frozen=True)
class Job:
    """What the unit does for a collective: `work` is given the root's tensor and the members."""

    name: str
    work: Callable[[Array, Sequence[Array]], None]
    collects: bool  # the data comes from the members, not from the root
    stacks: bool = False  # the root's tensor has the rows of all members
    tile: str = "stagingTileData"  # where a kernel keeps its own part

    def extents(self, group: Any) -> Dims:
        """How much of the root's tensor the unit touches."""
        return stacked(group.shape, group.nranks) if self.stacks else group.shape


def ring(job: Job, group: Any, trigger: Any, other: Any, ops: Ops, world: World) -> None:
    """Store the kernel's own part where it is asked to, then ring the gate."""
    if not ops.target.is_device:
        world.collect(job, group, other, [])
        return
    mine = trigger.selfIdx
    if not 0 <= mine < group.nranks:
        raise Refused(
            "self-index",
            "selfIdx of the trigger is the index of a member",
            got=[("selfIdx", mine), ("members", group.nranks)],
        )
    stores = trigger.inputSource == CcuInputSource.AivStored
    if stores and (job.collects or mine == group.rootIdx):
        with world.staging(job.tile) as stage:
            stage.order(Pipe.V, Pipe.MTE3, 0)
            stage.store(0, group[mine] if job.collects else other)
        world.stop_for(Pipe.MTE3)
    gate = world.gates.setdefault((job.name, group.addresses), {})
    if mine in gate:
        raise Refused(
            "gate",
            "a member rings once per collective",
            got=[("selfIdx", mine), ("members that rang", sorted(gate))],
            fix="wait until the collective is complete before ringing again",
        )
    gate[mine] = (job, group, other, world.known())
    if len(gate) == group.nranks:
        del world.gates[job.name, group.addresses]
        told, members, tensor, _ = gate[group.rootIdx]
        world.collect(told, members, tensor, [known for *_, known in gate.values()])
    world.drain(Pipe.ALL)


def _broadcast(own: Array, members: Sequence[Array]) -> None:
    """Copy the source to every member."""
    values = own.copy()
    for member in members:
        member[...] = values


def _gather(own: Array, members: Sequence[Array]) -> None:
    """Stack the members in the destination."""
    own[...] = np.concatenate(members, axis=3)


def _scatter(own: Array, members: Sequence[Array]) -> None:
    """Divide the source among the members."""
    rows, values = members[0].shape[3], own.copy()
    for index, member in enumerate(members):
        member[...] = values[..., index * rows : (index + 1) * rows, :]


@cache
def reduction(op: ReduceOp, root: int) -> Job:
    """Combine the members: the root first, then the others in order."""
    meaning = COMBINES[op].means
    assert meaning is not None

    def reduce(own: Array, members: Sequence[Array]) -> None:
        total = members[root].copy()
        kind = dtype(total.dtype)
        combine = meaning.function(src0=kind, src1=kind)
        for index, member in enumerate(members):
            if index != root:
                total = combine(total, member)
        own[...] = total

    return Job("TREDUCE", reduce, True, tile="accTileData")


BROADCAST = Job("TBROADCAST", _broadcast, False)
GATHER = Job("TGATHER", _gather, True, stacks=True)
SCATTER = Job("TSCATTER", _scatter, False, stacks=True)
