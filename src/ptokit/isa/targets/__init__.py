"""The targets: memory spaces, layouts, pipes and the ways they are ordered, as data.

Four devices with their exact rules, and `cpu`, the permissive profile that applies only the rules
common to all. A capacity or an alignment can be overridden under its macro name, as a compiler
flag would: `TARGETS["a2a3"].override({"PTO_UBUF_SIZE_BYTES": 262144})`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import Generic, TypeVar

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import UsageError, fail
from ptokit.base.dtypes import DType, dtype
from ptokit.base.enums import Direction, TileType
from ptokit.base.namedtuple import NamedTuple
from ptokit.base.spelling import meant
from ptokit.isa.effects import Pipe, Reach
from ptokit.isa.targets.defines import Defines, parse_defines

KIB = 1024
T = TypeVar("T")


@dataclass(frozen=True)
class Space:
    """A memory space of a core, as one kind of tile sees it. Capacity 0: it does not exist."""

    tile_type: TileType
    memory: str  # the name on the TASSIGN page
    size_macro: str
    align_macro: str
    capacity: int
    alignment: int = 32


class End(NamedTuple):
    """The pipes with which one end of a FIFO moves its data, waits and signals."""

    data: Pipe
    wait: Pipe
    signal: Pipe


@dataclass(frozen=True)
class FifoRules:
    """How the FIFOs between the cube core and its vector cores work on a target."""

    directions: tuple[Direction, ...]
    is_direct: bool = False  # unless a direction says GM, entries go into the consumer's memory
    wait_stops_scalar: bool = False  # else only the pipe that goes on with the data
    pairs_cores: bool = False  # both vector cores take part in every entry, split or not
    pop_frees: bool = False  # the pop of a tile gives the slot back, and TFREE has nothing to do
    tracks_slots: bool = False  # each slot is followed by itself, with counters that never overflow
    packs_local_slots: bool = False  # local slots lie as close as the tiles that are popped
    leaves_index: bool = False  # the caller of a TMPipe moves from entry to entry

    def end(self, is_cube: bool, is_producer: bool, is_direct: bool) -> End:
        """The pipes of one end; `is_direct`: the entry goes into the consumer's memory."""
        if is_producer:
            pipe = Pipe.FIX if is_cube else Pipe.MTE3
        elif not is_direct:
            pipe = Pipe.MTE2
        else:
            pipe = Pipe.MTE1 if is_cube else Pipe.V
        return End(pipe, Pipe.S if self.wait_stops_scalar else pipe, pipe)


PIPES_OF: Mapping[str, tuple[Pipe, ...]] = MappingProxyType(
    {  # what each kind of core has
        "cube": (Pipe.S, Pipe.M, Pipe.MTE1, Pipe.MTE2, Pipe.MTE3, Pipe.FIX),
        "vector": (Pipe.S, Pipe.V, Pipe.MTE2, Pipe.MTE3),
        "mix": tuple(p for p in Pipe if p is not Pipe.ALL),
    }
)


TILE_LIBRARY = "PTO_TILE_LIBRARY"  # the macro that chooses between them


@dataclass(frozen=True, eq=False)
class Target:
    """One device, or the permissive profile."""

    name: str
    title: str
    spaces: Mapping[TileType, Space]
    left_layout: str  # fractal order of TileLeft: ZZ or NZ
    dtypes: frozenset[DType]
    acc_types: tuple[str, ...]
    barriers: frozenset[Pipe]  # the pipes that can be drained by themselves
    overtaken: frozenset[Pipe]  # those whose instructions may complete in any order
    overlapped: frozenset[Pipe] = frozenset()  # and those in which one begins before the last ends
    lands_in_order: frozenset[Pipe] = frozenset()  # of these, whose writes never change places
    # Bytes in one stretch of which a reader of all of it stays behind its writer.
    long_stretch: int | None = None
    tf32_bits: int = 0  # mantissa bits that the cube's reduced f32 mode keeps; 0: no such mode
    fifos: FifoRules | None = None
    core_signals: Reach | None = None  # how cores of a cluster signal each other
    has_urma: bool = True  # the second engine of asynchronous transfers between devices
    needs_signal_base: bool = False  # their signals need an address first (set_ffts_base_addr)
    pipes: Mapping[str, tuple[Pipe, ...]] = field(
        default_factory=lambda: PIPES_OF  # of each kind of core
    )
    event_ids: int = 8  # per ordered pair of pipes
    has_buffer_ids: bool = False  # a compiler may order pipes with get_buf and rls_buf
    core_flags: int = 16  # counters of a core that other cores raise
    reserved_flags: range = range(11, 15)  # those of them that SYNCALL uses
    writes_whole_blocks: bool = False  # vector moves fill up the last 32-byte block of a row
    register_sets: int = 1  # of the image-to-column engine's repeat and padding registers
    # What the device's compiler defines, and beside it for each kind of core; none: it compiles no
    # C++ for this device.
    cpp_macros: tuple[str, ...] = ()
    core_macros: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    has_vector_registers: bool = False  # that programs name: micro-operations (isa/micro)
    is_device: bool = True  # else the permissive profile
    # Whether the assembler's own library of tile operations is compiled in instead of the C++ one;
    # None: it has none for this device. They agree but in what is not asserted.
    tile_library: bool | None = None
    overrides: Mapping[str, int] = field(default_factory=dict[str, int])

    @cached_property
    def unordered(self) -> frozenset[Pipe]:
        """The pipes in which a dependent instruction needs a barrier."""
        return self.overtaken | self.overlapped

    def override(self, values: Defines | None) -> Target:
        """Return this target with capacities or alignments replaced by macro name.

        The same overrides give the same object, so that what is cached by target is found again.
        """
        read = parse_defines(values)
        new = sorted((n, v) for n, v in read.items() if self.overrides.get(n) != v)
        return _overridden(self, tuple(new)) if new else self

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[object, ...]:
        """In another process it is the one of that process: targets are told apart by identity."""
        return target, (self.name, dict(self.overrides))


@lru_cache(maxsize=256)
def _overridden(target: Target, values: tuple[tuple[str, int], ...]) -> Target:
    spaces = dict(target.spaces)
    macros = {m for s in spaces.values() for m in (s.size_macro, s.align_macro)}
    library = target.tile_library
    for macro, value in values:
        if macro == TILE_LIBRARY and library is not None:
            library = bool(value)
            continue
        if macro not in macros:
            raise fail(
                "unknown-macro",
                f"{macro} is not a memory macro",
                fix=meant(macro, macros) or "one of " + ", ".join(sorted(macros)),
                kind=UsageError,
            )
        if value < 0 or ("ALIGN" in macro and value < 1):
            raise fail("bad-macro", f"{macro}={value} is not a size", kind=UsageError)
        for tile_type, space in spaces.items():
            if space.size_macro == macro:
                spaces[tile_type] = replace(space, capacity=value)
            elif space.align_macro == macro:
                spaces[tile_type] = replace(space, alignment=value)
    merged = MappingProxyType({**target.overrides, **dict(values)})
    return replace(target, spaces=MappingProxyType(spaces), tile_library=library, overrides=merged)


# Capacities in KiB. The permissive profile has room for whatever fits some device.
_CAPACITY: str = """
           memory      macro       align   a2a3   a5  kirin9030  kirinx90   cpu
Vec        UB          UBUF        UBUF     192  256        128       128   512
Mat        L1          CBUF        CBUF     512  512        512      1024  1024
Left       L0A         L0A         L0A       64   64         32        64    64
Right      L0B         L0B         L0B       64   64         32        64    64
Acc        L0C         L0C         L0C      128  256         64       128   256
Bias       Bias        BIAS        BIAS       1    4          1         1     4
Scaling    FBuffer     FBUF        FBUF       2    4          7         6     7
ScaleLeft  L0A-scales  SCALELEFT   L0A        0    4          0         0     4
ScaleRight L0B-scales  SCALERIGHT  L0B        0    4          0         0     4
"""


def _spaces(name: str) -> Mapping[TileType, Space]:
    lines: list[list[str]] = [line.split() for line in _CAPACITY.strip().splitlines()]
    head, *rows = lines
    column = head.index(name) + 1
    return MappingProxyType(
        {
            TileType[kind]: Space(
                TileType[kind],
                memory,
                f"PTO_{macro}_SIZE_BYTES",
                f"PTO_{align}_ALIGN_BYTES",
                int(capacities[column - 4]) * KIB,
            )
            for kind, memory, macro, align, *capacities in rows
        }
    )


def _dtypes(names: str) -> frozenset[DType]:
    return frozenset(dtype(n) for n in names.split())


_TRANSFERS = frozenset({Pipe.MTE2, Pipe.MTE3})  # whose transfers may overtake each other
_LOADS = frozenset({Pipe.MTE2})
_CUBE = frozenset({Pipe.M, Pipe.MTE1, Pipe.FIX})
_PLAIN = (Direction.DIR_C2V, Direction.DIR_V2C, Direction.DIR_BOTH)
_ANY = (*_PLAIN, Direction.DIR_C2V_GM, Direction.DIR_V2C_GM, Direction.DIR_BOTH_GM)

_INTS = "i8 u8 i16 u16 i32 u32 i64 u64"
_KIRIN_TYPES = _INTS + " f16 f32"
_A2A3_TYPES = _KIRIN_TYPES + " bf16 i4"
_A5_TYPES = _KIRIN_TYPES + " bf16 i4 f8e4m3 f8e5m2 f8e8m0 hif8 f4e2m1x2 f4e1m2x2"


def _core_macros(arch: str) -> Mapping[str, tuple[str, ...]]:
    kinds = {"vector": "VEC", "cube": "CUBE"}
    return MappingProxyType(
        {kind: (f"__DAV_{word}__", f"__DAV_{arch}_{word}__") for kind, word in kinds.items()}
    )


A2A3 = Target(
    name="a2a3",
    title="Atlas A2/A3",
    spaces=_spaces("a2a3"),
    left_layout="ZZ",
    dtypes=_dtypes(_A2A3_TYPES),
    acc_types=("f32", "i32"),
    barriers=frozenset(Pipe),
    overtaken=_TRANSFERS,
    overlapped=frozenset({Pipe.V}),
    lands_in_order=_LOADS,
    long_stretch=15 * 256 + 1,  # more than 15 repeats of the vector unit
    fifos=FifoRules(_PLAIN, wait_stops_scalar=True, pairs_cores=True, pop_frees=True),
    core_signals=Reach.CLUSTER,
    needs_signal_base=True,
    has_urma=False,
    writes_whole_blocks=True,
    tf32_bits=11,
    cpp_macros=("__CCE_AICORE__=220", "__NPU_ARCH__=2201", "MEMORY_BASE", "PTO_NPU_ARCH_A2A3"),
    core_macros=_core_macros("C220"),
)
A5 = Target(
    name="a5",
    tile_library=False,
    title="Ascend 950",
    has_vector_registers=True,
    spaces=_spaces("a5"),
    left_layout="NZ",
    dtypes=_dtypes(_A5_TYPES),
    acc_types=("f32", "i32"),
    barriers=_TRANSFERS,
    overtaken=_TRANSFERS,
    lands_in_order=_LOADS,
    fifos=FifoRules(_ANY, is_direct=True, packs_local_slots=True, leaves_index=True),
    core_signals=Reach.CORE,
    has_buffer_ids=True,
    tf32_bits=10,
    register_sets=2,
    cpp_macros=("__CCE_AICORE__=310", "__NPU_ARCH__=3101", "REGISTER_BASE", "PTO_NPU_ARCH_A5"),
    core_macros=_core_macros("C310"),
)
KIRIN9030 = Target(
    name="kirin9030",
    title="Kirin 9030",
    spaces=_spaces("kirin9030"),
    left_layout="NZ",
    dtypes=_dtypes(_KIRIN_TYPES),
    acc_types=("f16", "i32"),
    barriers=_TRANSFERS | _CUBE,
    overtaken=_TRANSFERS,
    cpp_macros=("__NPU_ARCH__=3113", "REGISTER_BASE", "PTO_NPU_ARCH_KIRIN9030"),
)
KIRINX90 = Target(
    name="kirinx90",
    title="Kirin X90",
    spaces=_spaces("kirinx90"),
    left_layout="ZZ",
    dtypes=_dtypes(_KIRIN_TYPES),
    acc_types=("f16", "i32"),
    barriers=_TRANSFERS | _CUBE,
    overtaken=_TRANSFERS,
    cpp_macros=("__NPU_ARCH__=3003", "REGISTER_BASE", "PTO_NPU_ARCH_KIRINX90"),
)
CPU = Target(
    name="cpu",
    is_device=False,
    title="permissive profile",
    spaces=_spaces("cpu"),
    left_layout="NZ",
    dtypes=_dtypes(_A5_TYPES + " hif4x2"),
    acc_types=("f32", "i32", "f16"),
    barriers=frozenset(),
    overtaken=frozenset(),
    fifos=FifoRules(_ANY, tracks_slots=True),
    register_sets=2,
    cpp_macros=("__CPU_SIM",),
    core_macros=_core_macros("CPU"),
)

TARGETS: Mapping[str, Target] = MappingProxyType(
    {t.name: t for t in (A2A3, A5, KIRIN9030, KIRINX90, CPU)}
)


ALIASES = {"a2": "a2a3", "a3": "a2a3"}  # as the public assembler calls them


def target(name: str | Target, defines: Defines | None = None) -> Target:
    """Look a target up by name, with overrides if any; an unknown one is a clear error."""
    if isinstance(name, Target):
        return name.override(defines)
    asked = str(name).lower()
    found = TARGETS.get(ALIASES.get(asked, asked))
    if found is None:
        raise fail(
            "unknown-target",
            f"there is no target {name!r}",
            fix=meant(str(name), TARGETS) or "one of " + ", ".join(TARGETS),
            kind=UsageError,
        )
    return found.override(defines)


class PerTarget(Generic[T]):
    """A fact of one instruction that differs between targets: `PerTarget(0, a2a3=1)[target]`.

    `kirin` stands for both Kirin targets. What holds of a device whatever it executes is a field of
    `Target` instead.
    """

    def __init__(self, otherwise: T, **values: T) -> None:
        if "kirin" in values:
            values = dict.fromkeys(("kirin9030", "kirinx90"), values.pop("kirin")) | values
        self._values = values
        self._otherwise = otherwise

    def __getitem__(self, target: Target) -> T:
        return self._values.get(target.name, self._otherwise)
