"""Collectives by the collective unit of A5: the kernel rings a gate, the unit moves the data.

Every member executes the instruction. What the unit is to do comes from the host in reality; here
it is what the root's own call says. The unit fires when the last member has rung.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ptokit.base.comm_enums import CcuInputSource, ReduceOp
from ptokit.base.dtypes import dtype
from ptokit.isa.comm_rules import Dims, stacked
from ptokit.isa.elementwise import TADD, TMAX, TMIN
from ptokit.isa.spec import Pipe

COMBINES = {ReduceOp.Sum: TADD, ReduceOp.Max: TMAX, ReduceOp.Min: TMIN}
Work = Callable[[Any, Any], None]


def ring(group: Any, trigger: Any, other: Any, ctx: Any, tile: str, work: Work) -> None:
    """Store the kernel's own part where it is asked to, then ring the gate."""
    if not ctx.target.is_device:
        work(group, other)
        return
    if not 0 <= trigger.selfIdx < group.nranks:
        raise ctx.fail(
            "self-index",
            "selfIdx of the trigger is the index of a member",
            got=[("selfIdx", trigger.selfIdx), ("members", group.nranks)],
        )
    is_root = trigger.selfIdx == group.rootIdx
    if trigger.inputSource == CcuInputSource.AivStored:
        gathers = ctx.insn.name in ("comm.TGATHER", "comm.TREDUCE")
        if gathers or is_root:
            with ctx.staging(tile) as stage:
                stage.order(Pipe.V, Pipe.MTE3, 0)
                stage.store(0, group[trigger.selfIdx] if gathers else other)
            ctx.machine.sync.barrier(Pipe.MTE3, ctx.site)
    gate = ctx.gates.setdefault((ctx.insn.name, group.addresses), {})
    if trigger.selfIdx in gate:
        raise ctx.fail(
            "gate",
            "a member rings once per collective",
            got=[("selfIdx", trigger.selfIdx), ("members that rang", sorted(gate))],
            fix="wait until the collective is complete before ringing again",
        )
    gate[trigger.selfIdx] = (group, other, work)
    if len(gate) == group.nranks:
        del ctx.gates[ctx.insn.name, group.addresses]
        members, tensor, todo = gate[group.rootIdx]
        todo(members, tensor)


def _part(tensor: Any, shape: Dims) -> Any:
    return tensor.numpy()[tuple(slice(0, n) for n in shape)]


def broadcast(group: Any, src: Any) -> None:
    """Copy the source to every member."""
    values = src.numpy().copy()
    for member in group:
        _part(member, src.shape)[...] = values


def gather(group: Any, dst: Any) -> None:
    """Stack the members in the destination."""
    values = np.concatenate([member.numpy() for member in group], axis=3)
    _part(dst, stacked(group.shape, group.nranks))[...] = values


def scatter(group: Any, src: Any) -> None:
    """Divide the source among the members."""
    rows = group.shape[3]
    values = _part(src, stacked(group.shape, group.nranks)).copy()
    for index, member in enumerate(group):
        member.numpy()[...] = values[..., index * rows : (index + 1) * rows, :]


def reduction(op: ReduceOp) -> Work:
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

    return reduce


__all__ = ["COMBINES", "broadcast", "gather", "reduction", "ring", "scatter"]
