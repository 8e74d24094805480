"""Collectives by the collective unit of A5: the kernel rings a gate, the unit moves the data.

Every member executes the instruction. What the unit is to do comes from the host in reality; here
it is what the root's own call says. The unit fires when the last member has rung.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ptokit.base.comm_enums import CcuInputSource, ReduceOp
from ptokit.base.dtypes import dtype
from ptokit.isa.comm_rules import Dims, stacked
from ptokit.isa.elementwise import TADD, TMAX, TMIN
from ptokit.isa.facts import Ops
from ptokit.isa.services import Refused, World
from ptokit.isa.spec import Pipe

COMBINES = {ReduceOp.Sum: TADD, ReduceOp.Max: TMAX, ReduceOp.Min: TMIN}


@dataclass(frozen=True)
class Job:
    """What the unit does for a collective, given the group and the root's tensor."""

    name: str
    work: Callable[[Any, Any], None]
    collects: bool  # the data comes from the members, not from the root
    tile: str = "stagingTileData"  # where a kernel keeps its own part


def ring(job: Job, group: Any, trigger: Any, other: Any, ops: Ops, world: World) -> None:
    """Store the kernel's own part where it is asked to, then ring the gate."""
    if not ops.target.is_device:
        job.work(group, other)
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
        world.drain(Pipe.MTE3)
    gate = world.gates.setdefault((job.name, group.addresses), {})
    if mine in gate:
        raise Refused(
            "gate",
            "a member rings once per collective",
            got=[("selfIdx", mine), ("members that rang", sorted(gate))],
            fix="wait until the collective is complete before ringing again",
        )
    gate[mine] = (group, other, job.work)
    if len(gate) == group.nranks:
        del world.gates[job.name, group.addresses]
        members, tensor, todo = gate[group.rootIdx]
        todo(members, tensor)


def _part(tensor: Any, shape: Dims) -> Any:
    return tensor.numpy()[tuple(slice(0, n) for n in shape)]


def _broadcast(group: Any, src: Any) -> None:
    """Copy the source to every member."""
    values = src.numpy().copy()
    for member in group:
        _part(member, src.shape)[...] = values


def _gather(group: Any, dst: Any) -> None:
    """Stack the members in the destination."""
    values = np.concatenate([member.numpy() for member in group], axis=3)
    _part(dst, stacked(group.shape, group.nranks))[...] = values


def _scatter(group: Any, src: Any) -> None:
    """Divide the source among the members."""
    rows = group.shape[3]
    values = _part(src, stacked(group.shape, group.nranks)).copy()
    for index, member in enumerate(group):
        member.numpy()[...] = values[..., index * rows : (index + 1) * rows, :]


def reduction(op: ReduceOp) -> Job:
    """Combine the members: the root first, then the others in order."""
    meaning = COMBINES[op].means
    assert meaning is not None

    def reduce(group: Any, dst: Any) -> None:
        total = group[group.rootIdx].numpy().copy()
        kind = dtype(total.dtype)
        combine = meaning.function(src0=kind, src1=kind)
        for index, member in enumerate(group):
            if index != group.rootIdx:
                total = combine(total, member.numpy())
        _part(dst, group.shape)[...] = total

    return Job("TREDUCE", reduce, True, "accTileData")


BROADCAST = Job("TBROADCAST", _broadcast, False)
GATHER = Job("TGATHER", _gather, True)
SCATTER = Job("TSCATTER", _scatter, False)
