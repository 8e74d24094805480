"""Worlds of simulated devices in one process: ranks, symmetric windows, signals and groups.

    world = World(4)
    data = world.window((16, 64), float32)      # one array per rank, data[r] is that of rank r
    done = world.signals()

    def program(rank):
        right = (rank + 1) % get_rank_num()
        TPUT(data.tensor(right), GlobalTensor(mine), stage)
        TNOTIFY(done.signal(right), 1, NotifyOp.Set)
        TWAIT(done.signal(), 1, WaitCmp.EQ)

    world.run(program)

`run` lets the ranks go on whenever one of them waits. `with world.rank(2):` drives one rank by
hand instead; a wait whose signal has not come is then an error.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cache, partial
from inspect import signature
from typing import TYPE_CHECKING, Any, ClassVar
from weakref import finalize

import numpy as np

from ptokit.base.comm_enums import CcuInputSource
from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import ProgramError, fail, usage_error
from ptokit.base.dtypes import DType, dtype, f32, i32
from ptokit.base.entry import public, public_record
from ptokit.base.layout import Array
from ptokit.base.tensors import GlobalSpec
from ptokit.base.tiles import DYNAMIC
from ptokit.frontend.arguments import arguments, index, template
from ptokit.frontend.session import device
from ptokit.frontend.tensor_types import GlobalTensor, Shape, Stride, global_class
from ptokit.isa.facts import Unknown
from ptokit.isa.groups import Group
from ptokit.isa.targets import Target
from ptokit.isa.targets.defines import Defines
from ptokit.machine.objects import GlobalObject, Pointer, pointer
from ptokit.machine.ranks import Ranks, being, here
from ptokit.tasks.executor import AUTO, Executor, Jobs

if TYPE_CHECKING:
    from ptokit.frontend.rank_actors import Kind, RankActors
    from ptokit.machine.apart import RanksApart

MOST_RANKS = 64


# ---- worlds ------------------------------------------------------------------------------------


@public
class World:
    """A number of devices that reach each other's memory."""

    def __init__(
        self,
        size: int,
        target: str | Target = "a2a3",
        mode: str = "manual",
        *,
        defines: Defines | None = None,
        jobs: Jobs = 1,
    ) -> None:
        if not isinstance(size, int) or not 1 <= size <= MOST_RANKS:
            raise usage_error(
                "world-size", f"a world has 1 to {MOST_RANKS} ranks", got=[("ranks", size)]
            )
        self.size, self._mode = size, mode
        self._windows: list[SymmetricWindow] = []
        self._ranks = Ranks(size)
        self._actors: RankActors | None = None
        self._executor = _placed(jobs)
        self._devices: list[device] = []
        for member in self._ranks.members:
            with being(member):
                self._devices.append(device(target, mode, defines=defines))
            if self._executor is not None:  # only to know what the devices are
                break

    def rank(self, number: int) -> AbstractContextManager[Any]:
        """Be one of the ranks for a block of code: its machine is in force, and stays as it is."""
        _check_rank(number, self.size)
        if self._executor is not None:
            raise usage_error(
                "world-rank",
                "the ranks of this world are actors of a cluster, where their programs run",
                fix="world.run(program), or a World without jobs",
            )
        return self._being(number)

    @contextmanager
    def _being(self, number: int) -> Generator[Any, None, None]:
        with being(self._ranks.members[number]), self._devices[number] as machine:
            yield machine
        if not self._ranks.is_running:
            self._ranks.history.settle()

    def run(self, program: Callable[..., Any], *args: Any, seed: int | None = None) -> list[Any]:
        """Run `program(rank, *args)` on all ranks at once and return what each of them returns.

        A rank runs until it waits for a signal; then another one goes on. With a seed the ranks
        alternate at random, the same way for the same seed. On a cluster they run at the same time,
        and are judged in that order; what they change is their windows, nothing else comes back.
        """
        with template("run", "world.run(program, *args)", (program, *args), "arguments"):
            signature(program).bind(0, *args)  # program(rank, *args)
        if self._executor is not None:
            return self._afar(self._executor).run(self, program, args, seed)
        programs = [partial(self._on, number, program, args) for number in range(self.size)]
        return self._ranks.run(programs, seed)

    def _on(self, number: int, program: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        """Run a program on one of the ranks, which has its turn."""
        with self._being(number):
            return program(number, *args)

    def _afar(self, executor: Executor) -> RankActors:
        """The ranks on the cluster; they begin with the first run."""
        if self._actors is None:
            from ptokit.frontend.rank_actors import Kind, RankActors

            machine = self._devices[0].machine
            kind = Kind(self.size, machine.target, self._mode, machine.policy, replica)
            self._actors = actors = RankActors(kind, executor)
            finalize(self, actors.close)
        return self._actors

    def window(
        self, shape: int | Sequence[int], kind: DType | Any = f32, fill: Any = 0
    ) -> SymmetricWindow:
        """Memory at the same place of every rank: one array of this shape per rank."""
        with template("window", "world.window(shape, dtype)", (shape, kind), "arguments"):
            chosen = dtype(kind)
            arrays = tuple(np.full(shape, fill, chosen.np) for _ in range(self.size))
        return self._add(arrays, chosen)

    def _add(self, arrays: tuple[Array, ...], kind: DType) -> SymmetricWindow:
        """Let one array per rank be a window."""
        self._windows.append(SymmetricWindow(self, self._ranks.add_window(arrays), kind))
        return self._windows[-1]

    @property
    def windows(self) -> tuple[SymmetricWindow, ...]:
        """All windows, signals among them, in the order in which they were made."""
        return tuple(self._windows)

    def signals(self, *shape: int) -> SymmetricWindow:
        """Signals of every rank, all 0: one, or a grid of them."""
        return self.window(shape or (1,), i32)

    def remote(self, view: Any, number: int) -> Any:
        """The same place in the window of another rank: of a view, or of a pointer."""
        _check_rank(number, self.size)
        is_pointer = isinstance(view, Pointer)
        tensor = _word(view) if is_pointer else view
        found = self._ranks.locate(tensor) if isinstance(tensor, GlobalObject) else None
        if found is None:
            raise fail(
                "remote",
                "only what lies in a window of the world exists on the other ranks",
                got=[("view", view)],
                fix="allocate it with world.window(shape, dtype)",
            )
        window, _, offset = found
        start = pointer(window[number], tensor.spec.dtype)
        at = Pointer(start.buffer, tensor.spec.dtype, start.offset + offset)
        if is_pointer:
            return at
        spec = tensor.spec
        sizes = Shape[spec.shape](*tensor.shape), Stride[spec.stride](*tensor.stride)
        return global_class(spec)(at, *sizes)

    def __len__(self) -> int:
        return self.size

    def __repr__(self) -> str:
        return f"<world of {self.size} ranks>"


@public_record
@dataclass(eq=False, repr=False)
class SymmetricWindow:
    """One array per rank, all of one shape, each in the memory of its rank."""

    world: World
    arrays: tuple[Array, ...]
    dtype: DType

    def __getitem__(self, rank: int) -> Array:
        return self._of(rank)

    def __iter__(self) -> Any:
        return iter(self.arrays)

    def __len__(self) -> int:
        return len(self.arrays)

    @property
    def local(self) -> Array:
        """The array of the rank that is running."""
        return self.arrays[get_rank_id()]

    def _of(self, rank: int | None) -> Array:
        number = get_rank_id() if rank is None else rank
        _check_rank(number, len(self.arrays))
        return self.arrays[number]

    def tensor(self, rank: int | None = None) -> GlobalTensor:
        """The window of a rank, by default of the one that is running, as a GlobalTensor."""
        array = self._of(rank)
        missing = 5 - array.ndim
        shape = (1,) * missing + array.shape
        stride = (array.size,) * missing + tuple(s // array.itemsize for s in array.strides)
        return global_class(GlobalSpec.of(self.dtype, shape, stride))(array)

    def signal(self, rank: int | None = None, index: int = 0) -> GlobalTensor:
        """One signal of a rank, by default of the one that is running."""
        return Signal(pointer(self._of(rank)) + index)

    def group(self, root: int = 0, ranks: Iterable[int] | None = None) -> ParallelGroup:
        """The windows of all ranks, or of some, as a group; `root` is an index into it."""
        chosen = range(len(self.arrays)) if ranks is None else ranks
        return ParallelGroup([self.tensor(rank) for rank in chosen], root)

    def __repr__(self) -> str:
        array = self.arrays[0]
        shape = "x".join(map(str, array.shape))
        return f"<window of {len(self.arrays)} ranks, {self.dtype.name} {shape}>"


def _placed(jobs: Jobs) -> Executor | None:
    """The cluster on which ranks are actors; None: they are coroutines of this process."""
    executor = Executor.of(jobs)
    if executor.is_here:
        return None
    if not (executor.address or executor.jobs == AUTO):
        raise usage_error(
            "world-jobs",
            "ranks take turns in this process, or are actors of a cluster, one each",
            got=[("jobs", executor.jobs)],
            fix='World(n, jobs="auto"), or jobs=Executor(address="HOST:6379")',
        )
    return executor


def replica(kind: Kind, ranks: RanksApart) -> World:
    """The world of an actor, in which only one of the ranks can be."""
    world = World.__new__(World)
    world.size, world._mode, world._windows = kind.size, kind.mode, []
    world._ranks, world._actors, world._executor = ranks, None, None
    with being(ranks.members[ranks.number]):
        own = device(kind.target, kind.mode)
    own.use(kind.policy)
    world._devices = [own] * kind.size
    return world


def _check_rank(number: int, size: int) -> None:
    if not 0 <= number < size:
        raise fail("rank", f"a rank of this world lies in 0..{size - 1}", got=[("rank", number)])


def get_rank_id() -> int:
    """The number of the device that is running; 0 outside any world."""
    rank = here()
    return 0 if rank is None else rank.number


def get_rank_num() -> int:
    """How many devices the world has; 1 outside any world."""
    rank = here()
    return 1 if rank is None else rank.ranks.size


# ---- signals and groups ------------------------------------------------------------------------


GlobalSignal = GlobalTensor  # a signal region of any shape
Signal = GlobalTensor[i32, Shape[1, 1, 1, 1, 1], Stride[1, 1, 1, 1, 1]]


@public
class _Signal2DMeta(type):
    sizes: tuple[int, int] | None = None

    def __getitem__(cls, given: tuple[int, int]) -> type[Signal2D]:
        with template("Signal2D", "Signal2D[Rows, Cols]", given):
            rows, cols = map(index, arguments(given))
        return _grid_class(rows, cols)

    def __call__(cls, memory: Any, stride: int | None = None) -> GlobalTensor:
        if cls.sizes is None:
            raise fail(
                "signal-type", "a grid of signals has a size", fix="Signal2D[Rows, Cols](ptr)"
            )
        rows, cols = cls.sizes
        kind = GlobalTensor[i32, Shape[1, 1, 1, rows, cols], Stride[1, 1, 1, DYNAMIC, 1]]
        return kind(memory, None, Stride[1, 1, 1, DYNAMIC, 1](cols if stride is None else stride))


class Signal2D(metaclass=_Signal2DMeta):
    """`Signal2D[Rows, Cols](ptr)` is a dense grid of signals, `(ptr, stride)` one of wider rows."""


@cache
def _grid_class(rows: int, cols: int) -> type[Signal2D]:
    members = {"sizes": (rows, cols), "made_by": (_grid_class, (rows, cols))}
    return _Signal2DMeta(f"Signal2D[{rows}, {cols}]", (Signal2D,), members)


class _NoMembersError(ProgramError, Unknown):
    """What is not known of a group because it has no members, which is the user's mistake."""


@public
class ParallelGroup(Group):
    """The buffers of the members of a collective, and the index of the root among them.

    `ParallelGroup(tensors, root)`, or `ParallelGroup(tensors, size, root)` as in C++. Indices count
    inside the group; which rank a member is follows from where its buffer lies.
    """

    def __init__(self, tensors: Iterable[GlobalObject], *size_and_root: int) -> None:
        with template("ParallelGroup", "ParallelGroup(tensors, root)", tensors, "arguments"):
            given = tuple(tensors)
            if not all(isinstance(each, GlobalObject) for each in given):
                raise TypeError("the members are GlobalTensors")
        if len(size_and_root) > 1:
            size, root = size_and_root
            if not 0 <= size <= len(given):
                raise fail(
                    "group-size",
                    "a group has at most as many members as tensors are given",
                    got=[("size", size), ("tensors", len(given))],
                )
            given = given[:size]
        else:
            root = size_and_root[0] if size_and_root else -1
        kinds = {(t.spec.dtype, t.spec.layout) for t in given}
        if len(kinds) > 1:
            raise fail(
                "group-type",
                "all members of a group have one type",
                got=[(f"member {k}", t.spec) for k, t in enumerate(given)],
            )
        self.views = given
        self.rootIdx = int(root)

    def _lacks(self, what: str) -> Exception:
        """What is raised where a group without members is asked: a mistake of the program."""
        return fail(
            "group-size",
            f"a group without members has no {what}",
            fix="give it tensors: ParallelGroup([tensor, ...], root)",
            kind=_NoMembersError,
        )

    @classmethod
    def Create(cls, tensors: Iterable[GlobalObject], size: int, root: int) -> ParallelGroup:
        """Make a group of the first `size` tensors."""
        return cls(tensors, size, root)

    @property
    def addresses(self) -> tuple[int, ...]:
        """Where the buffers lie."""
        return tuple(v.data().buffer.base + v.data().offset for v in self.views)

    def GetRootIdx(self) -> int:
        """The index of the root."""
        return self.rootIdx

    def GetSize(self) -> int:
        """The number of members."""
        return self.nranks

    def empty(self) -> bool:
        """Whether the group has no members."""
        return self.nranks == 0

    def __getitem__(self, index: int) -> GlobalObject:
        if not 0 <= index < self.nranks:
            raise fail(
                "group-index",
                "the index of a member lies inside the group",
                got=[("index", index), ("members", self.nranks)],
            )
        return self.views[index]

    def __repr__(self) -> str:
        return f"<group of {self.nranks}, root {self.rootIdx}>"


@public_record
@dataclass
class CcuTriggerContext:
    """How a kernel rings the collective unit: the gate, which member it is, whence the input."""

    ckeSlotVA: int = 0
    mask: int = 1
    selfIdx: int = 0
    inputSource: CcuInputSource = CcuInputSource.HostManaged
    key: ClassVar[str] = "CcuTriggerContext"  # calls do not depend on which one it is
    operand_kind: ClassVar[str] = "ccu_trigger_context"


def _word(at: Pointer) -> GlobalObject:
    spec = GlobalSpec.of(at.dtype, (1, 1, 1, 1, 1), (1, 1, 1, 1, 1))
    return GlobalObject(spec, at, spec.shape, spec.stride)


__all__ = [
    "CcuTriggerContext",
    "GlobalSignal",
    "ParallelGroup",
    "Signal",
    "Signal2D",
    "SymmetricWindow",
    "World",
    "get_rank_id",
    "get_rank_num",
]
