"""What a body may ask of the machine beside its operands: a parameter named after the service.

    def TDIV(dst: Array, src0: Array, src1: Array, target: Target) -> None: ...

`target`, `ops` (the facts of the operands) and `pipe` are known before the instruction runs; the
others are objects of these shapes, which whoever executes the instruction provides. A body that
finds its operands' values wrong raises `Refused`; the line of the program is added by the executor.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from ptokit.base.enums import TileType
from ptokit.base.layout import Array
from ptokit.isa.effects import Pipe

CONSTANT = frozenset({"target", "ops", "pipe"})
SERVICES = CONSTANT | {"registers", "poison", "places", "beyond", "core", "world", "unit"}

Registers = dict[str, Any]  # the configuration registers of a core


class Refused(Exception):  # noqa: N818 - named after what happened
    """The values of the operands break a rule that only a running program can see."""

    def __init__(
        self, code: str, message: str, *, got: Iterable[tuple[str, object]] = (), fix: str = ""
    ) -> None:
        super().__init__(message)
        self.code, self.message, self.got, self.fix = code, message, tuple(got), fix


class Poison(Protocol):
    """Which elements of the operands hold defined values, for bodies that do not treat all alike.

    Operands are named; regions and masks are those of the array that the body was handed.
    """

    def poison(self, name: str, rows: slice, cols: slice) -> None:
        """Declare a logical region undefined once the instruction is over."""
        ...

    def poison_where(self, name: str, where: Array) -> None:
        """Declare single elements undefined once the instruction is over."""
        ...

    def undefined(self, name: str) -> Array | None:
        """Which elements are undefined; None: not one."""
        ...

    def demand(self, name: str, part: tuple[slice, slice]) -> None:
        """Refuse to read a part unless all of it is defined."""
        ...

    def demand_where(self, name: str, where: Array) -> None:
        """Refuse to read these elements unless all of them are defined."""
        ...

    def peek(self, name: str) -> tuple[Array, Array]:
        """The whole of a tile as it is, and which elements hold a defined value."""
        ...

    def fill(self, name: str, rows: slice, cols: slice, value: Any) -> None:
        """Write a logical region beside the one the body was handed."""
        ...

    def leave(self, name: str, array: Array) -> None:
        """Put back what the operand held: this run does not write it."""
        ...


class Places(Protocol):
    """Where the operands lie, beyond the addresses that the facts tell."""

    def same_storage(self, a: str, b: str) -> bool:
        """Whether two tiles lie in one memory; in auto mode each has one of its own."""
        ...

    def described(self, name: str) -> str:
        """An operand with its place, for a message."""
        ...


class Beyond(Protocol):
    """What values lead to that lies outside the operands: the memory they are in goes on."""

    def lead(self, name: str, places: Array, error: Refused, origin: str, otherwise: str) -> None:
        """Values lead to elements so many behind the first one of a tile, which breaks a rule.

        It is raised where these lie outside the memory, or the policy makes an error of a rule with
        this origin; else it is a warning, and the body does what `otherwise` says.
        """
        ...

    def read(self, name: str, places: Array) -> Array:
        """The elements so many behind the first one of a tile, whatever they belong to."""
        ...

    def write(self, name: str, places: Array, values: Array) -> None:
        """Write elements so many behind the first one of a tile; of equal places the last stays."""
        ...


class Elsewhere(Protocol):
    """The region of an operand in the memory of another core."""

    def write(self, values: Array) -> None: ...
    def mark_defined(self) -> None: ...
    def poison(self, where: Array) -> None: ...


class Core(Protocol):
    """The core the instruction runs on, its memories, and the vector cores of its cluster."""

    @property
    def subblock(self) -> int:
        """The number of a vector core in its cluster."""
        ...

    def memory(self, loc: TileType) -> Any:
        """The memory in which tiles of this space lie."""
        ...

    def on_vector_core(self, name: str, subblock: int) -> Elsewhere | None:
        """The region of a Vec operand in the memory of a vector core; None: it lies there already.

        Tiles that were placed automatically, and those of a core on its own, have no other side.
        """
        ...


class World(Protocol):
    """The devices a program runs on, and the windows of memory they share."""

    @property
    def rank(self) -> int | None:
        """The device the program runs on, among others; None when it is alone."""
        ...

    @property
    def rank_count(self) -> int | None:
        """How many devices there are; None when the program knows of no others."""
        ...

    @property
    def gates(self) -> dict[Any, Any]:
        """The gates of the collective unit."""
        ...

    def rank_of(self, tensor: Any) -> int | None:
        """The device in whose window a view lies; None when it lies in no window."""
        ...

    def staging(self, *names: str) -> Any:
        """The tiles through which data goes from one device to another."""
        ...

    def same_view(self, a: Any, b: Any) -> bool:
        """Whether two views of global memory are one and the same."""
        ...

    def view(self, name: str) -> Array:
        """The five-dimensional array of a GlobalTensor operand."""
        ...

    def raw(self, name: str, nbytes: int, skip: int = 0) -> Array:
        """So many bytes of a GlobalTensor operand, `skip` bytes past its pointer."""
        ...

    def post(self, session: Any, nbytes: int, skip: int, peer: int) -> Any:
        """Let the engine of a session copy so many bytes from srcGlobalData to dstGlobalData.

        They begin `skip` bytes past the pointers. The event tells when they have arrived.
        """
        ...

    def copy_through(self, session: Any, nbytes: int) -> None:
        """Copy them on the pipes of the core, by way of the scratch of the session."""
        ...

    def known(self) -> Any:
        """What the scalar unit knows to be complete, for whoever is told of it."""
        ...

    def collect(self, job: Any, group: Any, own: Any, behind: Sequence[Any]) -> None:
        """Let the collective unit move data, behind what the members knew to be complete."""
        ...

    def stop_for(self, pipe: Pipe) -> None:
        """Hold the scalar unit until a pipe has done its work."""
        ...

    def drain(self, pipe: Pipe) -> None:
        """Complete the earlier work of a pipe (ALL: of the core) before its later work."""
        ...

    def pause(self) -> None:
        """Let a random schedule turn to another device."""
        ...
