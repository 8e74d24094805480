"""Synchronisation as the machine sees it: signals leave pipes, waits hold them up.

This is the eager form, for one instruction stream: work is complete when it is issued, so a wait
either finds its signal or would never end, and says so. `machine/scheduler.py` puts real queues
behind the same calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ptokit.base.diagnostics import Note, PtoError, fail, where
from ptokit.base.location import Location, Site
from ptokit.base.tensors import GlobalSpec
from ptokit.isa.effects import (
    Barrier,
    Buffer,
    Cached,
    Clean,
    CoreFlag,
    Effect,
    Fence,
    Flag,
    Load,
    Meeting,
    Pipe,
    Reach,
    Signal,
    Wait,
)
from ptokit.isa.spec import View
from ptokit.machine.calls import bind_global, global_pattern
from ptokit.machine.cluster import SECOND, SUBBLOCKS, Role, cluster_of
from ptokit.machine.core import Core
from ptokit.machine.faults import WouldBlock
from ptokit.machine.flags import Latch, Semaphore, Token
from ptokit.machine.objects import GlobalObject, Pointer
from ptokit.machine.ranks import wait_for_others

if TYPE_CHECKING:
    from ptokit.machine.machine import Machine
    from ptokit.machine.providers import Context

UNLIMITED = 1 << 30

Place = Site | Location
FlagKey = tuple[Pipe, Pipe, int]  # the pipe that raises it, the pipe it holds, its number


class Sync:
    """Flags, barriers and cross-core signals of one machine."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine

    @property
    def core(self) -> Core:
        return self.machine.core

    def execute(
        self, effects: Iterable[Effect], given: Mapping[str, Any], site: Place, ctx: Any = None
    ) -> Any:
        """Do what the effects of an operation say; `given` are its operands by name."""
        for effect in effects:
            match effect:
                case Signal(pipe, Flag(src, dst, id)):
                    self.set_flag(src, dst, id, site)
                case Wait(pipe, Flag(src, dst, id)):
                    self.wait_flag(src, dst, id, site)
                case Barrier(pipe):
                    self.barrier(pipe, site)
                case Wait(pipe, Buffer(id)):
                    self.get_buffer(pipe, id, site)
                case Signal(pipe, Buffer(id)):
                    self.release_buffer(pipe, id, site)
                case Signal(pipe, CoreFlag(id, Reach.CORE)):
                    self.to_core(pipe, id, site)
                case Signal(pipe, CoreFlag(id, reach)):
                    self.cross_core(pipe, reach.value, id, site)
                case Wait(pipe, CoreFlag(id, Reach.CORE)):
                    self.wait_core(pipe, id, site)
                case Wait(pipe, CoreFlag(id)):
                    self.wait_device(id, site, checked=True)
                case Wait(pipe, Meeting(kinds, counter, used)):
                    if counter:
                        self.meet_at_counter(given[counter], used, kinds, site)
                    else:
                        self.meet(kinds, site)
                case Clean(operand):
                    at = given[operand] if operand else None
                    self.clean_cache(at.data() if isinstance(at, GlobalObject) else at, site)
                case Fence():
                    self.fence(site)
                case Load(register, operand):
                    self.core.registers[register] = given[operand]
                case Cached(operand, writes):
                    value = np.asarray(given["value"]) if writes else None
                    return self.scalar_access(given[operand], given["offset"], value, ctx)
                case _:
                    pass
        return None

    # ---- the two primitives, and work in between ------------------------------------------------

    def signal(self, pipe: Pipe, semaphores: Iterable[Semaphore], site: Place) -> None:
        """Give a token to each semaphore when the earlier work of the pipe is complete."""
        token = Token(site, f"{pipe.name} of the {self.core.name}")
        for semaphore in semaphores:
            self.give(semaphore, token)

    def wait(
        self,
        pipe: Pipe,
        semaphores: Sequence[Semaphore],
        what: str,
        site: Place,
        hint: str = "",
        early: bool = False,
    ) -> None:
        """Hold later work of the pipe until every semaphore has a token; take them.

        `early`: as the program is written, nothing has given the token yet.
        """
        missing = [s for s in semaphores if not s.ready]
        if missing:
            raise blocked(what, missing, site, hint)
        for semaphore in semaphores:
            semaphore.take()

    def perform(self, pipe: Pipe, call: Any, operands: Sequence[Any], site: Place) -> None:
        """Execute a call on a pipe."""
        self.machine.executor.execute(call, operands, site)

    def barrier(self, pipe: Pipe, site: Place) -> None:
        """Order all earlier work of a pipe (ALL: of the core) before all later work."""

    def give(self, semaphore: Semaphore, token: Token) -> None:
        """Leave a token, unless the counter behind the semaphore would overflow."""
        if semaphore.full:
            raise overflow(semaphore, token)
        semaphore.put(token)

    def complain(self, code: str, message: str, site: Place, **more: Any) -> None:
        """Report what only a checked run reports; eager use lets it pass."""

    def opened(self, pipe: Any) -> None:
        """A FIFO was made; a checked run looks at it."""

    # ---- flags inside a core --------------------------------------------------------------------

    def flag(self, src: Pipe, dst: Pipe, id: int) -> Semaphore:
        """The flag that `src` raises for `dst`."""
        flags = self.core.flags
        found = flags.get((src, dst, id))
        if found is None:
            title = f"the flag {src.name} -> {dst.name} {id} of the {self.core.name}"
            found = flags[src, dst, id] = Semaphore(title, UNLIMITED)
        return found

    def set_flag(self, src: Pipe, dst: Pipe, id: int, site: Place) -> None:
        """Raise a flag behind the earlier work of `src`."""
        self._legal(src, site)
        self._legal(dst, site)
        flag = self.flag(src, dst, id)
        # Pairs are made as the program is written: the second pipe may lag behind in time.
        if flag.balance > 0:
            self.set_twice(flag, site)
        else:
            flag.balance += 1
            flag.last_set = site
            self.signal(src, (flag,), site)

    def set_twice(self, flag: Semaphore, site: Place) -> None:
        """A flag is raised again before anything waits for it."""
        raise double_set(flag, site)

    def wait_flag(self, src: Pipe, dst: Pipe, id: int, site: Place) -> None:
        """Hold `dst` until the flag is raised, and lower it."""
        self._legal(src, site)
        self._legal(dst, site)
        what = f"wait_flag(PIPE_{src.name}, PIPE_{dst.name}, EVENT_ID{id})"
        hint = f"set_flag(PIPE_{src.name}, PIPE_{dst.name}, EVENT_ID{id}) must come first"
        flag = self.flag(src, dst, id)
        self.wait(dst, (flag,), what, site, hint, early=flag.balance < 1)
        flag.balance -= 1

    def flags(self, acts: Sequence[tuple[bool, FlagKey, Place]]) -> None:
        """Raise (True) and wait for flags, one after the other."""
        for raises, key, site in acts:
            (self.set_flag if raises else self.wait_flag)(*key, site)

    def get_buffer(self, pipe: Pipe, id: int, site: Place) -> None:
        """Acquire a buffer: wait for the pipes that acquired it earlier to release it."""
        held = self.core.buffers
        mine = held.get((id, pipe))
        # As the program is written: the pipe itself may lag behind.
        if mine is not None and not mine.balance:
            raise fail(
                "get-buf-twice",
                f"a pipe holds a buffer at most once: PIPE_{pipe.name} has buffer {id} already",
                fix="release it first: rls_buf(pipe, id)",
                site=site,
            )
        others = [s for (other, p), s in held.items() if other == id and p != pipe]
        if others:
            hint = f"rls_buf of buffer {id} must come first on the pipe that holds it"
            self.wait(pipe, others, f"get_buf(PIPE_{pipe.name}, {id})", site, hint)
        title = f"the release of buffer {id} by {pipe.name} of the {self.core.name}"
        held[id, pipe] = Latch(title, 1)

    def release_buffer(self, pipe: Pipe, id: int, site: Place) -> None:
        """Release a buffer behind the earlier work of the pipe."""
        mine = self.core.buffers.get((id, pipe))
        if mine is None or mine.balance:
            raise fail(
                "rls-buf-unheld",
                f"PIPE_{pipe.name} releases buffer {id}, which it does not hold",
                fix="pair every rls_buf with one get_buf on the same pipe",
                site=site,
            )
        mine.balance += 1
        self.signal(pipe, (mine,), site)

    # ---- flags between the cores of a cluster ---------------------------------------------------

    def role_here(self) -> Role:
        """The part the current core plays: "cube", or the number of a vector core."""
        return "cube" if self.core.role == "cube" else self.core.subblock

    def to_cluster(self, pipe: Pipe, flag: int, site: Place) -> None:
        """Signal mode 2: the cube core reaches both vector cores, a vector core the cube core."""
        cluster, role = cluster_of(self.core), self.role_here()
        if role == "cube":
            reached = [cluster.semaphore(s, flag) for s in range(SUBBLOCKS)]
        else:
            assert isinstance(role, int)
            reached = [cluster.semaphore("cube", flag + SECOND * role)]
        self.signal(pipe, reached, site)

    def to_group(self, pipe: Pipe, mode: int, flag: int, site: Place) -> None:
        """Signal modes 0 and 1: every core of the group gets a token once all have signalled.

        Alone, a core is the whole group.
        """
        mine = cluster_of(self.core).semaphore(self.role_here(), flag)
        self.signal(pipe, (mine,), site)

    def cross_core(self, pipe: Pipe, mode: int, flag: int, site: Place) -> None:
        """Signal other cores: the cluster (mode 2), or a group that meets (modes 0 and 1)."""
        self._legal(pipe, site)
        self._based("ffts_cross_core_sync", site)
        if mode == 2:
            self.to_cluster(pipe, flag, site)
        else:
            self.to_group(pipe, mode, flag, site)

    def wait_device(self, flag: int, site: Place, checked: bool = False) -> None:
        """Stop the scalar unit until the cross-core flag has come (the cube core: from both)."""
        if checked:
            self._based("wait_flag_dev", site)
        cluster, role = cluster_of(self.core), self.role_here()
        waited = [cluster.semaphore(role, flag)]
        if role == "cube" and self._reduced(flag):
            waited.append(cluster.semaphore(role, flag + SECOND))
        self.wait(Pipe.S, waited, f"wait_flag_dev({flag})", site)

    def _based(self, name: str, site: Place) -> None:
        if self.machine.target.needs_signal_base and "FFTS_BASE" not in self.core.registers:
            raise fail(
                "E12",
                f"{name} needs the base address of the cross-core signals",
                fix="call set_ffts_base_addr(addr) at the start of the kernel",
                site=site,
                target=self.machine.target.name,
            )

    def _legal(self, pipe: Pipe, site: Place) -> None:
        """A core signals and waits only on pipes it has."""
        pipes = self.machine.target.pipes[self.core.kind]
        if pipe not in pipes:
            have = ", ".join(f"PIPE_{p.name}" for p in pipes)
            raise fail(
                "E5",
                f"a {self.core.kind} core has no PIPE_{pipe.name}",
                got=[("core", self.core.name)],
                fix=f"its pipes are {have}",
                site=site,
                target=self.machine.target.name,
            )

    def _reduced(self, flag: int) -> bool:
        """Whether the flag of the cube core is raised by its vector cores, not by other cubes."""
        target = self.machine.target
        return target.core_signals is Reach.CLUSTER and flag != target.reserved_flags[0]

    def to_core(self, pipe: Pipe, flag: int, site: Place) -> None:
        """Signal one core of the cluster: vector core 1 is meant by flag + 16."""
        cluster, role = cluster_of(self.core), self.role_here()
        if role == "cube":
            reached = cluster.semaphore(flag // SECOND, flag % SECOND)
        else:
            assert isinstance(role, int)
            reached = cluster.semaphore("cube", flag + SECOND * role)
        self.signal(pipe, (reached,), site)

    def wait_core(self, pipe: Pipe, flag: int, site: Place) -> None:
        """Hold one pipe until a core of the cluster has signalled."""
        waited = cluster_of(self.core).semaphore(self.role_here(), flag)
        self.wait(pipe, (waited,), f"wait_intra_block(PIPE_{pipe.name}, {flag})", site)

    def meet(self, kinds: tuple[str, ...], site: Place) -> None:
        """Meet all cores of these kinds; alone there is nobody to wait for."""
        self.barrier(Pipe.ALL, site)

    def meet_at_counter(
        self, workspace: GlobalObject, used: int, kinds: tuple[str, ...], site: Place
    ) -> None:
        """Meet `used` cores (0: all of these kinds) at a counter in global memory."""
        counter = workspace.numpy().reshape(-1)
        counter[0] += 1
        self.barrier(Pipe.ALL, site)
        if used > 1 and counter[0] % used:
            what = f"SYNCALL (soft) waits for {used} cores and"
            raise blocked(what, [], site, "the other cores must enter it as well")

    # ---- signals in global memory ---------------------------------------------------------------

    def until(
        self,
        ready: Callable[[], bool],
        what: str,
        site: Place,
        seen: Callable[[], list[tuple[str, object]]],
    ) -> None:
        """Stop the scalar unit until a condition on memory holds, while other devices go on.

        `seen` tells what is there instead, should it never hold.
        """
        if not ready() and not wait_for_others(ready):
            raise fail(
                "would-block",
                f"{what} would wait forever: nothing else runs that could signal it",
                got=seen(),
                fix="notify it first, or run all ranks at once with World.run",
                site=site,
                kind=WouldBlock,
            )

    def announce(self, address: int, site: Place) -> None:
        """A signal was written: whoever sees it knows what this core knows."""

    def heed(self, addresses: Iterable[int], site: Place) -> None:
        """Signals were seen."""

    # ---- scalar accesses to global memory -------------------------------------------------------

    def clean_cache(self, at: Pointer | None, site: Place) -> None:
        """Write back and forget one line of the scalar data cache, or all of them."""

    def fence(self, site: Place) -> None:
        """Wait for earlier scalar stores and write-backs."""

    def scalar_access(self, place: Any, offset: int, value: Any, ctx: Context) -> Any:
        """Read (value None) or write one element of global memory."""
        at = place.data() if isinstance(place, GlobalObject) else place
        kind, insn = at.dtype, ctx.insn
        spec = GlobalSpec.of(kind, (1, 1, 1, 1, 1), (1, 1, 1, 1, 1))
        tensor = GlobalObject(spec, at + offset, spec.shape, spec.stride)
        declared = insn.operand("ptr")
        if value is not None:
            declared = replace(declared, role="out")
        pattern = global_pattern(tensor, View.VALID, declared)
        access = bind_global(pattern, tensor, insn, ctx.site)
        ctx.touched.append(access)
        if value is None:
            return access.array()[0, 0].item()
        if not kind.is_integer and value.dtype.kind not in "iuf":
            raise ctx.fail("value", f"{insn.name} takes a number", got=[("value", value)])
        access.array()[...] = value.astype(kind.np)
        return None


def blocked(what: str, missing: Sequence[Semaphore], site: Place, hint: str = "") -> PtoError:
    """The error of a wait that nobody else can end."""
    return fail(
        "would-block",
        f"{what} would wait forever: nothing else runs that could signal it",
        got=[(s.title, f"{s.given} signalled, {s.taken} taken") for s in missing],
        fix=hint or "run the other side first: give the signal before waiting for it",
        site=site,
        kind=WouldBlock,
    )


def overflow(semaphore: Semaphore, token: Token) -> PtoError:
    """The error of a cross-core signal too many."""
    return fail(
        "E11",
        f"{semaphore.title} overflows: its counter has 4 bits, 15 signals are pending",
        fix="let the other core take the signals, or give fewer than 16 ahead of it",
        site=token.site,
        notes=[Note("the last signal that is still pending", where(semaphore.tokens[-1].site))],
    )


def double_set(flag: Semaphore, site: Place) -> PtoError:
    """The error of a flag that is set again before the wait."""
    return fail(
        "E2",
        f"{flag.title} is set twice without a wait in between",
        fix="wait for it before setting it again, or use another event id",
        site=site,
        notes=[Note("the set that is still pending", where(flag.last_set))],
    )
