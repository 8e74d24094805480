"""What a legality rule may look at: the facts of each operand, whatever it comes from.

The simulator knows every size of an operand, a text file only some. Both hand the verifier the same
kind of object; asking one for something it does not know raises `Unknown`, and the verifier then
leaves that rule to a later stage.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any

from ptokit.base.convs import CONV_PARAMETERS
from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import brief
from ptokit.base.dtypes import DType
from ptokit.base.enums import TileType
from ptokit.base.tensors import ConvSpec, GlobalSpec
from ptokit.base.tiles import DYNAMIC, TileSpec

if TYPE_CHECKING:
    from ptokit.isa.targets import Target


class Unknown(Exception):  # noqa: N818 - not an error: the answer is simply not known yet
    """The value is decided at run time and is not known here."""


@dataclass(frozen=True)
class TileFacts:
    """A tile operand: its type and, where known, its valid region and address.

    Every property of `TileSpec` (loc, dtype, rows, cols, layout, is_row_major, nbytes, ...) can be
    asked of the facts directly.
    """

    spec: TileSpec
    valid: tuple[int | None, int | None] = (None, None)
    address: int | None = None
    lease: int = 0  # a storage of its own, while nothing else decides where it lies; 0: the memory
    home: TileType | None = None  # the memory in which its address is used, where that is another
    kind: str = field(default="tile", init=False)

    # Asked most often; the others take the longer way through `__getattr__`.

    @property
    def loc(self) -> TileType:
        return self.spec.loc

    @property
    def dtype(self) -> DType:
        return self.spec.dtype

    @property
    def vr(self) -> int:
        """Valid rows in force."""
        return _known(self.valid[0], self.spec.valid_row)

    @property
    def vc(self) -> int:
        """Valid columns in force."""
        return _known(self.valid[1], self.spec.valid_col)

    @property
    def addr(self) -> int:
        """Byte address inside the memory space."""
        return _known(self.address, DYNAMIC)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.spec, name)

    def __str__(self) -> str:
        return str(self.spec)


@dataclass(frozen=True)
class GlobalFacts:
    """A GlobalTensor operand. `shape`/`stride` are the sizes in force, `static_*` the type's."""

    spec: GlobalSpec
    known_shape: tuple[int | None, ...] = (None,) * 5
    known_stride: tuple[int | None, ...] = (None,) * 5
    kind: str = field(default="global", init=False)

    @property
    def static_shape(self) -> tuple[int, ...]:
        return self.spec.shape

    @property
    def shape(self) -> tuple[int, ...]:
        return _all_known(self.known_shape, self.spec.shape)

    @property
    def stride(self) -> tuple[int, ...]:
        return _all_known(self.known_stride, self.spec.stride)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.spec, name)

    def __str__(self) -> str:
        return str(self.spec)


@dataclass(frozen=True)
class ConvFacts:
    """A convolution tile operand."""

    spec: ConvSpec
    known_shape: tuple[int | None, ...] = ()
    address: int | None = None
    lease: int = 0
    home: None = field(default=None, init=False)
    kind: str = field(default="conv", init=False)
    parameters: Mapping[str, Any] = field(default_factory=dict[str, Any], hash=False)

    @property
    def shape(self) -> tuple[int, ...]:
        return _all_known(self.known_shape or (None,) * len(self.spec.shape), self.spec.shape)

    @property
    def addr(self) -> int:
        return _known(self.address, DYNAMIC)

    def __getattr__(self, name: str) -> Any:
        """The image-to-column parameters, `o.src.filterH`, and all properties of the type."""
        if name not in CONV_PARAMETERS:
            return getattr(self.spec, name)
        if name not in self.parameters:
            raise Unknown
        return self.parameters[name]

    def __str__(self) -> str:
        return str(self.spec)


@dataclass(frozen=True)
class ScalarFacts:
    """A scalar operand: a Python number, or a typed value of a program whose value is unknown."""

    dtype: DType | None = None
    known: Any = None
    kind: str = field(default="scalar", init=False)

    @property
    def value(self) -> Any:
        if self.known is None:
            raise Unknown
        return self.known

    def __str__(self) -> str:
        return "?" if self.known is None else shown(self.known)


@dataclass(frozen=True)
class ObjectFacts:
    """An operand that is neither data nor a number: a TPipe, a group, a session."""

    obj: Any
    kind: str = "object"

    def __getattr__(self, name: str) -> Any:
        return getattr(self.obj, name)


Facts = TileFacts | GlobalFacts | ConvFacts | ScalarFacts | ObjectFacts


class Ops:
    """The operands of one instruction, by name, with its template arguments and the target.

    `ops.dst.rows` reads a fact; an operand left out of the call is None. `ops.attrs["Phase"]` is a
    template argument.
    """

    def __init__(
        self, operands: dict[str, Facts | None], attrs: dict[str, Any], target: Target, mode: str
    ) -> None:
        # The operands are attributes: rules and bodies ask for little else.
        self.__dict__.update(operands)
        self._operands = operands
        self.attrs = attrs
        self.target = target
        self.mode = mode

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    def __getitem__(self, name: str) -> Any:
        return self._operands[name]

    def __iter__(self) -> Iterator[tuple[str, Facts | None]]:
        return iter(self._operands.items())


def _known(now: int | None, static: int) -> int:
    if now is not None:
        return now
    if static == DYNAMIC:
        raise Unknown
    return static


def _all_known(now: tuple[int | None, ...], static: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(map(_known, now, static))


_UNSEEN = (".kind", ".lease", ".home")


class Recorder:
    """Stands in for `Ops` and notes every fact a predicate looks at.

    This is how a failed rule reports the values that broke it: nobody writes them down per rule.
    """

    def __init__(self, subject: Any, seen: dict[str, str], path: str = "") -> None:
        object.__setattr__(self, "_subject", subject)
        object.__setattr__(self, "_seen", seen)
        object.__setattr__(self, "_path", path)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._subject, name)
        return self._follow(value, f"{self._path}.{name}" if self._path else name)

    def __getitem__(self, key: Any) -> Any:
        return self._follow(self._subject[key], f"{self._path}[{key}]" if self._path else str(key))

    def _follow(self, value: Any, path: str) -> Any:
        if isinstance(value, TileFacts | GlobalFacts | ConvFacts | ScalarFacts | ObjectFacts):
            return Recorder(value, self._seen, path)
        if path in ("attrs", "target", "target.spaces"):
            return Recorder(value, self._seen, path if path == "target" else "")
        if hasattr(value, "capacity"):  # a memory space: named as people name it
            return Recorder(value, self._seen, value.memory)
        hidden = path == "mode" or path.startswith("target.") or path.endswith(_UNSEEN)
        if not callable(value) and not hidden:
            self._seen[path] = shown(value)
        return value


def shown(value: object) -> str:
    """Format a value for a message: enum members by name, everything else as it prints."""
    name = getattr(value, "name", None)
    if name is not None and isinstance(value, int):
        return f"{type(value).__name__}.{name}"
    return brief(value)
