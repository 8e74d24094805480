"""Attributes: constant properties of operations, with their spelling.

The enumerations of the text are one table. Each has a fixed spelling: *dotted* `#pto.pipe<PIPE_V>`
or *angle* `#pto<cmp lt>`. Enumerations that the table does not list, those declared beside an
instruction among them, get the angle spelling of their own name, so every template argument can be
written.
"""

from __future__ import annotations

import re
import struct
from enum import IntEnum
from functools import cache, cached_property

from ptokit.base import comm_enums, enums
from ptokit.base.dataclass import dataclass
from ptokit.ir.types import I64, ScalarType, Type
from ptokit.isa import INSTRUCTIONS
from ptokit.isa.words import ENUMERATION, FIELD, enumerations_of, fields_of


@dataclass(frozen=True)
class IntAttr:
    """`7`, `7 : i32`; without a type it is an i64."""

    value: int
    type: Type = I64

    def __str__(self) -> str:
        return str(self.value) if self.type == I64 else f"{self.value} : {self.type}"


@dataclass(frozen=True)
class FloatAttr:
    """`1.5 : f32`; infinities and NaN as bit patterns."""

    value: float
    type: Type

    def __str__(self) -> str:
        return f"{float_text(self.value, self.type)} : {self.type}"

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, FloatAttr)
            and self.type == other.type
            and struct.pack("<d", self.value) == struct.pack("<d", other.value)
        )

    def __hash__(self) -> int:
        return hash((struct.pack("<d", self.value), self.type))


@dataclass(frozen=True)
class BoolAttr:
    """`true` or `false`."""

    value: bool

    def __str__(self) -> str:
        return "true" if self.value else "false"


@dataclass(frozen=True)
class StringAttr:
    """`"text"`."""

    value: str

    def __str__(self) -> str:
        return quoted(self.value)


@dataclass(frozen=True)
class UnitAttr:
    """An attribute that is only there: `{pto.entry}`."""

    def __str__(self) -> str:
        return "unit"


@dataclass(frozen=True)
class TypeAttr:
    """A type as a value."""

    type: Type

    def __str__(self) -> str:
        return str(self.type)


@dataclass(frozen=True)
class SymbolAttr:
    """`@name`."""

    name: str

    def __str__(self) -> str:
        return (
            f"@{self.name}"
            if re.fullmatch(r"[A-Za-z_$.][\w$.-]*", self.name)
            else (f"@{quoted(self.name)}")
        )


@dataclass(frozen=True)
class ArrayAttr:
    """`[1, 2]`, or `array<i32: 1, 2>` when it has an element type."""

    items: tuple[Attribute, ...]
    element: ScalarType | None = None

    def __str__(self) -> str:
        if self.element is None:
            return f"[{', '.join(map(str, self.items))}]"
        values = ", ".join(str(getattr(item, "value", item)) for item in self.items)
        return f"array<{self.element}{': ' if values else ''}{values}>"


@dataclass(frozen=True)
class DictAttr:
    """`{key = value}`."""

    items: tuple[tuple[str, Attribute], ...]

    def __str__(self) -> str:
        return dict_text(dict(self.items))


@dataclass(frozen=True)
class DenseAttr:
    """`dense<[1, 2]> : vector<2xi16>`; the body is kept as written."""

    body: str
    type: Type

    def __str__(self) -> str:
        return f"dense<{self.body}> : {self.type}"

    @cached_property
    def numbers(self) -> tuple[float, ...]:
        """The values in order; a splat has one."""
        words: list[str] = re.findall(r"-?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|true|false", self.body)
        return tuple(float(w) if w[0] in "-0123456789" else float(w == "true") for w in words)


@dataclass(frozen=True)
class OpaqueAttr:
    """An attribute kept as text: tile_buf_config, affine maps."""

    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class EnumAttr:
    """A member of one of the enumerations below."""

    enum: str
    value: str

    def __str__(self) -> str:
        if enumeration(self.enum).is_dotted:
            return f"#pto.{self.enum}<{self.value}>"
        return f"#pto<{self.enum} {self.value}>"

    @property
    def number(self) -> int:
        return enumeration(self.enum).members[self.value]


Attribute = (
    IntAttr
    | FloatAttr
    | BoolAttr
    | StringAttr
    | UnitAttr
    | TypeAttr
    | SymbolAttr
    | ArrayAttr
    | DictAttr
    | DenseAttr
    | OpaqueAttr
    | EnumAttr
)


# ---- enumerations ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Enumeration:
    """Spelling, members with their numbers, and the class of the instruction set it stands for."""

    name: str
    is_dotted: bool
    members: dict[str, int]
    stands_for: str = ""  # the name of that class

    def spelling(self, given: str) -> str | None:
        """The member meant by a spelling, whatever its case or prefix; None when there is none."""
        if given in self.members:
            return given
        return self._folded.get(_fold(given))

    @cached_property
    def _folded(self) -> dict[str, str]:
        return {_fold(member): member for member in reversed(self.members)}

    def member_of(self, value: str) -> IntEnum:
        """The member of the instruction set's enumeration."""
        of = _class(self.stands_for)
        assert of is not None, f"{self.name} stands for no class"
        return _by_fold(of)[_fold(value)]

    def text_of(self, member: IntEnum) -> str:
        """The spelling of a member of the instruction set's enumeration."""
        wanted = _fold(member.name)
        return next(m for m in self.members if _fold(m) == wanted)


def _fold(name: str) -> str:
    return name.lower().replace("_", "").removeprefix("cast")


@cache
def _by_fold(of: type[IntEnum]) -> dict[str, IntEnum]:
    return {_fold(name): member for name, member in of.__members__.items()}


# name, spelling, enumeration of the instruction set, members (numbered from 0 unless given)
_TABLE = """
address_space    dotted -  zero gm mat left right acc vec bias scaling
pipe             dotted -  PIPE_S PIPE_V PIPE_M PIPE_MTE1 PIPE_MTE2 PIPE_MTE3 PIPE_ALL PIPE_MTE4 \
PIPE_MTE5 PIPE_V2 PIPE_FIX VIRTUAL_PIPE_MTE2_L1A VIRTUAL_PIPE_MTE2_L1B PIPE_NUM PIPE_UNASSIGNED=99
pipe_event_type  dotted -  TLOAD TSTORE_ACC TSTORE_VEC TMOV_M2L TMOV_M2S TMOV_M2B TMOV_M2V \
TMOV_V2M TMATMUL TVEC TVECWAIT_EVENT
sync_op_type     dotted -  TLOAD TSTORE_ACC TSTORE_VEC TMOV_M2L TMOV_M2S TMOV_M2B TMOV_M2V \
TMOV_V2M TMATMUL TVEC TVECWAIT_EVENT
event            dotted -  EVENT_ID0 EVENT_ID1 EVENT_ID2 EVENT_ID3 EVENT_ID4 EVENT_ID5 EVENT_ID6 \
EVENT_ID7
layout           dotted Layout  nd dn nz mx_a_zz mx_b_nn
kernel_kind      dotted -  cube vector
func_core_type   dotted -  AIC=1 AIV=2 MIX=3 AIC_OR_AIV=4
module_core_type dotted -  AIC=1 AIV=2 MIX=3
padmode          dotted -  PadNull PadFirstElem PadValue
acc_to_vec_mode  dotted AccToVecMode  single_mode_vec0 single_mode_vec1 dual_mode_split_m \
dual_mode_split_n
tinsert_mode     dotted TInsertMode  split2=2 split4=3
fence_scope      dotted FenceScope  local_memory gm all
dsb_mem          dotted -  ALL DDR UB SEQ
dcci_cache_line  dotted -  SINGLE_CACHE_LINE ENTIRE_DATA_CACHE
dcci_dst         dotted -  CACHELINE_ALL CACHELINE_UB CACHELINE_OUT CACHELINE_ATOMIC
mask_pattern     dotted MaskPattern  P0101=1 P1010=2 P0001=3 P0010=4 P0100=5 P1000=6 P1111=7
blayout          dotted BLayout  row_major col_major
slayout          dotted SLayout  none_box row_major col_major
pad_value        dotted PadValue  null zero max min
compact_mode     dotted CompactMode  null normal row_plus_one
cmp              angle  CmpMode  eq ne lt le gt ge
round_mode       angle  RoundMode  NONE RINT ROUND FLOOR CEIL TRUNC ODD CAST_RINT=7
saturation_mode  angle  SaturationMode  ON OFF
st_phase         angle  STPhase  unspecified=0 partial=2 final=3
acc_phase        angle  AccPhase  unspecified=0 partial=2 final=3
div_precision    angle  DivAlgorithm  default high_precision
exp_precision    angle  ExpAlgorithm  default high_precision
log_precision    angle  LogAlgorithm  default high_precision
pow_precision    angle  PowAlgorithm  default high_precision
recip_precision  angle  RecipAlgorithm  default high_precision
rem_precision    angle  RemAlgorithm  default high_precision
fmod_precision   angle  FmodAlgorithm  default high_precision
sqrt_precision   angle  SqrtAlgorithm  default high_precision
rsqrt_precision  angle  RsqrtAlgorithm  default high_precision
print_format     angle  PrintFormat  width8_precision4 width8_precision2 width10_precision6
atomic_type      angle  AtomicType  atomic_none atomic_add
relu_pre_mode    angle  ReluPreMode  no_relu normal_relu
gather_oob       angle  GatherOOB  undefined clamp wrap zero
scatter_atomic_op angle ScatterAtomicOp  none add max min
scatter_oob      angle  ScatterOOB  undefined skip clamp wrap
scatter_conflict angle  ScatterConflict  default last
coalesce         angle  Coalesce  row elem
quant_type       angle  QuantType  INT8_SYM INT8_ASYM MXFP8 MXFP4_E2M1
quant_scale_alg  angle  QuantScaleAlg  ocp nv
mx_group_axis    angle  -  axis0 axis1
vec_store_mode   angle  VecStoreMode  nd nz
notify_op        angle  NotifyOp  atomic_add set
wait_cmp         angle  WaitCmp  eq ne gt ge lt le
reduce_op        angle  ReduceOp  sum max min
sync_all_mode    dotted SyncAllMode  hard soft
sync_core_type   dotted SyncCoreType  aiv_only aic_only mix
"""


def _listed() -> dict[str, Enumeration]:
    found: dict[str, Enumeration] = {}
    for line in _TABLE.strip().replace("\\\n", "").splitlines():
        name, spelling, of, *members = line.split()
        numbers = {m.partition("=")[0]: i for i, m in enumerate(members)}
        numbers |= {m.partition("=")[0]: int(m.partition("=")[2]) for m in members if "=" in m}
        found[name] = Enumeration(name, spelling == "dotted", numbers, of.strip("-"))
    return found


ENUMERATIONS = _listed()
_BY_CLASS = {e.stands_for: e for e in ENUMERATIONS.values() if e.stands_for}


@cache
def enumeration_of(of: type[IntEnum]) -> Enumeration:
    """The enumeration that spells members of a class of the instruction set.

    Members the text of other tools does not know (MXFP8) keep the name they have in C++.
    """
    listed = _BY_CLASS.get(of.__name__)
    if listed is None:
        members = {member.name: int(member) for member in of}
        return Enumeration(_snake(of.__name__), False, members, of.__name__)
    known = {_fold(member) for member in listed.members}
    more = {m.name: int(m) for m in of if _fold(m.name) not in known}
    return Enumeration(listed.name, listed.is_dotted, listed.members | more, of.__name__)


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


@cache
def enumeration(name: str) -> Enumeration:
    """Look an enumeration up by its name in the text; KeyError when there is none."""
    listed = ENUMERATIONS.get(name)
    of = _class(_of_instructions()[name] if listed is None else listed.stands_for)
    return enumeration_of(of) if of is not None else ENUMERATIONS[name]


@cache
def enum_names() -> frozenset[str]:
    """The enumerations that can be written."""
    return frozenset(ENUMERATIONS) | frozenset(_of_instructions())


@cache
def _of_instructions() -> dict[str, str]:
    """Classes of template arguments, and of their fields, by the name that a text gives them.

    Those that the table lists have this name beside the one they are printed with.
    """
    every = (*INSTRUCTIONS.words(ENUMERATION), *INSTRUCTIONS.words(FIELD))
    return {_snake(name): name for name in every}


@cache
def _class(name: str) -> type[IntEnum] | None:
    """The enumeration of the instruction set that has a name."""
    if (known := vars(enums).get(name) or vars(comm_enums).get(name)) is not None:
        return known
    for insn in (*INSTRUCTIONS.called(ENUMERATION, name), *INSTRUCTIONS.called(FIELD, name)):
        every = (*enumerations_of(insn), *fields_of(insn))
        return next(kind for kind in every if kind.__name__ == name)
    return None


# ---- spelling ----------------------------------------------------------------------------------


def quoted(text: str) -> str:
    """The text as a string literal."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def float_text(value: float, type_: Type) -> str:
    """A float literal that reads back to the same value."""
    if value != value or value in (float("inf"), float("-inf")):
        return f"0x{float_bits(value, type_):0{_width(type_) // 4}X}"
    text = repr(value)
    if "e" in text and "." not in text:
        text = text.replace("e", ".0e")
    return text


def _width(type_: Type) -> int:
    return type_.bits if isinstance(type_, ScalarType) else 32


def float_bits(value: float, type_: Type) -> int:
    """The bit pattern of an infinity or NaN in a float type."""
    single = int(struct.unpack("<I", struct.pack("<f", value))[0])
    name = str(type_)
    if name == "bf16":
        return single >> 16
    if name == "f16":
        return int(struct.unpack("<H", struct.pack("<e", value))[0])
    if name == "f64":
        return int(struct.unpack("<Q", struct.pack("<d", value))[0])
    return single


def bits_of_float(type_: Type) -> int:
    """The width of the patterns that `float_of_bits` reads."""
    return {"bf16": 16, "f16": 16, "f64": 64}.get(str(type_), 32)


def float_of_bits(bits: int, type_: Type) -> float:
    """The float that a bit pattern stands for."""
    name = str(type_)
    if name == "bf16":
        return float(struct.unpack("<f", struct.pack("<I", bits << 16 & 0xFFFF_FFFF))[0])
    if name == "f16":
        return float(struct.unpack("<e", struct.pack("<H", bits & 0xFFFF))[0])
    if name == "f64":
        return float(struct.unpack("<d", struct.pack("<Q", bits))[0])
    return float(struct.unpack("<f", struct.pack("<I", bits & 0xFFFF_FFFF))[0])


def key_text(key: str) -> str:
    """An attribute's key, quoted when it is not a bare word."""
    return key if re.fullmatch(r"[A-Za-z_][\w$.]*", key) else quoted(key)


def dict_text(attrs: dict[str, Attribute]) -> str:
    """`{a = 1 : i32, pto.entry}`."""
    parts = [
        key_text(k) if isinstance(v, UnitAttr) else f"{key_text(k)} = {v}" for k, v in attrs.items()
    ]
    return "{" + ", ".join(parts) + "}"
