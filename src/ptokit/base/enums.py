"""The enumerations of the PTO vocabulary, with the names and values a kernel author writes.

They are ``IntEnum`` classes: the value is the one the instruction set fixes, so it may be
stored in a register word or printed in an attribute without a second table.
"""

from __future__ import annotations

import struct
from contextlib import suppress
from enum import EnumType, IntEnum
from operator import index
from typing import Any

from ptokit.base.diagnostics import fail
from ptokit.base.entry import public
from ptokit.base.spelling import meant


class _Named(EnumType):
    """Says which members there are when a name is none of them."""

    @public
    def __getattr__(cls, name: str) -> Any:
        members = cls.__members__
        if name in members:
            return members[name]
        if name.startswith("_"):
            raise AttributeError(name)
        near = meant(name, members, shown=lambda each: f"{cls.__name__}.{each}")
        hint = near or f"one of {', '.join(members)}"
        raise AttributeError(f"{cls.__name__} has no member {name!r}; {hint}")


class Choice(IntEnum, metaclass=_Named):
    """The base of every enumeration here."""

    @property
    def namespace(self) -> str:
        """Where C++ has it, inside `pto`."""
        return ""


class TileType(Choice):
    """Memory space of a tile (template parameter Loc)."""

    Vec = 0  # vector working memory (UB)
    Mat = 1  # cube staging memory (L1)
    Left = 2  # left matmul operand buffer (L0A)
    Right = 3  # right matmul operand buffer (L0B)
    Acc = 4  # matmul accumulator (L0C)
    Bias = 5  # bias table
    Scaling = 6  # fix-pipe parameter buffer (quantisation vectors)
    ScaleLeft = 7  # MX scale factors paired with Left (A5/A6)
    ScaleRight = 8  # MX scale factors paired with Right (A5/A6)
    Ctrl = 9  # control token carried through a scalar FIFO


class BLayout(Choice):
    """Outer order."""

    RowMajor = 0  # boxes (or elements when unboxed) advance along a row first
    ColMajor = 1  # boxes (or elements) advance down a column first


class SLayout(Choice):
    """Inner (box) order."""

    NoneBox = 0  # no inner box: plain 2-D array
    RowMajor = 1  # inside a box elements advance along the row
    ColMajor = 2  # inside a box elements advance down the column


class Layout(Choice):
    """Arrangement of a GlobalTensor or ConvTile."""

    ND = 0  # row-major view
    DN = 1  # column-major view
    NZ = 2  # fractal view, column blocks outermost
    SCALE = 3  # generic scale view (not accepted by TLOAD on any target)
    MX_A_ND = 4  # MX scales for A, plain rows, K in pairs
    MX_A_DN = 5  # MX scales for A, K pairs outermost
    MX_A_ZZ = 6  # MX scales for A, 16x2 boxes row by row
    MX_B_ND = 7  # MX scales for B, K pairs outermost then N
    MX_B_DN = 8  # MX scales for B, N outermost
    MX_B_NN = 9  # MX scales for B, 2x16 boxes column by column
    HIF4_A_ZZ = 10  # HiF4 scales for A (A6 only)
    HIF4_B_NN = 11  # HiF4 scales for B (A6 only)
    NC1HWC0 = 12  # feature map, channels split into C1 x C0
    GNC1HWC0 = 13  # grouped NC1HWC0
    NCHW = 14  # feature map, channels first
    GNCHW = 15  # grouped NCHW
    NHWC = 16  # feature map, channels last
    NDC1HWC0 = 17  # 3-D feature map with split channels
    NCDHW = 18  # 3-D feature map, channels first
    FRACTAL_Z = 19  # convolution weights
    FRACTAL_Z_S16S8 = 20  # weights for 16-bit x 8-bit kernels (declared only)
    FRACTAL_Z_3D = 21  # 3-D convolution weights
    MAX = 22  # number of members


class PadValue(Choice):
    """Pad constant of a tile."""

    Null = 0  # no padding requested
    Zero = 1  # bit pattern 0
    Max = 2  # largest value (+inf for floats)
    Min = 3  # smallest value (-inf for floats)
    # marker bit 32; a custom value is CustomBase OR the raw pattern in bits 31..0
    CustomBase = 4294967296


class CompactMode(Choice):
    """Storage packing hint."""

    Null = 0  # tile storage pitch is its capacity
    Normal = 1  # storage is packed by the valid size rounded up to the fractal (Left/Right/Acc)
    # one spare row is left between column blocks of an NZ Vec tile, to avoid bank conflicts
    RowPlusOne = 2
    RowAlignedPadding = 3  # TFILLPAD on Mat pads only rows up to the next multiple of 16


class RoundMode(Choice):
    """Conversion rounding."""

    CAST_NONE = 0  # no rounding mode requested
    CAST_RINT = 1  # nearest, ties to even
    CAST_ROUND = 2  # nearest, ties away from zero
    CAST_FLOOR = 3  # towards minus infinity
    CAST_CEIL = 4  # towards plus infinity
    CAST_TRUNC = 5  # towards zero
    CAST_ODD = 6  # to odd (Von Neumann)


class SaturationMode(Choice):
    ON = 0  # clamp on overflow (CTRL bit 59 = 0)
    OFF = 1  # wrap / propagate on overflow (CTRL bit 59 = 1)


class Atomic(Choice):
    """The base of what says how an access changes memory in place."""

    @property
    def combines(self) -> str:
        """What makes new elements of old ones: add, max, min; empty where they are overwritten."""
        name = self.name.removeprefix("Atomic").removesuffix("_").lower()
        return "" if name == "none" else name


class AtomicType(Atomic):
    AtomicNone = 0  # plain write
    AtomicAdd = 1  # read-add-write, one element at a time


class ReluPreMode(Choice):
    NoRelu = 0
    NormalRelu = 1  # max(x,0) in the fix pipe


class STPhase(Choice):
    """Unit-flag phase of a fix-pipe store (value goes to the unit-flag field)."""

    Unspecified = 0  # unit-flag synchronisation off
    Partial = 2  # check the unit flag, keep it
    Final = 3  # check the unit flag and release the accumulator


class AccPhase(Choice):
    """Unit-flag phase of TMATMUL."""

    Unspecified = 0
    Unknown = 0  # alias of Unspecified
    Partial = 2  # more accumulation follows
    Final = 3  # last accumulation; the result may be drained


class AccToVecMode(Choice):
    """Destination of an Acc to Vec move."""

    SingleModeVec0 = 0  # whole result to vector core 0
    SingleModeVec1 = 1  # whole result to vector core 1
    DualModeSplitM = 2  # upper half of the rows to core 0, lower half to core 1
    DualModeSplitN = 3  # left half of the columns to core 0, right half to core 1


class MaskPattern(Choice):
    """TGATHER/TSCATTER mask form; the bit string is read from its right end."""

    P0101 = 1  # 1st of every 2
    P1010 = 2  # 2nd of every 2
    P0001 = 3  # 1st of every 4
    P0010 = 4  # 2nd of every 4
    P0100 = 5  # 3rd of every 4
    P1000 = 6  # 4th of every 4
    P1111 = 7  # all


class CmpMode(Choice):
    EQ = 0
    NE = 1
    LT = 2
    LE = 3
    GT = 4
    GE = 5


class TileSplitAxis(Choice):
    TILE_NO_SPLIT = 0  # one vector core (AIV0) takes everything
    TILE_UP_DOWN = 1  # AIV0 upper rows, AIV1 lower rows; even row count
    TILE_LEFT_RIGHT = 2  # AIV0 left columns, AIV1 right columns; even column count
    TILE_UP_DOWN_ODD = 3  # odd row count, AIV0 takes one row more
    TILE_LEFT_RIGHT_ODD = 4  # odd column count, AIV0 takes one column more


class Direction(Choice):
    UNDEFINED = 0
    DIR_C2V = 1  # cube produces, vector consumes
    DIR_V2C = 2  # vector produces, cube consumes
    DIR_BOTH = 3  # two rings
    DIR_V2C_CTRL = 4  # scalar control token
    DIR_C2V_GM = 5  # A5 only: through GM
    DIR_V2C_GM = 6  # A5 only: through GM
    DIR_BOTH_GM = 7  # A5 only


class FIFOType(Choice):
    """Legacy TMPipe only."""

    GM_FIFO = 0  # ring in global memory
    VEC_FIFO = 1  # ring in UB
    MAT_FIFO = 2  # ring in L1
    CTRL_FIFO = 3  # scalar token


class VecCubeRatio(Choice):
    """Legacy TMPipe only."""

    V1C1_VEC0 = 0  # one vector core, number 0
    V1C1_VEC1 = 1  # one vector core, number 1
    V2C1_VECS = 2  # two vector cores per cube core


class TFillPadMode(Choice):
    Normal = 0  # same shape, copies
    InPlace = 1  # same storage
    Expand = 2  # destination may be larger


class SetFmatrixMode(Choice):
    FMATRIX_A_AUTO = 0  # TIMG2COL programs register set A itself
    FMATRIX_B_AUTO = 1  # TIMG2COL programs register set B itself
    FMATRIX_A_MANUAL = 2  # user programs set A beforehand
    FMATRIX_B_MANUAL = 3  # user programs set B beforehand


class TInsertMode(Choice):
    SPLIT2 = 2  # split the transfer into two bursts
    SPLIT4 = 3  # split the transfer into four bursts


class GatherOOB(Choice):
    Undefined = 0  # no bounds test
    Clamp = 1  # index >= cap -> cap-1
    Wrap = 2  # index mod cap
    Zero = 3  # write 0


class ScatterOOB(Choice):
    Undefined = 0  # no bounds test
    Skip = 1  # drop the element/row
    Clamp = 2  # index >= cap -> cap-1
    Wrap = 3  # index mod cap


class ScatterAtomicOp(Atomic):
    None_ = 0
    Add = 1
    Max = 2
    Min = 3


class LayoutMode_t(Choice):
    """Fix-pipe output arrangement (TPUSH config)."""

    NZ2NZ = 0
    NZ2ND = 1
    NZ2DN = 2


class ClipReluMode_t(Choice):
    NOCLIP_RELU = 0
    CLIP_RELU = 1


class DequantType(Choice):
    SCALAR = 0
    TENSOR = 1


class QuantMode_t(Choice):
    NoQuant = 0
    F322F16 = 1  # float to half
    VREQ8 = 2  # int32 to b8, per column
    REQ8 = 3  # int32 to b8, one scale
    VDEQF16 = 4  # int32 to half, per column
    DEQF16 = 5  # int32 to half, one scale
    VSHIFTS322S16 = 12  # int32 to int16 by per-column shift
    SHIFTS322S16 = 13  # int32 to int16 by one shift
    F322BF16 = 16  # float to bfloat16
    VQF322B8_PRE = 23  # float to b8, per column
    QF322B8_PRE = 24  # float to b8, one scale
    QF322HIF8_PRE = 25  # float to hif8, one scale; A5
    QF322FP8_PRE = 26  # float to f8e4m3, one scale; A5
    QF322F16_PRE = 32
    QF322BF16_PRE = 34
    QS322BF16_PRE = 35  # int32 to bfloat16, one scale
    VQS322BF16_PRE = 36  # int32 to bfloat16, per column


class QuantType(Choice):
    MXFP8 = 0
    MXFP4_E2M1 = 1
    INT8_SYM = 2
    INT8_ASYM = 3


class QuantScaleAlg(Choice):
    OCP = 0
    NV = 1


class MxQuantAlg(Choice):
    OcpMxFp8E4M3 = 0
    NvMxFp8E4M3 = 1
    OcpMxFp4E2M1 = 2
    NvMxFp4E2M1 = 3
    Hif4 = 4


class TCopyMode(Choice):
    SHALLOW_COPY = 0
    DEEP_COPY = 1


class SyncAllMode(Choice):
    Hard = 0  # hardware barrier
    # counter in GM; the workspace is one 64-byte line = 16 int32, shared with nothing else
    Soft = 1


class SyncCoreType(Choice):
    AIVOnly = 0
    AICOnly = 1
    Mix = 2


class FenceScope(Choice):
    LocalMemory = 0
    GM = 1
    All = 2


class VFImplKind(Choice):
    """Loop shape hint of the A5 vector kernels."""

    VFIMPL_DEFAULT = 0
    VFIMPL_1D_NO_POST_UPDATE = 1
    VFIMPL_2D_NO_POST_UPDATE = 2
    VFIMPL_1D_POST_UPDATE = 3
    VFIMPL_2D_POST_UPDATE = 4


class TileLayoutCustom(Choice):
    """Internal: layout name derived from BLayout+SLayout."""

    ND = 0
    DN = 1
    NZ = 2
    ZN = 3
    ZZ = 4
    NONE = 5


class Coalesce(Choice):
    """What an index of the list names."""

    Row = 0  # one index per table row
    Elem = 1  # one index per element


class GatherAxis(Choice):
    """Whether a pattern selects columns (GATHER_ROW) or rows."""

    GATHER_ROW = 0
    GATHER_COL = 1


class ScatterConflict(Choice):
    """Which of several sources with one index wins."""

    Last = 0  # largest source position wins
    Default = 1  # unordered


class GatherExec(Choice):
    """A5 only, GM to L1 element gather."""

    Scalar = 0  # AIC scalar loop
    Simt = 1  # AIV SIMT kernel on sub-block 0


class HistByte(Choice):
    """The byte of an element that is counted; BYTE_0 is the lowest."""

    BYTE_0 = 0
    BYTE_1 = 1
    BYTE_2 = 2
    BYTE_3 = 3


class PrintFormat(Choice):
    """Field width and digits of floats."""

    Width8_Precision4 = 0
    Width8_Precision2 = 1
    Width10_Precision6 = 2


class ScatterAxis(Choice):
    """Whether a pattern spreads columns (SCATTER_ROW) or rows."""

    SCATTER_ROW = 0
    SCATTER_COL = 1


class VecStoreMode(Choice):
    """Whether the exponents are also written in blocks."""

    ND = 0
    NZ = 1


class ChipArch(Choice):
    A2A3 = 0
    A5 = 1
    KIRIN9030 = 2
    KIRINX90 = 3
    A6 = 4
    UNKNOWN = 255


class GridDirection(Choice):
    """A2A3 GridPipe overloads only."""

    SOURCE = 0  # injected from GM/host, TPOP only
    NORTH = 1
    EAST = 2
    WEST = 3
    SOUTH = 4


class GridSpan(Choice):
    """A2A3 GridPipe overloads only."""

    ROW = 0  # east and west arms
    COL = 1  # north and south arms


@public
def PadCustom(value: float) -> int:
    """Return the pad value that stands for the float ``value`` (its bits in the low half)."""
    with suppress(OverflowError, struct.error):
        return PadValue.CustomBase | struct.unpack("<I", struct.pack("<f", value))[0]
    what = "a custom pad value is a float of 32 bits"
    raise fail("argument-range", what, got=[("value", value)], fix="PadValue.Max, PadCustom(1e38)")


@public
def PadValueCustom(bits: int) -> int:
    """Return the pad value that stands for a raw 32-bit pattern."""
    return PadValue.CustomBase | (index(bits) & 0xFFFF_FFFF)


@public
def PadValueCustom16(bits: int) -> int:
    """Return the pad value that stands for a raw 16-bit pattern."""
    return PadValue.CustomBase | (index(bits) & 0xFFFF)
