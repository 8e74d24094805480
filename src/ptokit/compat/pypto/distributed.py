"""`pypto.language.distributed`: several devices, windows that all of them see, and signals.

The ranks are those of a world of this package: each runs what the host's function has dispatched to
it, and waits where it waits for a signal of another one.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType, SimpleNamespace
from typing import Any, cast

from ptokit.base.comm_enums import NotifyOp, WaitCmp
from ptokit.base.diagnostics import PtoError, fail
from ptokit.base.entry import public
from ptokit.base.enums import AtomicType
from ptokit.base.layout import Array
from ptokit.compat.pypto import tiles
from ptokit.compat.pypto.annotations import Annotation
from ptokit.compat.pypto.dispatch import in_force
from ptokit.frontend.comm_api import TGET, TNOTIFY, TPUT, TWAIT
from ptokit.frontend.comm_types import Signal, SymmetricWindow, get_rank_id
from ptokit.machine.objects import pointer
from ptokit.values.memory import view_of


class Window:
    """`pld.window(buffer, shape)`: an array of each rank; on a device it is that of its own."""

    def __init__(self, buffer: SymmetricWindow, shape: Sequence[int]) -> None:
        self.parts = tuple(each.reshape(tuple(shape)) for each in buffer)
        for part in self.parts:
            _windows[id(part)] = self

    def own_part(self) -> Array:
        return self.parts[get_rank_id()]


_windows: dict[int, Window] = {}  # by the arrays, which their windows keep


def _window(tensor: Any, name: str) -> Window:
    found = _windows.get(id(tensor))
    if found is None:
        raise fail(
            "pypto.dispatch",
            f"pld.{name} is of a window: an array that every rank has",
            got=[("given", type(tensor).__name__)],
            fix="pld.window(pld.alloc_window_buffer(shape, dtype=...), shape) on the host",
        )
    return found


def _outside(name: str) -> PtoError:
    return fail(
        "pypto.dispatch",
        f"pld.{name} outside of a function under @pl.jit.host",
        fix="run the host's function: its configuration says which devices there are",
    )


@public
def world_size() -> int:
    """How many devices take part."""
    now = in_force()
    if now is None or now.world is None:
        raise _outside("world_size")
    return now.world.size


@public
def alloc_window_buffer(shape: Sequence[int], dtype: Any, **_: object) -> SymmetricWindow:
    """Memory at the same place of every rank."""
    now = in_force()
    if now is None or now.world is None:
        raise _outside("alloc_window_buffer")
    return now.world.window(tuple(shape), dtype)


@public
def window(buffer: SymmetricWindow, shape: Sequence[int], dtype: Any = None) -> Window:
    """A view of it."""
    return Window(buffer, shape)


@public
def get_comm_ctx(tensor: Any) -> Window:
    """What rank and number of ranks are asked of."""
    return _window(tensor, "get_comm_ctx")


def _rank(context: Any = None) -> int:
    return get_rank_id()


def _ranks(context: Window) -> int:
    return len(context.parts)


@public
def remote_load(data: Any, peer: int, offsets: Sequence[Any], shape: Sequence[int]) -> Any:
    """A tile of another rank's part."""
    return tiles.load(_window(data, "tile.remote_load").parts[peer], offsets, shape)


@public
def remote_store(tile: Any, data: Any, peer: int, offsets: Sequence[Any], **_: object) -> Any:
    """Write a tile to another rank's part."""
    tiles.store(tile, offsets, _window(data, "tile.remote_store").parts[peer])
    return data


def _staging(part: Array) -> Any:
    rows, cols = (1, *part.shape)[-2:]
    return tiles.create_tile((rows, cols), view_of(part).spec.dtype).tile


@public
def put(dst: Any, peer: int, src: Any, atomic: AtomicType = AtomicType.AtomicNone) -> Any:
    """Copy what this rank has to another one."""
    there = _window(dst, "tensor.put").parts[peer]
    TPUT(view_of(there), view_of(src), _staging(src), atomicType=atomic)
    return dst


@public
def get(dst: Any, peer: int, src: Any) -> Any:
    """Copy what another rank has."""
    there = _window(src, "tensor.get").parts[peer]
    TGET(view_of(dst), view_of(there), _staging(dst))
    return dst


def _signal(part: Array, offsets: Sequence[int]) -> Any:
    place = 0
    for at, size in zip(offsets, part.shape, strict=True):
        place = place * size + at
    return Signal(pointer(part) + place)


@public
def notify(
    signal: Any, peer: int, offsets: Sequence[int], value: int, op: NotifyOp = NotifyOp.Set
) -> None:
    """Change a signal of another rank."""
    there = _window(signal, "system.notify").parts[peer]
    cast("Any", TNOTIFY)(_signal(there, offsets), value, op)


@public
def wait(signal: Any, offsets: Sequence[int], expected: int, cmp: WaitCmp = WaitCmp.GE) -> None:
    """Wait for a signal of this rank."""
    cast("Any", TWAIT)(_signal(signal, offsets), expected, cmp)


@public
def barrier(signal: Any) -> Any:
    """Every rank waits for all others: each has a row of the signals of each."""
    me, ranks = get_rank_id(), _ranks(_window(signal, "tensor.barrier"))
    for peer in range(ranks):
        if peer != me:
            notify(signal, peer, [me, 0], 1, NotifyOp.AtomicAdd)
    for other in range(ranks):
        if other != me:
            wait(signal, [other, 0], 1, WaitCmp.GE)
    return signal


class Part(ModuleType):
    """A module of which what is not here is refused by name."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise AttributeError(f"{self.__name__} has no {name} here")


def _filled(name: str, **members: Any) -> ModuleType:
    found = Part(name)
    vars(found).update(members)
    return found


def module() -> ModuleType:
    """`pypto.language.distributed`."""
    name = "pypto.language.distributed"
    compared = SimpleNamespace(**{each.name.title(): each for each in WaitCmp})
    atomic = SimpleNamespace(None_=AtomicType.AtomicNone, Add=AtomicType.AtomicAdd)
    return _filled(
        name,
        AtomicType=atomic,
        DistributedTensor=Annotation("DistributedTensor"),
        NotifyOp=NotifyOp,
        WaitCmp=compared,
        alloc_window_buffer=alloc_window_buffer,
        get_comm_ctx=get_comm_ctx,
        nranks=_ranks,
        rank=_rank,
        system=_filled(f"{name}.system", notify=notify, wait=wait),
        tensor=_filled(f"{name}.tensor", barrier=barrier, get=get, put=put),
        tile=_filled(f"{name}.tile", remote_load=remote_load, remote_store=remote_store),
        window=window,
        world_size=world_size,
    )
