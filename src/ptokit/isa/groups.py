"""Groups of ranks as the rules see them: one view of global memory per member, and a root."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ptokit.base.dataclass import dataclass
from ptokit.base.dtypes import DType
from ptokit.base.entry import public
from ptokit.base.enums import Layout
from ptokit.base.tensors import GlobalSpec
from ptokit.isa.facts import Unknown


@public
class Group:
    """What can be asked of a group; members are views, or only their types in a sample."""

    operand_kind = "parallel_group"
    views: Sequence[Any]
    rootIdx: int

    @property
    def nranks(self) -> int:
        return len(self.views)

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The extents of every member."""
        return tuple(view.shape for view in self.views)

    @property
    def strides(self) -> tuple[tuple[int, ...], ...]:
        """The strides of every member, in elements."""
        return tuple(view.stride for view in self.views)

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents of a member; they are equal in a legal group."""
        root = self.rootIdx if 0 <= self.rootIdx < self.nranks else 0
        return self._member("shape", root).shape

    @property
    def dtype(self) -> DType:
        return self._spec("dtype").dtype

    @property
    def layout(self) -> Layout:
        return self._spec("layout").layout

    def _spec(self, what: str) -> GlobalSpec:
        first = self._member(what, 0)
        return getattr(first, "spec", first)

    def _member(self, what: str, number: int) -> Any:
        """The member that is asked for something all of them have."""
        if not self.views:
            raise self._lacks(what)
        return self.views[number]

    def _lacks(self, what: str) -> Exception:
        """What is raised where a group without members is asked; rules know `Unknown`."""
        return Unknown(what)

    @property
    def key(self) -> tuple[Any, ...]:
        """What calls depend on: the types of the members, not where they lie."""
        return (self.rootIdx, *(view.key for view in self.views))

    def __len__(self) -> int:
        return self.nranks

    def __getitem__(self, index: int) -> Any:
        return self.views[index]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.views)


@dataclass(frozen=True)
class ViewGroup(Group):
    """A group of living views, as a program in text has it."""

    views: tuple[Any, ...]  # type: ignore[assignment]
    rootIdx: int = 0


@dataclass(frozen=True)
class GroupSpec(Group):
    """The type of a group: what a sample says instead of a living one."""

    views: tuple[GlobalSpec, ...]  # type: ignore[assignment]
    rootIdx: int = 0

    def __str__(self) -> str:
        first = str(self.views[0]) if self.views else "nothing"
        return f"{self.nranks} x {first}, root {self.rootIdx}"
