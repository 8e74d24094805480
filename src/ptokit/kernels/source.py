"""Where kernels come from: a Python function, a function of a text, a C++ kernel.

What differs between them is how arguments are bound, and how the IR comes about.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import Diagnostic
from ptokit.base.namedtuple import NamedTuple
from ptokit.base.policy import Policy
from ptokit.ir.core import Function, Module
from ptokit.isa.targets import Target
from ptokit.passes.steps import Steps

if TYPE_CHECKING:
    from ptokit.machine.jobs import Keeper


class Asked(NamedTuple):
    """What a call asks for, or the kernel and its project where the call says nothing."""

    target: Target  # one per set of defines
    policy: Policy
    steps: Steps
    blocks: int = 1  # of a kernel whose program is known by running it


class Finished(NamedTuple):
    """A program that can run, and what is to be said of it nevertheless."""

    module: Module
    doubts: tuple[Diagnostic, ...]


class Source(Protocol):
    """Where a kernel comes from."""

    paths: ClassVar[tuple[str, ...]]  # the ways it can run, the usual one first

    @property
    def name(self) -> str: ...

    @property
    def function(self) -> Any:
        """What it is made of: a Python function, or a function of a text."""
        ...

    @property
    def file(self) -> str:
        """The file it was written in; its project may say which findings are allowed."""
        ...

    @property
    def target(self) -> Target:
        """The target it asks for, when a call names none."""
        ...

    def bind(self, args: tuple[Any, ...], consts: dict[str, Any]) -> Mapping[str, Any]:
        """The arguments by parameter; a call that does not fit is a usage error."""
        ...

    def cache_key(self, arguments: Mapping[str, Any]) -> tuple[Any, ...]:
        """All that the IR depends on, beside the target."""
        ...

    def state(self) -> Hashable | None:
        """What it finds outside, as it is now; None: that cannot be said."""
        ...

    def fits(self, target: Target) -> None:
        """Refuse a target that it cannot run on, whatever its program is."""
        ...

    def written(self, target: Target, arguments: Mapping[str, Any], blocks: int) -> Module:
        """The program as it was written, before any pass; `blocks` where that is found by a run."""
        ...

    def finished(
        self, written: Module, asked: Asked, told: list[Diagnostic] | None = None
    ) -> Module:
        """The program checked, placed and ordered: ready to run, or to be written as C++.

        `told` takes the warnings.
        """
        ...

    def programs(self, module: Module | None, arguments: Mapping[str, Any]) -> Programs:
        """What runs on which cores: the function as it stands where there is no module."""
        ...

    @property
    def text(self) -> str:
        """The whole text it is written in."""
        ...

    def sampled(self) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
        """Arguments and constants that it can be run with, as far as it says what it takes."""
        ...

    def rewritten(self, text: str) -> Source:
        """The same kernel, where its text reads otherwise; its `file` is the name of that text."""
        ...

    def recorded(self, module: Module) -> Source:
        """A kernel that issues the same where anybody can hear it, given what a run did."""
        ...

    def sent(
        self, finished: Callable[[], Module], arguments: Mapping[str, Any]
    ) -> tuple[Source, tuple[Any, ...]] | None:
        """The finished program as a text, and what it is given; None: it is a text as it stands."""
        ...


@dataclass(frozen=True)
class Programs:
    """What a launch runs."""

    cores: tuple[str, ...]
    mode: str  # "manual": the program says the order of the pipes, and it is checked
    body: Callable[[], Any] | None = None  # a Python function, called on every core; or
    function: Function | None = None  # a function of the module
    args: tuple[Any, ...] = ()  # arrays and numbers that it is given
    # Of compiled code, which may crash and runs in a process of its own.
    keeper: Keeper | None = None
    # What decides, beside the arguments, what such code does; None: anything may.
    identity: Hashable | None = None
