# The instructions as editors see them: names, signatures, documentation.
# Generated from the instruction table by tools/gen.py; do not edit.
# pyright: reportIncompatibleMethodOverride=false

from typing import Any, overload

from ptokit.frontend.instruction import Instruction, RecordEvent, Waitable
from ptokit.frontend.tensor_types import ConvTile, GlobalTensor
from ptokit.frontend.types import Tile
from ptokit.machine.asynchronous import AsyncEvent, PrefetchAsyncContext
from ptokit.machine.objects import Pointer

Wait = RecordEvent | Waitable

class _GETVAL(Instruction):
    def __call__(self, src: Tile, offset: int, *events: Wait) -> Any: ...

GETVAL: _GETVAL
"""Read one element in the scalar unit and return it as a Python number.

`tile.GetValue(offset)` is the usual spelling. The offset counts elements in memory order from
the base of the tile, whatever its layout and valid region. The read happens on pipe S: wait for
the producer first (V to S, MTE2 to S)."""

class _MGATHER(Instruction):
    @overload
    def __call__(
        self,
        dst: Tile,
        src: GlobalTensor,
        indexes: Tile | GlobalTensor,
        *events: Wait,
        coalesce: Any = ...,
        gatherOob: Any = ...,
        gatherExec: Any = ...,
    ) -> RecordEvent: ...
    @overload
    def __call__(
        self,
        dst: Tile,
        src: GlobalTensor,
        indexes: Tile | GlobalTensor,
        scratch: GlobalTensor,
        *events: Wait,
        coalesce: Any = ...,
        gatherOob: Any = ...,
        gatherExec: Any = ...,
    ) -> RecordEvent: ...

MGATHER: _MGATHER
"""Gather rows or single elements of a table in global memory into a tile.

With Coalesce.Row the k-th index names the table row that becomes row k of `dst`; with
Coalesce.Elem each index names one element. Always say which: without it devices take rows, the
permissive profile elements. A Mat `dst` takes its indices from global memory: rows in the call
with three operands, elements in the one with `scratch`, which rewrites the whole tile with
zeros outside the valid region.

An index beyond the table reads the last entry (Clamp), entry index mod entries (Wrap), or gives
zeros (Zero); with Undefined it is an error here. Row gathers on A2A3 move whole rows of an NZ
table, beyond the valid columns. With Zero, row gathers into an Nz tile clear all of it first."""

class _MSCATTER(Instruction):
    def __call__(
        self,
        dst: GlobalTensor,
        src: Tile,
        indexes: Tile,
        *events: Wait,
        coalesce: Any = ...,
        scatterAtomicOp: Any = ...,
        scatterOob: Any = ...,
        scatterConflict: Any = ...,
    ) -> RecordEvent: ...

MSCATTER: _MSCATTER
"""Scatter rows or single elements of a Vec tile into a table in global memory.

With Coalesce.Row the k-th index names the table row that row k of `src` goes to; with
Coalesce.Elem each index names one element. Always say which: without it devices take rows, the
permissive profile elements. An index beyond the table is dropped (Skip), goes to the last entry
(Clamp) or to index mod entries (Wrap); with Undefined it is an error here.

ScatterAtomicOp combines with what is in the table, in its element type (integers wrap, f16 and
bf16 round once per addition). Otherwise, of several sources with one index the last in
row-major order wins; ScatterConflict.Default on A5 leaves the winner open. Entries that no
index names are untouched."""

class _SETFMATRIX(Instruction):
    def __call__(self, src: ConvTile, *events: Wait, FmatrixMode: Any = ...) -> RecordEvent: ...

SETFMATRIX: _SETFMATRIX
"""Load feature-map size and padding into image-to-column register A or B.

The word holds fmapW in bits 15..0, fmapH in bits 31..16 and the padding left, right, top and
bottom in the four bytes above. It lasts until it is loaded again and must be ordered before the
TIMG2COL that uses it. The AUTO modes load nothing: TIMG2COL does it."""

class _SETVAL(Instruction):
    def __call__(self, dst: Tile, offset: int, val: float, *events: Wait) -> RecordEvent: ...

SETVAL: _SETVAL
"""Write one element in the scalar unit; all others keep their value.

`tile.SetValue(offset, value)` is the usual spelling. The offset counts elements in memory
order. The write happens on pipe S: order it against the other pipes on both sides."""

class _SET_IMG2COL_PADDING(Instruction):
    def __call__(self, src: ConvTile, *events: Wait, FmatrixMode: Any = ...) -> RecordEvent: ...

SET_IMG2COL_PADDING: _SET_IMG2COL_PADDING
"""Load the value the image-to-column engine puts where the filter leaves the feature map.

It is the bit pattern of padValue, a byte twice; how far the padding reaches is SETFMATRIX's
business. A5 has a second register for the B modes."""

class _SET_IMG2COL_RPT(Instruction):
    def __call__(self, src: ConvTile, *events: Wait, FmatrixMode: Any = ...) -> RecordEvent: ...

SET_IMG2COL_RPT: _SET_IMG2COL_RPT
"""Load the repeat configuration of the image-to-column engine.

repeatStride in bits 15..0, repeatTime in 23..16, repeatMode in 31..24; on A5 also dstStride in
47..32 and dstMposition in 63..48. A5 has a second register for the B modes."""

class _SET_QUANT_SCALAR(Instruction):
    def __call__(self, preQuantScalar: float, *events: Wait, OutType: Any = ...) -> RecordEvent: ...

SET_QUANT_SCALAR: _SET_QUANT_SCALAR
"""Set the scale of the fix-pipe transfers that take it from a register (TPUSH with a config).

The register holds the float32 bits of the scale, of which the hardware uses the upper 19; for
8-bit results bit 46 says whether they are int8 (set) or uint8 (clear). It keeps its value until
it is set again."""

class _SET_QUANT_VECTOR(Instruction):
    def __call__(self, fpTile: Tile, *events: Wait) -> RecordEvent: ...

SET_QUANT_VECTOR: _SET_QUANT_VECTOR
"""Point the fix pipe at a vector of quantisation words, one per column of the results.

The words are read by the transfers that use them, not here. The register holds the address in
units of 128 bytes from bit 8 on, until it is set again."""

class _SYNCALL(Instruction):
    @overload
    def __call__(self, *events: Wait, Mode: Any = ..., CoreType: Any = ...) -> RecordEvent: ...
    @overload
    def __call__(
        self, gmWorkspace: GlobalTensor, *events: Wait, Mode: Any = ..., CoreType: Any = ...
    ) -> RecordEvent: ...
    @overload
    def __call__(
        self,
        gmWorkspace: GlobalTensor,
        usedCores: int,
        *events: Wait,
        Mode: Any = ...,
        CoreType: Any = ...,
    ) -> RecordEvent: ...

SYNCALL: _SYNCALL
"""Meet all cores of a launch: the vector cores, the cube cores, or all of them.

The pipes of the core are drained first. Every participant enters it equally often. The soft
form counts arrivals in global memory. Only arrival is guaranteed: scalar data written before
still needs dcci and dsb. Cross-core flags 11 to 14 belong to it."""

class _TABS(Instruction):
    def __call__(self, dst: Tile, src: Tile, *events: Wait) -> RecordEvent: ...

TABS: _TABS
"""Take the absolute value.

Floats lose their sign bit, also those of NaN and -0 (the permissive profile keeps -0)."""

class _TADD(Instruction):
    def __call__(self, dst: Tile, src0: Tile, src1: Tile, *events: Wait) -> RecordEvent: ...

TADD: _TADD
"""Add two tiles.

Integers wrap around. Floats are rounded once, to nearest even, in their own type."""

class _TADDC(Instruction):
    def __call__(
        self, dst: Tile, src0: Tile, src1: Tile, src2: Tile, *events: Wait
    ) -> RecordEvent: ...

TADDC: _TADDC
"""Add three tiles, from left to right. There is no carry, whatever the name suggests.

No device has it as one instruction: it stands for TADD followed by TADD, with a rounding
after each."""

class _TADDDEQRELU(Instruction):
    def __call__(
        self, dst: Tile, src0: Tile, src1: Tile, deqScale: float, tmp: Tile, *events: Wait
    ) -> RecordEvent: ...

TADDDEQRELU: _TADDDEQRELU
"""Add two i32 tiles, scale the sum, replace what is negative by zero, and round to f16.

The sum wraps around. It is brought down by 2^17, multiplied by `deqScale` and brought up again,
in f32; too large a result becomes 65504. A2/A3 needs `tmp` and destroys both sources."""

class _TADDRELU(Instruction):
    def __call__(self, dst: Tile, src0: Tile, src1: Tile, *events: Wait) -> RecordEvent: ...

TADDRELU: _TADDRELU
"""Add, and replace what is negative by zero: `dst = max(src0 + src1, 0)`.

Integers wrap around. Only A2/A3 has it, as one vector instruction that texts name `taddrelu`."""

class _TADDRELUCONV(Instruction):
    def __call__(self, dst: Tile, src0: Tile, src1: Tile, *events: Wait) -> RecordEvent: ...

TADDRELUCONV: _TADDRELUCONV
"""Add, replace what is negative by zero, and convert to the narrower type of the destination.

f32 to f16 and f16 to i8 round to nearest even; whatever is too large becomes the largest value
of the destination. i16 sums are formed in 32 bits on A2/A3 but wrap around on A5,
which shows when they exceed 32767."""

class _TADDS(Instruction):
    def __call__(self, dst: Tile, src: Tile, scalar: float, *events: Wait) -> RecordEvent: ...

TADDS: _TADDS
"""Add a scalar to every element.

Integers wrap around. Floats are rounded once, to nearest even, in their own type."""

class _TADDSC(Instruction):
    def __call__(
        self, dst: Tile, src0: Tile, scalar: float, src1: Tile, *events: Wait
    ) -> RecordEvent: ...

TADDSC: _TADDSC
"""Add a scalar and a tile to a tile: (src0 + scalar) + src1, from left to right.

No device has it as one instruction: it stands for TADDS followed by TADD, with a
rounding after each. The three tiles have one type."""

class _TALLOC(Instruction):
    def __call__(
        self, pipe: Any, gmTensor: GlobalTensor, *events: Wait, Split: Any = ...
    ) -> RecordEvent: ...

TALLOC: _TALLOC
"""Reserve the next slot of a FIFO for the producer and show it as a GlobalTensor.

Three steps: wait for free space, when `pipe.prod.getAllocateStatus()` and
`Pipe.shouldWaitFree(pipe.prod.tileIndex)` are both true; find the slot of
`pipe.prod.tileIndex`; point gmTensor at it and advance the index. Nothing is written and nobody
is told: fill the slot, with TSTORE say, and commit it with `TPUSH(pipe, gmTensor)`.

A cube producer sees the whole slot. A vector producer sees the part that Split says:
TILE_NO_SPLIT the slot from its start, TILE_UP_DOWN the upper or the lower half of the rows,
TILE_LEFT_RIGHT the left or the right half of the columns.

A pipe has SlotNum >= 1 slots of SlotSize bytes. Waits for free space are sparse: once in
SyncPeriod entries, which is SlotNum where there are at most 2 slots, otherwise SlotNum / 2."""

class _TAND(Instruction):
    def __call__(self, dst: Tile, src0: Tile, src1: Tile, *events: Wait) -> RecordEvent: ...

TAND: _TAND
"""Combine two tiles with bitwise AND.

A2/A3 processes bytes in pairs: with an odd number of valid columns it also overwrites the byte
past each row of an 8-bit tile, with unspecified contents. f16 is combined bit by bit."""

class _TANDS(Instruction):
    def __call__(self, dst: Tile, src: Tile, scalar: float, *events: Wait) -> RecordEvent: ...

TANDS: _TANDS
"""Combine every element with a scalar by bitwise AND.

A2/A3 puts the scalar into dst first, so dst must not be src there; with an odd number of valid
columns it also overwrites the byte past each row of an 8-bit tile."""

class _TASSIGN(Instruction):
    @overload
    def __call__(
        self,
        obj: Tile | ConvTile | GlobalTensor,
        addr: float | Pointer,
        *events: Wait,
        Addr: Any = ...,
    ) -> RecordEvent: ...
    @overload
    def __call__(
        self, obj: Tile | ConvTile | GlobalTensor, *events: Wait, Addr: Any = ...
    ) -> RecordEvent: ...

TASSIGN: _TASSIGN
"""Bind a tile to an on-chip address, or a GlobalTensor to a pointer. No data moves.

`TASSIGN(tile, address)` takes an address known at run time and is not checked;
`TASSIGN[address](tile)` takes it at compile time and checks that the memory space exists on
the target, that the tile fits, that it ends inside the space, and the alignment. The address is
a byte offset inside the memory of the tile's TileType; different memories do not overlap. In
auto mode placement belongs to the compiler and binding a tile does nothing.

A GlobalTensor keeps its shape and stride and takes the new pointer, in both modes: of its own
element type, and only in the form with an operand. Lowering brings the instruction in where
tiles of a program are given their places.

The capacity of a memory space can be set for a launch under the name of its macro, as a
compiler flag would: `defines={"PTO_UBUF_SIZE_BYTES": 262144}`."""

class _TAXPY(Instruction):
    def __call__(self, dst: Tile, src: Tile, scalar: float, *events: Wait) -> RecordEvent: ...

TAXPY: _TAXPY
"""Add a multiple of a tile: dst = dst + scalar * src.

The scalar takes the element type of src. An f32 destination accepts an f16 source, which is
widened first. Whether the product is rounded before the sum is up to the hardware."""

class _TCI(Instruction):
    @overload
    def __call__(
        self, dst: Tile, start: float, *events: Wait, T: Any = ..., descending: Any = ...
    ) -> RecordEvent: ...
    @overload
    def __call__(
        self, dst: Tile, start: float, tmp: Tile, *events: Wait, T: Any = ..., descending: Any = ...
    ) -> RecordEvent: ...

TCI: _TCI
"""Write consecutive integers into a row: start, start + 1, ... or start, start - 1, ...

Row 0 of dst is filled up to its valid columns; numbers beyond the type wrap. Without tmp the
A2/A3 targets count in the scalar unit, element by element; with it they use the vector unit, as
all others always do. An event that waits for TCI must name that pipe."""

class _TCMP(Instruction):
    def __call__(
        self, dst: Tile, src0: Tile, src1: Tile, *events: Wait, cmpMode: Any = ...
    ) -> RecordEvent: ...

TCMP: _TCMP
"""Compare two tiles and pack the answers, one bit per element, into a mask.

Bit j % 8 of byte j // 8 in row i of the mask answers for element (i, j); rows of the mask start
at rows of its tile, whatever its element type. NaN is unequal to everything, +0 equals -0.
Whole registers of bits are stored: past the last element of a row A5 and Kirin fill up with
zeros, A2/A3 with garbage (with NE, to the end of the row). A2/A3 cannot order i32."""

class _TCMPS(Instruction):
    def __call__(
        self, dst: Tile, src0: Tile, scalar: float | Tile, *events: Wait, mode: Any = ...
    ) -> RecordEvent: ...

TCMPS: _TCMPS
"""Compare every element with a scalar and pack the answers, one bit each, into a mask.

The mask is laid out, and filled up past the last element, as TCMP does it. The scalar may be
given as a tile: its first element in memory counts. NaN is unequal to everything, +0 equals -0.
A2/A3 cannot order i32, and compares i16 and u16 as if their bits were f16: equality is right
except for 0 against 0x8000 and the patterns of NaN, order only among small positive numbers."""

class _TCOLARGMAX(Instruction):
    @overload
    def __call__(self, dstIdx: Tile, src: Tile, tmp: Tile, *events: Wait) -> RecordEvent: ...
    @overload
    def __call__(
        self, dstVal: Tile, dstIdx: Tile, src: Tile, tmp: Tile, *events: Wait
    ) -> RecordEvent: ...

TCOLARGMAX: _TCOLARGMAX
"""Store the row index of the maximum of every column in row 0 of dstIdx.

The valid region of src governs; of equal maxima the first wins. `TCOLARGMAX(dstVal,
dstIdx, src, tmp)` also stores the maximum itself, bit for bit, in row 0 of dstVal.
With NaN targets differ: a2a3 moves on to the row after every comparison with one, others keep
what they have. a2a3 compares u16 and u32 as f16 and f32: patterns with the top bit set are
negative there, those above infinity NaN. tmp is scratch that only a2a3 uses."""

class _TCOLARGMIN(Instruction):
    @overload
    def __call__(self, dstIdx: Tile, src: Tile, tmp: Tile, *events: Wait) -> RecordEvent: ...
    @overload
    def __call__(
        self, dstVal: Tile, dstIdx: Tile, src: Tile, tmp: Tile, *events: Wait
    ) -> RecordEvent: ...

TCOLARGMIN: _TCOLARGMIN
"""Store the row index of the minimum of every column in row 0 of dstIdx.

The valid region of src governs; of equal minima the first wins. `TCOLARGMIN(dstVal,
dstIdx, src, tmp)` also stores the minimum itself, bit for bit, in row 0 of dstVal.
With NaN targets differ: a2a3 moves on to the row after every comparison with one, others keep
what they have. a2a3 compares u16 and u32 as f16 and f32: patterns with the top bit set are
negative there, those above infinity NaN. tmp is scratch that only a2a3 uses."""

class _TCOLEXPAND(Instruction):
    def __call__(self, dst: Tile, src: Tile, *events: Wait) -> RecordEvent: ...

TCOLEXPAND: _TCOLEXPAND
"""Copy row 0 of src to all valid rows of dst.

The valid region of dst governs; other rows of src are ignored. a2a3 copies whole 32-byte
blocks, so up to there the columns past the valid ones are lost, and it does nothing when one
of the tiles is empty."""

class _TCOLEXPANDADD(Instruction):
    def __call__(self, dst: Tile, src0: Tile, src1: Tile, *events: Wait) -> RecordEvent: ...

TCOLEXPANDADD: _TCOLEXPANDADD
"""Add a row to all rows of a tile: dst = src0 + src1, where one source is a single row.

The valid region of dst governs and dst may be the full source. The single row is src1 or,
less portably, src0; only its row 0 is read. Integers wrap."""

class _TCOLEXPANDDIV(Instruction):
    def __call__(
        self, dst: Tile, src0: Tile, src1: Tile, *events: Wait, PrecisionType: Any = ...
    ) -> RecordEvent: ...

TCOLEXPANDDIV: _TCOLEXPANDDIV
"""Divide with a single row: dst = src0 / src1, where one source is one row for all.

The operands keep their order whichever is the single row; see TCOLEXPANDADD.
Integers are truncated toward zero; what division by zero gives is not defined for them (0
here). HIGH_PRECISION asks a5 for the correctly rounded quotient of floats."""

class _TCOLEXPANDEXPDIF(Instruction):
    def __call__(self, dst: Tile, src0: Tile, src1: Tile, *events: Wait) -> RecordEvent: ...

TCOLEXPANDEXPDIF: _TCOLEXPANDEXPDIF
"""Compute exp(src0 - src1), where one source is a single row for all rows.

The operands keep their order whichever is the single row; see TCOLEXPANDADD.
The difference is rounded to the element type before the exponential, except for f32 on a5."""

class _TCOLEXPANDMAX(Instruction):
    def __call__(self, dst: Tile, src0: Tile, src1: Tile, *events: Wait) -> RecordEvent: ...

TCOLEXPANDMAX: _TCOLEXPANDMAX
"""Take the larger of an element and that of one row in its column; one source is a single row.

See TCOLEXPANDADD for the
operands. Keep the data free of NaN."""

class _TCOLEXPANDMIN(Instruction):
    def __call__(self, dst: Tile, src0: Tile, src1: Tile, *events: Wait) -> RecordEvent: ...

TCOLEXPANDMIN: _TCOLEXPANDMIN
"""Take the smaller of an element and that of one row in its column; one source is a single row.

See TCOLEXPANDADD for the
operands. Keep the data free of NaN."""

class _TCOLEXPANDMUL(Instruction):
    def __call__(self, dst: Tile, src0: Tile, src1: Tile, *events: Wait) -> RecordEvent: ...

TCOLEXPANDMUL: _TCOLEXPANDMUL
"""Multiply all rows of a tile by one row: dst = src0 * src1; one source is a single row.

See TCOLEXPANDADD for the
operands. Integers wrap."""

class _TCOLEXPANDSUB(Instruction):
    def __call__(self, dst: Tile, src0: Tile, src1: Tile, *events: Wait) -> RecordEvent: ...

TCOLEXPANDSUB: _TCOLEXPANDSUB
"""Subtract with a single row: dst = src0 - src1, where one source is one row for all.

The operands keep their order whichever is the single row; see TCOLEXPANDADD. Integers wrap."""

class _TCOLMAX(Instruction):
    def __call__(self, dst: Tile, src: Tile, *events: Wait) -> RecordEvent: ...

TCOLMAX: _TCOLMAX
"""Store the maximum of every column of src in row 0 of dst.

The valid region of src governs; without valid rows nothing is written. The result is one of the
elements, bit for bit; keep the data free of NaN. a2a3 writes whole 32-byte blocks, so up to
there the columns past dst are lost. The permissive profile widens f16 and bf16 to f32."""

class _TCOLMIN(Instruction):
    def __call__(self, dst: Tile, src: Tile, *events: Wait) -> RecordEvent: ...

TCOLMIN: _TCOLMIN
"""Store the minimum of every column of src in row 0 of dst.

The valid region of src governs; without valid rows nothing is written. The result is one of the
elements, bit for bit; keep the data free of NaN. a2a3 writes whole 32-byte blocks, so up to
there the columns past dst are lost."""

class _TCOLPROD(Instruction):
    def __call__(self, dst: Tile, src: Tile, *events: Wait) -> RecordEvent: ...

TCOLPROD: _TCOLPROD
"""Multiply every column of src into row 0 of dst.

The valid region of src governs; without valid rows nothing is written. Every product is rounded
to the element type, integers wrap. a2a3 writes whole 32-byte blocks, so up to there the columns
past dst are lost."""

class _TCOLSUM(Instruction):
    @overload
    def __call__(self, dst: Tile, src: Tile, *events: Wait, isBinary: Any = ...) -> RecordEvent: ...
    @overload
    def __call__(
        self, dst: Tile, src: Tile, tmp: Tile, *events: Wait, isBinary: Any = ...
    ) -> RecordEvent: ...

TCOLSUM: _TCOLSUM
"""Sum every column of src into row 0 of dst.

The valid region of src governs; without valid rows nothing is written. Every sum is rounded to
the element type, integers wrap. `TCOLSUM(dst, src, tmp, True)` sums by a pairwise tree that
keeps its partial sums in tmp: half as many rows as src, rounded up, are enough. a2a3 writes
whole 32-byte blocks, so up to there the columns past dst are lost. The permissive profile
ignores tmp and isBinary, and may sum f16 and bf16 into f32."""

class _TCONCAT(Instruction):
    @overload
    def __call__(self, dst: Tile, src0: Tile, src1: Tile, *events: Wait) -> RecordEvent: ...
    @overload
    def __call__(
        self, dst: Tile, src0: Tile, src1: Tile, src0Idx: Tile, src1Idx: Tile, *events: Wait
    ) -> RecordEvent: ...
    @overload
    def __call__(
        self,
        dst: Tile,
        src0: Tile,
        src1: Tile,
        dstIdx: Tile,
        src0Idx: Tile,
        src1Idx: Tile,
        *events: Wait,
    ) -> RecordEvent: ...

TCONCAT: _TCONCAT
"""Join two tiles side by side, row by row; optionally each row has lengths of its own.

Without lengths, row r of dst is row r of src0 followed by row r of src1. With them, src0Idx and
src1Idx say how much of each row to take, as a number of bytes of the index type: the count is
the value divided by the size of the index type, whatever the data type. What does not fit into
the valid columns of dst is dropped, and dstIdx receives the length that was written. Columns
past the joined ones keep their contents; on A2A3 up to 31 bytes of them are lost in the form
without lengths. On A2A3 lengths of 0 are not supported by the hardware."""

class _TCVT(Instruction):
    @overload
    def __call__(
        self,
        dst: Tile,
        src: Tile,
        *events: Wait,
        mode: Any = ...,
        satMode: Any = ...,
        NeedSetCtrl: Any = ...,
    ) -> RecordEvent: ...
    @overload
    def __call__(
        self,
        dst: Tile,
        src: Tile,
        tmp: Tile,
        *events: Wait,
        mode: Any = ...,
        satMode: Any = ...,
        NeedSetCtrl: Any = ...,
    ) -> RecordEvent: ...

TCVT: _TCVT
"""Convert every element to the element type of the destination.

Each pair of types has its rounding modes; a mode it does not have, and CAST_NONE, mean
truncation from float to integer, ties away from zero to hif8, and otherwise nearest even. f32
to f32 rounds to whole numbers. CAST_ODD, rounding to odd, exists for f32 to f16.

What exceeds the destination is clamped when saturation is on. When it is off, integers keep
their low bits (NaN and -inf become 0, +inf all ones) and floats become infinite. By default
saturation is off for f32 and i32 to i16, f16 to i16, i8 and u8, and i64 to i32; a text without
`sat_mode` asks for OFF. `satMode` overrules this, except that A2/A3 without `tmp` heeds it only
for these pairs, Kirin always saturates integer to integer, and fp8, hif8 and fp4 always
saturate; fp8 has 0 for NaN then.

In place the elements may stay as wide or become narrower; A2/A3 converts what is past whole
256-byte repeats last, which is too late for several rows of narrower elements. A5 clears the
rest of each row when it writes 4-bit floats. Integers of 4 bits lie two to a byte, but their
rows begin as many bytes apart as the tile has columns.

Only A2/A3 uses `tmp`, with saturation off, for f32 to i16 and f16 to i16 and i8: these then go
through i32, so that f32 values beyond i32 end at its limits."""

class _TDEINTERLEAVE(Instruction):
    @overload
    def __call__(
        self, dst1: Tile, dst0: Tile, src1: Tile, src0: Tile, *events: Wait
    ) -> RecordEvent: ...
    @overload
    def __call__(self, dst1: Tile, dst0: Tile, src: Tile, *events: Wait) -> RecordEvent: ...

TDEINTERLEAVE: _TDEINTERLEAVE
"""Separate the even positions of a stream (dst0) from the odd ones (dst1).

The stream of a row is src0 followed by src1, or one source twice as wide as the destinations.
Mind the order of the operands: odd positions, and the second half, come first."""

class _TDEQUANT(Instruction):
    def __call__(
        self, dst: Tile, src: Tile, scale: Tile, offset: Tile, *events: Wait
    ) -> RecordEvent: ...

TDEQUANT: _TDEQUANT
"""Turn quantised integers back into f32: (src - offset) * scale, one scale and offset per row.

Row i takes the first element of row i of scale and offset. Difference and product are f32
operations; the integers are exact. On the permissive profile a parameter tile with more valid
columns serves one column each, the last one all that follow. A5 and Kirin 9030 may overwrite
padding columns of dst when more than 64 columns, but no multiple of 64, are valid."""

class _TDIV(Instruction):
    def __call__(
        self, dst: Tile, src0: Tile, src1: Tile, *events: Wait, PrecisionType: Any = ...
    ) -> RecordEvent: ...

TDIV: _TDIV
"""Divide the first tile by the second.

Integer quotients are truncated towards zero; the smallest integer divided by -1 wraps to itself
and x / 0 is 0 for 64-bit elements (for narrower ones hardware decides). Floats follow IEEE 754:
x / 0 is an infinity, 0 / 0 NaN. HIGH_PRECISION corrects the last place of f32 and f16 quotients
on A5, and flushes f16 quotients below the smallest subnormal."""

class _TDIVS(Instruction):
    def __call__(
        self,
        dst: Tile,
        src0: Tile | float,
        scalar: float | Tile,
        *events: Wait,
        PrecisionType: Any = ...,
    ) -> RecordEvent: ...

TDIVS: _TDIVS
"""Divide a tile by a scalar, or a scalar by a tile: the order of the operands decides.

`TDIVS(dst, src, scalar)` is src / scalar, `TDIVS(dst, scalar, src)` is scalar / src. Floats
follow IEEE 754: x / 0 is an infinity, 0 / 0 NaN. Integer quotients are truncated towards zero,
and the smallest integer divided by -1 wraps to itself. x / 0 is 0 for 64-bit integers; narrower
ones are divided in the scalar unit, where it has no defined result. On A2/A3 a float tile that
is divided in place is multiplied by the rounded reciprocal instead, and a tile cannot be both
divisor and destination. HIGH_PRECISION corrects the last place on A5."""

class _TEXP(Instruction):
    def __call__(
        self, dst: Tile, src: Tile, *events: Wait, PrecisionType: Any = ...
    ) -> RecordEvent: ...

TEXP: _TEXP
"""Raise e to the power of each element.

Too large a result is +inf; exp(-inf) is 0. Hardware may flush results in the subnormal range
to zero; HIGH_PRECISION keeps them on A5."""

class _TEXPANDS(Instruction):
    def __call__(self, dst: Tile | ConvTile, scalar: float, *events: Wait) -> RecordEvent: ...

TEXPANDS: _TEXPANDS
"""Fill a tile with one scalar.

A Vec tile is filled over its valid region (bytes in pairs on A2A3), a Mat tile over its whole
capacity, a convolution tile over its shape; 64-bit elements of a Mat tile are not written. The
scalar is converted to the element type of `dst` as C++ does it."""

class _TEXTRACT(Instruction):
    @overload
    def __call__(
        self,
        dst: Tile,
        src: Tile | ConvTile,
        *events: Wait,
        reluPreMode: Any = ...,
        accToVecMode: Any = ...,
    ) -> RecordEvent: ...
    @overload
    def __call__(
        self,
        dst: Tile,
        src: Tile | ConvTile,
        indexRow: int,
        *events: Wait,
        reluPreMode: Any = ...,
        accToVecMode: Any = ...,
    ) -> RecordEvent: ...
    @overload
    def __call__(
        self,
        dst: Tile,
        src: Tile | ConvTile,
        indexRow: int,
        indexCol: int,
        *events: Wait,
        reluPreMode: Any = ...,
        accToVecMode: Any = ...,
    ) -> RecordEvent: ...
    @overload
    def __call__(
        self,
        dst: Tile,
        src: Tile | ConvTile,
        preQuantScalar: int,
        indexRow: int,
        indexCol: int,
        *events: Wait,
        reluPreMode: Any = ...,
        accToVecMode: Any = ...,
    ) -> RecordEvent: ...
    @overload
    def __call__(
        self,
        dst: Tile,
        src: Tile | ConvTile,
        fp: Tile,
        indexRow: int,
        indexCol: int,
        *events: Wait,
        reluPreMode: Any = ...,
        accToVecMode: Any = ...,
    ) -> RecordEvent: ...
    @overload
    def __call__(
        self,
        dst: Tile,
        dst1: Tile,
        src: Tile | ConvTile,
        *events: Wait,
        reluPreMode: Any = ...,
        accToVecMode: Any = ...,
    ) -> RecordEvent: ...
    @overload
    def __call__(
        self,
        dst: Tile,
        dst1: Tile,
        src: Tile | ConvTile,
        indexRow: int,
        *events: Wait,
        reluPreMode: Any = ...,
        accToVecMode: Any = ...,
    ) -> RecordEvent: ...
    @overload
    def __call__(
        self,
        dst: Tile,
        dst1: Tile,
        src: Tile | ConvTile,
        indexRow: int,
        indexCol: int,
        *events: Wait,
        reluPreMode: Any = ...,
        accToVecMode: Any = ...,
    ) -> RecordEvent: ...
    @overload
    def __call__(
        self,
        dst: Tile,
        dst1: Tile,
        src: Tile | ConvTile,
        indexRow: int,
        indexCol: int,
        indexRow1: int,
        *events: Wait,
        reluPreMode: Any = ...,
        accToVecMode: Any = ...,
    ) -> RecordEvent: ...
    @overload
    def __call__(
        self,
        dst: Tile,
        dst1: Tile,
        src: Tile | ConvTile,
        indexRow: int,
        indexCol: int,
        indexRow1: int,
        indexCol1: int,
        *events: Wait,
        reluPreMode: Any = ...,
        accToVecMode: Any = ...,
    ) -> RecordEvent: ...

TEXTRACT: _TEXTRACT
"""Copy the window of src that starts at (indexRow, indexCol) into dst.

Into a matmul operand the window has the capacity of dst, in compact tiles its valid boxes; one
row of a Mat tile becomes the left operand of a matrix-vector product. From an accumulator the
valid size of dst is read, in whole boxes of columns when dst is NZ, and converted by the fix
pipe; quantisation words belong to source columns. Between vector tiles the valid region of dst
is filled. Convolution weights are read as the matrix K x N with K = (c1, h, w, c0).

With two destinations, two windows of a row-major vector tile are boxed at once; on A2A3 an odd
width of int8 uses 8 KiB of the vector memory at byte 188416 as scratch. Elements outside the
source's valid region may be undefined and stay undefined in dst."""

class _TEXTRACT_FP(Instruction):
    def __call__(
        self,
        dst: Tile,
        src: Tile,
        fp: Tile,
        indexRow: int,
        indexCol: int,
        *events: Wait,
        reluPreMode: Any = ...,
    ) -> RecordEvent: ...

TEXTRACT_FP: _TEXTRACT_FP
"""Extract a window of an accumulator with a quantisation word per column.

dst(r, c) = quant(src(indexRow + r, indexCol + c), fp[indexCol + c]), over the region TEXTRACT
has from an accumulator. The words start at fp + 8 * indexCol, which has to be a multiple of
128 bytes."""

class _TFILLPAD(Instruction):
    def __call__(
        self, dst: Tile, src: Tile, *events: Wait, mode: Any = ..., PadVal: Any = ...
    ) -> RecordEvent: ...

TFILLPAD: _TFILLPAD
"""Copy the valid part of a tile and fill what lies beside it with the pad value of dst.

Vec: every row of src is continued with the pad value up to Cols of dst; rows from the valid
rows of src up to those of dst hold the pad value only. Rows beyond the valid rows of dst stay
as they are; the `cpu` profile fills them as well. Nothing happens when dst has no valid rows or
columns. On A2A3, when src declares the same pad value as dst, the rest of the last 32-byte
block of each row comes from src, where the load has put it.

Mat: src and dst are one NZ tile, of which nothing is read: it may be loaded before or after.
Rows and boxes beside the valid ones are cleared, or with CompactMode.RowAlignedPadding only the
rows up to the next multiple of 16; the columns between the valid ones and the end of their box
stay. The `cpu` profile fills everything beside the valid region of src with `PadVal`."""

class _TFILLPAD_EXPAND(Instruction):
    def __call__(self, dst: Tile, src: Tile, *events: Wait) -> RecordEvent: ...

TFILLPAD_EXPAND: _TFILLPAD_EXPAND
"""Copy the valid part of a tile into a larger one and fill the rest with its pad value.

See TFILLPAD for the region."""

class _TFILLPAD_INPLACE(Instruction):
    def __call__(self, dst: Tile, src: Tile, *events: Wait) -> RecordEvent: ...

TFILLPAD_INPLACE: _TFILLPAD_INPLACE
"""Fill what lies beside the valid part of a tile with the pad value of dst, in place.

src and dst are two views of one storage: src gives the valid part, dst what is padded. See
TFILLPAD for the region."""

class _TFMOD(Instruction):
    def __call__(
        self, dst: Tile, src0: Tile, src1: Tile, *events: Wait, PrecisionType: Any = ...
    ) -> RecordEvent: ...

TFMOD: _TFMOD
"""Take the remainder of a division; its sign is that of the dividend, as with C's fmod.

`dst = src0 - trunc(src0 / src1) * src1`. Floats round the quotient on the way, so the result is
good only while |src0 / src1| < 2^24; HIGH_PRECISION makes f32 exact on A5. A zero divisor gives
NaN. On A2/A3 the destination serves as scratch and must not be a source."""

class _TFMODS(Instruction):
    def __call__(
        self, dst: Tile, src: Tile, scalar: float, *events: Wait, PrecisionType: Any = ...
    ) -> RecordEvent: ...

TFMODS: _TFMODS
"""Take the remainder of a division by a scalar; its sign is that of the dividend.

`dst = src - trunc(src / scalar) * scalar`. Floats round the quotient on the way, so the result
is good only while |src / scalar| < 2^24; HIGH_PRECISION makes f32 exact on A5. A zero scalar
gives NaN. On A2/A3 the destination serves as scratch and must not be the source."""

class _TFREE(Instruction):
    @overload
    def __call__(self, pipe: Any, *events: Wait, Split: Any = ...) -> RecordEvent: ...
    @overload
    def __call__(
        self, pipe: Any, gmTensor: GlobalTensor, *events: Wait, Split: Any = ...
    ) -> RecordEvent: ...

TFREE: _TFREE
"""Give a consumed slot back to the producer, after the last read of the entry.

Free space is announced only every SyncPeriod entries. On A2/A3 the pop of a tile has given
the slot back already and nothing happens: call TFREE all the same in programs that are to run
everywhere. Not so on the *_GM pipes of A5, where it would announce the same space twice."""

class _TFUSEDMULADD(Instruction):
    def __call__(self, dst: Tile, src0: Tile, src1: Tile, *events: Wait) -> RecordEvent: ...

TFUSEDMULADD: _TFUSEDMULADD
"""Multiply the destination and add to it: `dst = src0 * dst + src1`."""

class _TFUSEDMULADDRELU(Instruction):
    def __call__(self, dst: Tile, src0: Tile, src1: Tile, *events: Wait) -> RecordEvent: ...

TFUSEDMULADDRELU: _TFUSEDMULADDRELU
"""Multiply the destination, add to it and replace what is negative by zero.

`dst = max(src0 * dst + src1, 0)`."""

class _TGATHER(Instruction):
    @overload
    def __call__(
        self,
        dst: Tile,
        src0: Tile,
        src1: Tile,
        tmp: Tile,
        *events: Wait,
        maskPattern: Any = ...,
        gatherType: Any = ...,
        cmpMode: Any = ...,
    ) -> RecordEvent: ...
    @overload
    def __call__(
        self,
        dst: Tile,
        src0: Tile,
        *events: Wait,
        maskPattern: Any = ...,
        gatherType: Any = ...,
        cmpMode: Any = ...,
    ) -> RecordEvent: ...
    @overload
    def __call__(
        self,
        dst: Tile,
        src0: Tile,
        k_value: Tile,
        cdst: Tile,
        tmp: Tile,
        offset: float,
        *events: Wait,
        maskPattern: Any = ...,
        gatherType: Any = ...,
        cmpMode: Any = ...,
    ) -> RecordEvent: ...

TGATHER: _TGATHER
"""Gather elements of a tile: by an index tile, by a fixed pattern, or those that compare.

`TGATHER(dst, src0, src1, tmp)` copies to each valid element of dst the element of src0 that
src1 names; an index counts the elements of src0 in memory order, padding included, and may
lead to what lies around it.
`TGATHER[pattern](dst, src)` packs the columns a pattern selects, row after row, into the
storage of dst; `TGATHER[pattern, GatherAxis.GATHER_COL](dst, src)` packs rows. Types may differ
as long as their size agrees: bits are copied. `TGATHER[mode](dst, src0, k, cdst, tmp, offset)`
stores, row by row, the numbers of the elements that are greater than (GT) or equal to (EQ) the
threshold of their row, and in cdst how many there are; elements are numbered from offset on, on
a2a3 with the padding columns of src0, on a5 with rows rounded up to 64 elements (128 of one
byte). What lies past the numbers in a row of dst is undefined. a5 compares unsigned: keep the
data non-negative."""

class _TGATHERB(Instruction):
    def __call__(self, dst: Tile, src: Tile, offset: Tile, *events: Wait) -> RecordEvent: ...

TGATHERB: _TGATHERB
"""Copy 32-byte blocks of src, each from a byte offset of its own, to dst.

The valid region of dst governs: block b of row r comes from `offset[r, b]` bytes past the
start of src. Offsets are multiples of 32 and lie inside src. On a2a3 rows have whole 256 bytes.
The permissive profile takes any offset, leaves a block alone that would end past src, and
copies whole blocks only."""

class _TGEMV(Instruction):
    def __call__(
        self, cMatrix: Tile, aMatrix: Tile, bMatrix: Tile, *events: Wait, Phase: Any = ...
    ) -> RecordEvent: ...

TGEMV: _TGEMV
"""Multiply a row by a matrix into a fresh accumulator row.

The cube runs in its vector mode: aMatrix is one row of k elements stored one after the other, k
the valid rows of bMatrix, n its valid columns. Afterwards row 0 of cMatrix is defined and the
rest of the touched accumulator boxes is not. The permissive profile takes as many rows as
aMatrix has."""

class _TGEMV_ACC(Instruction):
    def __call__(
        self,
        cOutMatrix: Tile,
        cInMatrix: Tile,
        aMatrix: Tile,
        bMatrix: Tile,
        *events: Wait,
        Phase: Any = ...,
    ) -> RecordEvent: ...

TGEMV_ACC: _TGEMV_ACC
"""Multiply a row by a matrix and add the product to an accumulator row.

As TGEMV; the hardware adds to what cOutMatrix holds, so cInMatrix must be the same storage."""

class _TGEMV_BIAS(Instruction):
    def __call__(
        self,
        cMatrix: Tile,
        aMatrix: Tile,
        bMatrix: Tile,
        biasData: Tile,
        *events: Wait,
        Phase: Any = ...,
    ) -> RecordEvent: ...

TGEMV_BIAS: _TGEMV_BIAS
"""Multiply a row by a matrix, every element of the accumulator row starting from its bias.

As TGEMV; biasData is one row of n elements of the accumulator's type."""

class _TGEMV_MX(Instruction):
    @overload
    def __call__(
        self,
        cMatrix: Tile,
        aMatrix: Tile,
        aScaleMatrix: Tile,
        bMatrix: Tile,
        bScaleMatrix: Tile,
        *events: Wait,
        Phase: Any = ...,
    ) -> RecordEvent: ...
    @overload
    def __call__(
        self,
        cMatrix: Tile,
        cInMatrix: Tile,
        aMatrix: Tile,
        aScaleMatrix: Tile,
        bMatrix: Tile,
        bScaleMatrix: Tile,
        *events: Wait,
        Phase: Any = ...,
    ) -> RecordEvent: ...
    @overload
    def __call__(
        self,
        cMatrix: Tile,
        aMatrix: Tile,
        aScaleMatrix: Tile,
        bMatrix: Tile,
        bScaleMatrix: Tile,
        biasData: Tile,
        *events: Wait,
        Phase: Any = ...,
    ) -> RecordEvent: ...

TGEMV_MX: _TGEMV_MX
"""Multiply a block-scaled row by a block-scaled matrix.

As TMATMUL_MX for one row: aMatrix is stored as one row of whole 512-byte blocks, k is its valid
columns and need not be padded, and only row 0 of cMatrix is defined afterwards. The permissive
profile takes as many rows as aMatrix has."""

class _TGET_SCALE_ADDR(Instruction):
    def __call__(self, dst: Tile, src: Tile, *events: Wait) -> RecordEvent: ...

TGET_SCALE_ADDR: _TGET_SCALE_ADDR
"""Bind an MX scale tile to the place that belongs to a Left or Right tile.

The cube finds the scales of a block-scaled operand at a sixteenth of the operand's address, in
the scale memory that goes with it. In auto mode the compiler keeps the two together and the
scale tile keeps the storage it was given."""

class _THISTOGRAM(Instruction):
    def __call__(
        self, dst: Tile, src: Tile, idx: Tile, *events: Wait, byte: Any = ...
    ) -> RecordEvent: ...

THISTOGRAM: _THISTOGRAM
"""Count one byte of every element, row by row, into a cumulative histogram of 256 bins.

dst[r, b] becomes the number of elements of row r whose byte is at most b; dst[r, 255] is the
number of elements counted. Only elements whose higher bytes equal the filter in idx count. For
u16 and BYTE_0 the filter of row r is idx[r, 0]. For u32 one filter serves all rows: idx[0, 0]
is the required byte 3, idx[1, 0] byte 2, idx[2, 0] byte 1, as far as they lie above the
counted byte. Repeated with growing prefixes this is a radix select."""

class _TIMG2COL(Instruction):
    @overload
    def __call__(
        self, dst: Tile, src: ConvTile, *events: Wait, FmatrixMode: Any = ...
    ) -> RecordEvent: ...
    @overload
    def __call__(
        self, dst: Tile, src: ConvTile, posM: int, *events: Wait, FmatrixMode: Any = ...
    ) -> RecordEvent: ...
    @overload
    def __call__(
        self, dst: Tile, src: ConvTile, posM: int, posK: int, *events: Wait, FmatrixMode: Any = ...
    ) -> RecordEvent: ...

TIMG2COL: _TIMG2COL
"""Unroll a feature map in L1 into rows of a left matmul operand.

Row m of the unrolled matrix is an output position (n, d, ho, wo), column k a filter tap of a
channel, ordered C1, kh, kw, C0. dst takes its valid rows from posM on and its valid columns,
rounded up to C0, from posK on. Where the filter leaves the feature map the pad value is taken.
Bits are copied; posK should be a multiple of C0.

Filter, stride and dilation come from the ConvTile. Feature-map size, padding and pad value come
from the registers: a MANUAL mode uses what SETFMATRIX, SET_IMG2COL_RPT and SET_IMG2COL_PADDING
left there, an AUTO mode loads them from src first. The permissive profile reads everything from
src. More than one repeat, and transposition, are not described and not simulated; a repeat
register that was never loaded counts as one repeat, a padding register as 0."""

class _TINSERT(Instruction):
    @overload
    def __call__(
        self,
        dst: Tile,
        src: Tile,
        indexRow: int,
        indexCol: int,
        *events: Wait,
        reluPreMode: Any = ...,
        accToVecMode: Any = ...,
        mode: Any = ...,
    ) -> RecordEvent: ...
    @overload
    def __call__(
        self,
        dst: Tile,
        src: Tile,
        preQuantScalar: int,
        indexRow: int,
        indexCol: int,
        *events: Wait,
        reluPreMode: Any = ...,
        accToVecMode: Any = ...,
        mode: Any = ...,
    ) -> RecordEvent: ...
    @overload
    def __call__(
        self,
        dst: Tile,
        src: Tile,
        fp: Tile,
        indexRow: int,
        indexCol: int,
        *events: Wait,
        reluPreMode: Any = ...,
        accToVecMode: Any = ...,
        mode: Any = ...,
    ) -> RecordEvent: ...
    @overload
    def __call__(
        self,
        dst: Tile,
        src: Tile,
        *events: Wait,
        reluPreMode: Any = ...,
        accToVecMode: Any = ...,
        mode: Any = ...,
    ) -> RecordEvent: ...
    @overload
    def __call__(
        self,
        dst: Tile,
        src: Tile,
        indexRow: int,
        *events: Wait,
        reluPreMode: Any = ...,
        accToVecMode: Any = ...,
        mode: Any = ...,
    ) -> RecordEvent: ...

TINSERT: _TINSERT
"""Copy src into the window of dst that starts at (indexRow, indexCol).

A vector tile contributes its valid region. An accumulator is converted by the fix pipe, with
one quantisation word or one per column of src; into an NZ Mat tile it writes all its rows and
whole boxes of columns. From Vec to Mat the data is arranged as in src, so both tiles need the
same layout; the burst forms (SPLIT2, SPLIT4) give the same result. Only the window of dst
changes."""

class _TINSERT_FP(Instruction):
    def __call__(
        self,
        dst: Tile,
        src: Tile,
        fp: Tile,
        indexRow: int,
        indexCol: int,
        *events: Wait,
        reluPreMode: Any = ...,
    ) -> RecordEvent: ...

TINSERT_FP: _TINSERT_FP
"""Insert an accumulator with a quantisation word per column of src.

dst(indexRow + r, indexCol + c) = quant(src(r, c), fp[c]), over the region TINSERT has from an
accumulator. Only the window of dst changes."""

class _TINTERLEAVE(Instruction):
    def __call__(
        self, dst1: Tile, dst0: Tile, src1: Tile, src0: Tile, *events: Wait
    ) -> RecordEvent: ...

TINTERLEAVE: _TINTERLEAVE
"""Merge two tiles element by element into one stream, given back as two halves.

The stream of a row is src0(r, 0), src1(r, 0), src0(r, 1), ...; dst0 receives its first half,
dst1 its second, which starts with a whole pair. Mind the order of the operands: the second half
comes first."""

class _TLOAD(Instruction):
    def __call__(self, dst: Tile | ConvTile, src: GlobalTensor, *events: Wait) -> RecordEvent: ...

TLOAD: _TLOAD
"""Load a view of global memory into a Vec or Mat tile, or a Mat convolution tile.

In two dimensions, with a view that begins at row r0 and column c0 of its array: dst[i, j] =
src[r0 + i, c0 + j]. Which elements these are in memory follows from shape and strides of the
view and from the layout of the tile.

The transfer has the size of the valid region of `dst`; the view must describe just as many
rows and columns. Elements are copied bit by bit. Into a Mat tile the load may rearrange: ND
to Nz and DN to Zn boxes (on A5 also DN to Nz, and MX scales to Zz and Nn), and on A5 feature
maps and weights to their split-channel forms.

Around the valid region: a Vec tile gets its pad value up to the next 32-byte boundary of each
line; with PadValue.Null that rest of the block is unspecified. The box engine writes zeros to
the end of the last block of a line; unboxed Mat tiles on A5 are padded like Vec tiles, with
zero for Null. Everything further out keeps its contents: use TFILLPAD for more. The permissive
profile sets the whole tile to its pad value first."""

class _TLOG(Instruction):
    def __call__(
        self, dst: Tile, src: Tile, *events: Wait, PrecisionType: Any = ...
    ) -> RecordEvent: ...

TLOG: _TLOG
"""Take the natural logarithm.

ln(0) is -inf and the logarithm of a negative number NaN. HIGH_PRECISION treats subnormal
elements exactly on A5."""

class _TLRELU(Instruction):
    def __call__(self, dst: Tile, src: Tile, scalar: float, *events: Wait) -> RecordEvent: ...

TLRELU: _TLRELU
"""Multiply the elements that are not positive by a slope, the scalar (leaky ReLU).

`dst = src if src > 0 else src * scalar`; zero and NaN take the product."""

class _TMATMUL(Instruction):
    def __call__(
        self, cMatrix: Tile, aMatrix: Tile, bMatrix: Tile, *events: Wait, Phase: Any = ...
    ) -> RecordEvent: ...

TMATMUL: _TMATMUL
"""Multiply two matrices into a fresh accumulator.

m is the valid rows of aMatrix, k its valid columns, n the valid columns of bMatrix; the valid
region of cMatrix is not looked at. Elements beyond k do not contribute. Afterwards the m x n
result is defined and the rest of the touched 16x16 accumulator boxes is not: on A2/A3 a product
with m == 1 really computes 16 rows, so use TGEMV for one row.

int8 products are summed in int32 modulo 2^32, floats in float32 (in f16 on Kirin). The phase is
the unit flag for the store that follows and has no effect on numbers."""

class _TMATMUL_ACC(Instruction):
    @overload
    def __call__(
        self,
        cOutMatrix: Tile,
        cInMatrix: Tile,
        aMatrix: Tile,
        bMatrix: Tile,
        *events: Wait,
        Phase: Any = ...,
    ) -> RecordEvent: ...
    @overload
    def __call__(
        self, cOutMatrix: Tile, aMatrix: Tile, bMatrix: Tile, *events: Wait, Phase: Any = ...
    ) -> RecordEvent: ...

TMATMUL_ACC: _TMATMUL_ACC
"""Multiply two matrices and add the product to an accumulator.

Sizes, element types and what is left undefined are those of TMATMUL. The hardware adds to what
cOutMatrix holds; cInMatrix must be the same storage and may be left out."""

class _TMATMUL_BIAS(Instruction):
    def __call__(
        self,
        cMatrix: Tile,
        aMatrix: Tile,
        bMatrix: Tile,
        biasData: Tile,
        *events: Wait,
        Phase: Any = ...,
    ) -> RecordEvent: ...

TMATMUL_BIAS: _TMATMUL_BIAS
"""Multiply two matrices, every column of the accumulator starting from its bias.

Sizes, element types and what is left undefined are those of TMATMUL; biasData is one row of n
elements of the accumulator's type."""

class _TMATMUL_MX(Instruction):
    @overload
    def __call__(
        self,
        cMatrix: Tile,
        aMatrix: Tile,
        aScaleMatrix: Tile,
        bMatrix: Tile,
        bScaleMatrix: Tile,
        *events: Wait,
        Phase: Any = ...,
    ) -> RecordEvent: ...
    @overload
    def __call__(
        self,
        cMatrix: Tile,
        cInMatrix: Tile,
        aMatrix: Tile,
        aScaleMatrix: Tile,
        bMatrix: Tile,
        bScaleMatrix: Tile,
        *events: Wait,
        Phase: Any = ...,
    ) -> RecordEvent: ...
    @overload
    def __call__(
        self,
        cMatrix: Tile,
        aMatrix: Tile,
        aScaleMatrix: Tile,
        bMatrix: Tile,
        bScaleMatrix: Tile,
        biasData: Tile,
        *events: Wait,
        Phase: Any = ...,
    ) -> RecordEvent: ...

TMATMUL_MX: _TMATMUL_MX
"""Multiply two block-scaled matrices: fp8 or fp4 elements, one e8m0 scale per 32 along K.

Each product is a * 2^(sa - 127) * b * 2^(sb - 127). The sum starts from zero, from the old
contents of the accumulator (cInMatrix, which must be the storage of cMatrix) or from a bias per
column. m, k and n and what is left undefined are as in TMATMUL, but k is the padded K, a
multiple of 64, and the padding must be zero. The hardware takes the scales from a sixteenth of
the data's address, so the scale tiles must be bound there. Scale 0xFF counts as NaN."""

class _TMATMUL_MX_HIF4(Instruction):
    @overload
    def __call__(
        self,
        cMatrix: Tile,
        aMatrix: Tile,
        aScaleMatrix: Tile,
        bMatrix: Tile,
        bScaleMatrix: Tile,
        *events: Wait,
        Phase: Any = ...,
    ) -> RecordEvent: ...
    @overload
    def __call__(
        self,
        cMatrix: Tile,
        cInMatrix: Tile,
        aMatrix: Tile,
        aScaleMatrix: Tile,
        bMatrix: Tile,
        bScaleMatrix: Tile,
        *events: Wait,
        Phase: Any = ...,
    ) -> RecordEvent: ...
    @overload
    def __call__(
        self,
        cMatrix: Tile,
        aMatrix: Tile,
        aScaleMatrix: Tile,
        bMatrix: Tile,
        bScaleMatrix: Tile,
        biasData: Tile,
        *events: Wait,
        Phase: Any = ...,
    ) -> RecordEvent: ...

TMATMUL_MX_HIF4: _TMATMUL_MX_HIF4
"""Multiply HiFloat4 matrices with three-level scales; no supported device has it.

TMATMUL_MX on hif4x2 tiles: an element is its e1m2 code times an e6m2 scale per 64 elements of
K, a power of two per 8 and another per 4 elements. Only the newer A6 generation accepts the
type."""

class _TMAX(Instruction):
    def __call__(self, dst: Tile, src0: Tile, src1: Tile, *events: Wait) -> RecordEvent: ...

TMAX: _TMAX
"""Take the larger of two elements.

Keep NaN out of the sources: what becomes of it is up to the hardware, as is the sign of a zero
taken from +0 and -0."""

class _TMAXS(Instruction):
    def __call__(self, dst: Tile, src: Tile, scalar: float, *events: Wait) -> RecordEvent: ...

TMAXS: _TMAXS
"""Replace elements below a scalar by it.

Keep NaN out of both operands: what becomes of it is up to the hardware, as is the sign of a
zero taken from +0 and -0."""

class _TMIN(Instruction):
    def __call__(self, dst: Tile, src0: Tile, src1: Tile, *events: Wait) -> RecordEvent: ...

TMIN: _TMIN
"""Take the smaller of two elements.

Keep NaN out of the sources: what becomes of it is up to the hardware, as is the sign of a zero
taken from +0 and -0."""

class _TMINS(Instruction):
    def __call__(self, dst: Tile, src: Tile, scalar: float, *events: Wait) -> RecordEvent: ...

TMINS: _TMINS
"""Replace elements above a scalar by it.

Keep NaN out of both operands: what becomes of it is up to the hardware, as is the sign of a
zero taken from +0 and -0."""

class _TMOV(Instruction):
    @overload
    def __call__(
        self,
        dst: Tile,
        src: Tile | ConvTile,
        *events: Wait,
        reluPreMode: Any = ...,
        accToVecMode: Any = ...,
        stPhase: Any = ...,
        grp_axis: Any = ...,
    ) -> RecordEvent: ...
    @overload
    def __call__(
        self,
        dst: Tile,
        src: Tile | ConvTile,
        preQuantScalar: int,
        *events: Wait,
        reluPreMode: Any = ...,
        accToVecMode: Any = ...,
        stPhase: Any = ...,
        grp_axis: Any = ...,
    ) -> RecordEvent: ...
    @overload
    def __call__(
        self,
        dst: Tile,
        src: Tile | ConvTile,
        fp: Tile,
        *events: Wait,
        reluPreMode: Any = ...,
        accToVecMode: Any = ...,
        stPhase: Any = ...,
        grp_axis: Any = ...,
    ) -> RecordEvent: ...
    @overload
    def __call__(
        self,
        dst: Tile,
        src: Tile | ConvTile,
        tmp: Tile,
        *events: Wait,
        reluPreMode: Any = ...,
        accToVecMode: Any = ...,
        stPhase: Any = ...,
        grp_axis: Any = ...,
    ) -> RecordEvent: ...

TMOV: _TMOV
"""Move a tile to another memory space or layout; element (r, c) stays element (r, c).

Which spaces can be connected depends on the target. From Mat the whole capacity moves, in
compact tiles the valid boxes; a half or bfloat16 row is widened when it becomes a float bias.
Between vector tiles the common valid region moves; A2A3 copies whole 32-byte blocks and leaves
the rest of the last block of each row unspecified. An accumulator is converted on the way, see
the fix pipe: plainly, with one quantisation word (`preQuantScalar`) or one per column (`fp`),
then ReLU. Into an NZ Mat tile it writes all rows and whole boxes of columns.

A mode that names a vector core writes to the address of dst in the memory of that core; the
dual modes give half of the rows or columns to each; into NZ tiles they divide all rows of src,
and its columns in whole boxes. Tiles that were placed automatically have no other side: there a
core sees the half of its own sub-block. With `tmp`, scale factors become
ZZ boxes: rows are filled up to 16 with zeros, and the source rows read as filling are
overwritten. Elements outside the source's valid region may be undefined and stay undefined in
dst."""

class _TMOV_FP(Instruction):
    def __call__(
        self,
        dst: Tile,
        src: Tile,
        fp: Tile,
        *events: Wait,
        reluPreMode: Any = ...,
        stPhase: Any = ...,
    ) -> RecordEvent: ...

TMOV_FP: _TMOV_FP
"""Move an accumulator with a quantisation word per column: dst(r, c) = quant(src(r, c), fp[c]).

The region is that of TMOV from an accumulator. `fp` must stay unchanged until the move is done."""

class _TMRGSORT(Instruction):
    @overload
    def __call__(
        self, dst: Tile, src0: Tile, blockLen: int, *events: Wait, exhausted: Any = ...
    ) -> RecordEvent: ...
    @overload
    def __call__(
        self,
        dst: Tile,
        executedNumList: Any,
        tmp: Tile,
        src0: Tile,
        src1: Tile,
        *events: Wait,
        exhausted: Any = ...,
    ) -> RecordEvent: ...
    @overload
    def __call__(
        self,
        dst: Tile,
        executedNumList: Any,
        tmp: Tile,
        src0: Tile,
        src1: Tile,
        src2: Tile,
        *events: Wait,
        exhausted: Any = ...,
    ) -> RecordEvent: ...
    @overload
    def __call__(
        self,
        dst: Tile,
        executedNumList: Any,
        tmp: Tile,
        src0: Tile,
        src1: Tile,
        src2: Tile,
        src3: Tile,
        *events: Wait,
        exhausted: Any = ...,
    ) -> RecordEvent: ...

TMRGSORT: _TMRGSORT
"""Merge descending lists of 8-byte records, as TSORT32 makes them, into one.

`TMRGSORT(dst, src, blockLen)` merges every four neighbouring blocks of blockLen elements.
`TMRGSORT[exhausted](dst, executed, tmp, src0, src1 ...)` merges two to four lists, as long as
the valid columns of their tiles, into tmp, and copies as much as the valid columns of dst ask
for: a shorter dst receives the top. With exhausted the merge stops as soon as one list is used
up, and `executed` tells how many records were taken from each; what lies past them in dst is
what tmp held there. Equal values keep the order of the lists."""

class _TMUL(Instruction):
    def __call__(self, dst: Tile, src0: Tile, src1: Tile, *events: Wait) -> RecordEvent: ...

TMUL: _TMUL
"""Multiply two tiles.

Integer products keep their low bits. Unlike TADD and TSUB, no target multiplies 8-bit elements."""

class _TMULADDDST(Instruction):
    def __call__(self, dst: Tile, src0: Tile, src1: Tile, *events: Wait) -> RecordEvent: ...

TMULADDDST: _TMULADDDST
"""Add a product to the destination: `dst = src0 * src1 + dst`."""

class _TMULS(Instruction):
    def __call__(self, dst: Tile, src: Tile, scalar: float, *events: Wait) -> RecordEvent: ...

TMULS: _TMULS
"""Multiply every element by a scalar.

Integer products keep their low bits. No target multiplies 8-bit elements."""

class _TNEG(Instruction):
    def __call__(self, dst: Tile, src: Tile, *events: Wait) -> RecordEvent: ...

TNEG: _TNEG
"""Negate. The instruction is TMULS with the scalar -1; integers, signed or not, wrap around."""

class _TNOT(Instruction):
    def __call__(self, dst: Tile, src: Tile, *events: Wait) -> RecordEvent: ...

TNOT: _TNOT
"""Complement every bit."""

class _TOR(Instruction):
    def __call__(self, dst: Tile, src0: Tile, src1: Tile, *events: Wait) -> RecordEvent: ...

TOR: _TOR
"""Combine two tiles with bitwise OR.

A2/A3 processes bytes in pairs: with an odd number of valid columns it also overwrites the byte
past each row of an 8-bit tile, with unspecified contents."""

class _TORS(Instruction):
    def __call__(self, dst: Tile, src: Tile, scalar: float, *events: Wait) -> RecordEvent: ...

TORS: _TORS
"""Combine every element with a scalar by bitwise OR.

A2/A3 puts the scalar into dst first, so dst must not be src there; with an odd number of valid
columns it also overwrites the byte past each row of an 8-bit tile."""

class _TPACK(Instruction):
    def __call__(self, dst: Tile, src: Tile, *events: Wait) -> RecordEvent: ...

TPACK: _TPACK
"""Reserved: the name of an instruction that no target has. Use TCVT.

The instruction pages announce a conversion that packs narrow elements, without saying what it
does, and nothing implements it. The name is known so that text which uses it can be read and
answered."""

class _TPAIRREDUCESUM(Instruction):
    def __call__(self, dst: Tile, src0: Tile, *events: Wait) -> RecordEvent: ...

TPAIRREDUCESUM: _TPAIRREDUCESUM
"""Add neighbouring pairs of each row: dst(r, k) = src0(r, 2k) + src0(r, 2k + 1).

The sums fill the first half of the valid columns. Devices leave the other half as it was and
drop an odd last element; the `cpu` profile keeps a lone last element and clears the rest of
dst, as the simulator does. Use even widths and clear dst first when zeros are needed."""

class _TPARTADD(Instruction):
    def __call__(self, dst: Tile, src0: Tile, src1: Tile, *events: Wait) -> RecordEvent: ...

TPARTADD: _TPARTADD
"""Add two tiles where both are defined, and copy the one that is where only one is.

The valid region of dst governs; one source has the same, the other may have fewer rows and
columns, down to none. Integers wrap. dst may be the full source. When a2a3 copies, it also
overwrites padding columns of dst."""

class _TPARTARGMAX(Instruction):
    def __call__(
        self,
        dstVal: Tile,
        src0Val: Tile,
        src1Val: Tile,
        dstIdx: Tile,
        src0Idx: Tile,
        src1Idx: Tile,
        *events: Wait,
    ) -> RecordEvent: ...

TPARTARGMAX: _TPARTARGMAX
"""Keep the larger of two values together with its index; copy where only one is defined.

The regions are as for TPARTADD, and every index tile has the region of its value tile. Equal
values keep src0. With NaN targets differ: a2a3 takes src1 whenever one value is NaN, others
src0. The permissive profile takes src1 for equal values and for NaN."""

class _TPARTARGMIN(Instruction):
    def __call__(
        self,
        dstVal: Tile,
        src0Val: Tile,
        src1Val: Tile,
        dstIdx: Tile,
        src0Idx: Tile,
        src1Idx: Tile,
        *events: Wait,
    ) -> RecordEvent: ...

TPARTARGMIN: _TPARTARGMIN
"""Keep the smaller of two values together with its index; copy where only one is defined.

The regions are as for TPARTADD, and every index tile has the region of its value tile. Equal
values keep src0. With NaN targets differ: a2a3 takes src1 whenever one value is NaN, others
src0. The permissive profile takes src1 for equal values and for NaN."""

class _TPARTMAX(Instruction):
    def __call__(self, dst: Tile, src0: Tile, src1: Tile, *events: Wait) -> RecordEvent: ...

TPARTMAX: _TPARTMAX
"""Take the larger element where both tiles are defined; copy where only one is.

The regions are as for TPARTADD. The result is one of the elements, bit for bit; keep the data
free of NaN."""

class _TPARTMIN(Instruction):
    def __call__(self, dst: Tile, src0: Tile, src1: Tile, *events: Wait) -> RecordEvent: ...

TPARTMIN: _TPARTMIN
"""Take the smaller element where both tiles are defined; copy where only one is.

The regions are as for TPARTADD. The result is one of the elements, bit for bit; keep the data
free of NaN."""

class _TPARTMUL(Instruction):
    def __call__(self, dst: Tile, src0: Tile, src1: Tile, *events: Wait) -> RecordEvent: ...

TPARTMUL: _TPARTMUL
"""Multiply two tiles where both are defined, and copy the one that is where only one is.

The regions are as for TPARTADD. Integers wrap."""

class _TPOP(Instruction):
    @overload
    def __call__(self, pipe: Any, tile: Tile, *events: Wait, Split: Any = ...) -> RecordEvent: ...
    @overload
    def __call__(
        self, pipe: Any, tile: Tile, subBlockId: int, *events: Wait, Split: Any = ...
    ) -> RecordEvent: ...
    @overload
    def __call__(
        self, pipe: Any, gmTensor: GlobalTensor, *events: Wait, Split: Any = ...
    ) -> RecordEvent: ...
    @overload
    def __call__(self, tile: Tile, pipe: Any, *events: Wait, Split: Any = ...) -> RecordEvent: ...

TPOP: _TPOP
"""Wait for the next entry and take it, as a tile or as a GlobalTensor view of its slot.

Where the ring lies in global memory the entry is loaded into the consumer's local ring:
the tile is bound to local slot `index % LocalSlotNum`, so it is overwritten LocalSlotNum pops
later, and the slot is given back at once, every SyncPeriod entries. Where the ring lies in the
consumer's own memory (A5) the tile becomes the slot itself, and TFREE must follow its last
use. A GlobalTensor is only pointed at the slot, which TFREE gives back. A split pop reads the
half of its vector core; with the odd splits vector core 0 has one row or column more."""

class _TPOW(Instruction):
    def __call__(
        self, dst: Tile, base: Tile, exp: Tile, tmp: Tile, *events: Wait, PrecisionType: Any = ...
    ) -> RecordEvent: ...

TPOW: _TPOW
"""Raise the first tile to the powers in the second.

x ** 0 is 1 for every x. Integers wrap around, and a negative exponent gives 0 except for a base
of 1 or -1. Floats follow C's pow: a negative base needs a whole exponent, else the result is
NaN. A2/A3 ignores the sign of a zero base and needs four separate tiles for f32; other
targets do not touch `tmp`. HIGH_PRECISION is for the floats of A5; other targets ignore it."""

class _TPOWS(Instruction):
    def __call__(
        self, dst: Tile, base: Tile, exp: float, tmp: Tile, *events: Wait, PrecisionType: Any = ...
    ) -> RecordEvent: ...

TPOWS: _TPOWS
"""Raise every element to the same power.

x ** 0 is 1 for every x. Integers wrap around, and a negative exponent gives 0 except for a base
of 1 or -1. Floats follow C's pow: a negative base needs a whole exponent, else the result is
NaN. A2/A3 ignores the sign of a zero base and needs three separate tiles for f32; other
targets do not touch `tmp`. HIGH_PRECISION is for the floats of A5; other targets ignore it."""

class _TPREFETCH(Instruction):
    def __call__(self, dst: Tile, src: GlobalTensor, *events: Wait) -> RecordEvent: ...

TPREFETCH: _TPREFETCH
"""Pull a region of global memory towards the core by reading it through a scratch Vec tile.

Every slice of the view is read once, in pieces that fit into `dst`, each overwriting the last:
afterwards the contents of `dst` are unspecified and only the cache is warmer. The instruction
waits for no events. The permissive profile leaves the first elements of the view, in memory
order, in the valid region of `dst`."""

class _TPREFETCH_ASYNC(Instruction):
    def __call__(
        self, src: GlobalTensor, context: PrefetchAsyncContext, *events: Wait
    ) -> AsyncEvent: ...

TPREFETCH_ASYNC: _TPREFETCH_ASYNC
"""Ask the DMA engine to bring a contiguous range of global memory into the L2 cache.

Returns an AsyncEvent; `event.Wait(context.GetSession())` waits for it, and no result ever
depends on it. A context with a session of its own uses the first 256 bytes of UB as scratch for
each call: keep live data elsewhere. In auto mode and on the permissive profile nothing happens."""

class _TPRELU(Instruction):
    def __call__(
        self, dst: Tile, src0: Tile, src1: Tile, tmp: Tile, *events: Wait
    ) -> RecordEvent: ...

TPRELU: _TPRELU
"""Multiply the elements that are not positive by a slope of their own.

`dst = src0 if src0 > 0 else src0 * src1`; zero and NaN take the product. A2/A3 needs `tmp` and
a destination apart from src0; other targets do not touch `tmp`."""

class _TPRINT(Instruction):
    @overload
    def __call__(
        self, src: Tile | GlobalTensor, *events: Wait, Format: Any = ...
    ) -> RecordEvent: ...
    @overload
    def __call__(
        self, src: Tile | GlobalTensor, tmp: GlobalTensor, *events: Wait, Format: Any = ...
    ) -> RecordEvent: ...

TPRINT: _TPRINT
"""Print a tile or a global tensor to standard output. A debugging aid: it orders all pipes.

A tile is printed whole, in logical rows and columns whatever its layout: a title with element
type, layout and tile type, a line with shape and valid shape, then the rows, with `|` after
the last valid column and a dashed line below the last valid row. `?` stands for an element that
nothing has written. A GlobalTensor is printed batch by batch, one in NZ layout as its logical
matrix. Numbers are right-aligned, floats with a fixed number of digits: 8 wide with 4 or 2
digits, or 10 wide with 6. A tile that the scalar unit cannot see (Acc, Mat) is copied to tmp
first. The permissive profile prints `TPRINT rows x cols` and the valid region only. Devices
need a debug build (`-D_DEBUG --cce-enable-print`)."""

class _TPUSH(Instruction):
    @overload
    def __call__(
        self, pipe: Any, tile: Tile, *events: Wait, Split: Any = ..., Config: Any = ...
    ) -> RecordEvent: ...
    @overload
    def __call__(
        self,
        pipe: Any,
        tile: Tile,
        subBlockId: int,
        *events: Wait,
        Split: Any = ...,
        Config: Any = ...,
    ) -> RecordEvent: ...
    @overload
    def __call__(
        self, pipe: Any, gmTensor: GlobalTensor, *events: Wait, Split: Any = ..., Config: Any = ...
    ) -> RecordEvent: ...
    @overload
    def __call__(
        self, tile: Tile, pipe: Any, *events: Wait, Split: Any = ..., Config: Any = ...
    ) -> RecordEvent: ...

TPUSH: _TPUSH
"""Hand one entry to the consumer: write a tile into the ring, or commit an allocated slot.

With a tile: wait for free space as TALLOC does, write exactly the valid region into the slot,
advance the index, and raise the ready flag unless `setRecordStatus(False)`. With a
GlobalTensor: only raise the ready flag. An accumulator goes as a whole; each vector core
writes its own part. With a `FixpipeParams` in the brackets the accumulator is converted on
its way, with the parameters of SET_QUANT_SCALAR or SET_QUANT_VECTOR. The tile may be reused
when its pipe has finished, not when the call returns."""

class _TQUANT(Instruction):
    @overload
    def __call__(
        self, dst: Tile, src: Tile, scale: Tile, *events: Wait, quant_type: Any = ...
    ) -> RecordEvent: ...
    @overload
    def __call__(
        self, dst: Tile, src: Tile, scale: Tile, tmp: Tile, *events: Wait, quant_type: Any = ...
    ) -> RecordEvent: ...
    @overload
    def __call__(
        self, dst: Tile, src: Tile, scale: Tile, offset: Tile, *events: Wait, quant_type: Any = ...
    ) -> RecordEvent: ...
    @overload
    def __call__(
        self,
        dst: Tile,
        src: Tile,
        scale: Tile,
        tmp: Tile,
        offset: Tile,
        *events: Wait,
        quant_type: Any = ...,
    ) -> RecordEvent: ...

TQUANT: _TQUANT
"""Quantise f32 rows to 8-bit integers.

`INT8_SYM`: round(src * scale) as i8; `INT8_ASYM`: round(src * scale + offset) as u8. scale and
offset hold one f32 per row; scale is the reciprocal of the quantisation step, it multiplies.
The product and the sum are f32 operations; the result is rounded to nearest, ties to even, and
saturates; NaN becomes 0. The valid region of src rules. A2/A3 needs a tmp tile and leaves src
undefined; elsewhere tmp may be given and is ignored.

The same name with an `MxQuantAlg`, `QuantType.MXFP8` or `QuantType.MXFP4_E2M1` quantises to
microscaling formats: see TQUANT_MX and TQUANT_DN."""

class _TQUANT_DN(Instruction):
    def __call__(
        self,
        dst: Tile,
        src: Tile,
        exp: Tile,
        max: Tile,
        scaling: Tile,
        *events: Wait,
        grp_axis: Any = ...,
        mx_alg: Any = ...,
        quant_type: Any = ...,
        scale_alg: Any = ...,
        interleave: Any = ...,
    ) -> RecordEvent: ...

TQUANT_DN: _TQUANT_DN
"""Quantise to MXFP8 or MXFP4; 32 consecutive elements of a column share an exponent.

Written `TQUANT[0, MxQuantAlg.OcpMxFp8E4M3](dst, src, exp, max, scaling)`. Row p, column j of
exp, max and scaling belongs to rows 32 p .. 32 p + 31 of column j; columns beyond the valid
ones are untouched. With `interleave` (third bracket argument) the exponents of two neighbouring
groups of a column are neighbours in memory: exp[p // 2, 2 j + p % 2]. Otherwise as TQUANT_MX."""

class _TQUANT_HIF4(Instruction):
    def __call__(
        self, dst: Tile, src: Tile, exp: Tile, max: Tile, scaling: Tile, *events: Wait
    ) -> RecordEvent: ...

TQUANT_HIF4: _TQUANT_HIF4
"""Quantise bf16 to HiFloat4 with three-level scales; no supported device has it.

In C++ it is TQUANT with MxQuantAlg::Hif4, which the MX forms of TQUANT refuse by name."""

class _TQUANT_MX(Instruction):
    @overload
    def __call__(
        self,
        dst: Tile,
        src: Tile,
        exp: Tile,
        max: Tile,
        scaling: Tile,
        *events: Wait,
        quant_type: Any = ...,
        scale_alg: Any = ...,
        store_mode: Any = ...,
        grp_axis: Any = ...,
        mx_alg: Any = ...,
    ) -> RecordEvent: ...
    @overload
    def __call__(
        self,
        dst: Tile,
        src: Tile,
        exp: Tile,
        max: Tile,
        scaling: Tile,
        exp_zz: Tile,
        *events: Wait,
        quant_type: Any = ...,
        scale_alg: Any = ...,
        store_mode: Any = ...,
        grp_axis: Any = ...,
        mx_alg: Any = ...,
    ) -> RecordEvent: ...

TQUANT_MX: _TQUANT_MX
"""Quantise to MXFP8 (E4M3) or MXFP4 (E2M1); 32 consecutive elements of a row share an exponent.

Written `TQUANT[QuantType.MXFP8](...)`, with `QuantScaleAlg.NV` for the other scale algorithm,
or `TQUANT[1, MxQuantAlg.NvMxFp8E4M3](...)`. dst gets the codes, exp the exponent bytes; max and
scaling are scratch that holds one word per group. Codes are rounded to nearest, ties to even,
and saturate; a NaN makes its whole group NaN (exponent 0xFF; E2M1 has no NaN and stores +6).

Storage: with exp.Rows == 1 all groups of all padded rows follow one another in exp, max and
scaling. Otherwise row i of exp holds the ceil(valid columns / 32) exponents of row i, max and
scaling hold them packed, and max is left undefined. Padding columns of an f16 or bf16 src are
set to 0 first, in src itself. 16-bit scales are stored as the bits of a bf16. `VecStoreMode.NZ`
also writes the exponents to exp_zz in blocks of 16 rows and 2 groups (simulator only)."""

class _TRANDOM(Instruction):
    def __call__(
        self,
        dst: Tile,
        key0: int,
        key1: int,
        counter0: int,
        counter1: int,
        counter2: int,
        counter3: int,
        *events: Wait,
        Rounds: Any = ...,
    ) -> RecordEvent: ...

TRANDOM: _TRANDOM
"""Fill a tile with random 32-bit words (Philox4x32, 7 or 10 rounds).

The call is `TRANDOM(dst, key, counter)` with two key words and four counter words, word 0 the
least significant. Each 128-bit counter value makes four neighbouring elements. A row takes its
counters in steps of 64, one step per 256 columns; after the last step of a row the counter
advances by (valid columns - 1) % 64 + 1, so that rows may share counters or skip some. The
caller's counter does not change: to continue the stream, advance it by the same total."""

class _TRECIP(Instruction):
    def __call__(
        self, dst: Tile, src: Tile, *events: Wait, PrecisionType: Any = ...
    ) -> RecordEvent: ...

TRECIP: _TRECIP
"""Take the reciprocal; 1 / 0 is an infinity.

The instruction is TDIVS with the scalar 1 as dividend, and HIGH_PRECISION means what it means
there; it may be written as that of TDIVS. A2/A3 fills the destination with ones first, so there
it must not be the source."""

class _TRELU(Instruction):
    def __call__(self, dst: Tile, src: Tile, *events: Wait) -> RecordEvent: ...

TRELU: _TRELU
"""Replace negative elements by zero. What becomes of NaN and -0 is up to the hardware."""

class _TREM(Instruction):
    def __call__(
        self, dst: Tile, src0: Tile, src1: Tile, tmp: Tile, *events: Wait, PrecisionType: Any = ...
    ) -> RecordEvent: ...

TREM: _TREM
"""Take the remainder of a division; its sign is that of the divisor.

`dst = src0 - floor(src0 / src1) * src1`. Floats round the quotient on the way, so the result is
good only while |src0 / src1| < 2^24; HIGH_PRECISION makes f32 exact on A5. A zero divisor gives
NaN. 64-bit integers are the exception to the rule: A5 gives their remainder the sign of the
dividend, and x mod 0 is 0. A2/A3 computes i32 in f32, exactly up to 2^24, needs `tmp`, and
destroys both sources of i32; other targets do not touch `tmp`."""

class _TREMS(Instruction):
    def __call__(
        self,
        dst: Tile,
        src: Tile,
        scalar: float,
        tmp: Tile,
        *events: Wait,
        PrecisionType: Any = ...,
    ) -> RecordEvent: ...

TREMS: _TREMS
"""Take the remainder of a division by a scalar; its sign is that of the scalar.

`dst = src - floor(src / scalar) * scalar`. Floats round the quotient on the way, so the result
is good only while |src / scalar| < 2^24; A5 does not mend a result that this puts on the wrong
side of zero, but HIGH_PRECISION makes f32 exact there. A zero scalar gives NaN. A5 gives the
remainder of 64-bit integers the sign of the dividend, and x mod 0 is 0. A2/A3 computes i32 in
f32, exactly up to 2^24, needs `tmp`, destroys an i32 src, and decides from the first 64 columns
of a row which others are mended; other targets do not touch `tmp`."""

class _TRESHAPE(Instruction):
    def __call__(
        self, dst: Tile | ConvTile, src: Tile | ConvTile, *events: Wait
    ) -> RecordEvent: ...

TRESHAPE: _TRESHAPE
"""Let dst denote the bytes of src under its own type. No data moves.

Both names share the storage from now on: a write through one is seen through the other. The
bits are reinterpreted, not converted; the valid region is the one dst declares, and nothing is
filtered or filled. In auto mode the call is an alias declaration and is not checked, also
between a Tile and a ConvTile."""

class _TROWARGMAX(Instruction):
    @overload
    def __call__(self, dstIdx: Tile, src: Tile, tmp: Tile, *events: Wait) -> RecordEvent: ...
    @overload
    def __call__(
        self, dstVal: Tile, dstIdx: Tile, src: Tile, tmp: Tile, *events: Wait
    ) -> RecordEvent: ...

TROWARGMAX: _TROWARGMAX
"""Store the column index of the maximum of every row in column 0 of dstIdx.

The valid region of src governs; of equal maxima the first wins. `TROWARGMAX(dstVal,
dstIdx, src, tmp)` also stores the maximum itself, bit for bit, in column 0 of dstVal.
tmp is scratch that only a2a3 uses."""

class _TROWARGMIN(Instruction):
    @overload
    def __call__(self, dstIdx: Tile, src: Tile, tmp: Tile, *events: Wait) -> RecordEvent: ...
    @overload
    def __call__(
        self, dstVal: Tile, dstIdx: Tile, src: Tile, tmp: Tile, *events: Wait
    ) -> RecordEvent: ...

TROWARGMIN: _TROWARGMIN
"""Store the column index of the minimum of every row in column 0 of dstIdx.

The valid region of src governs; of equal minima the first wins. `TROWARGMIN(dstVal,
dstIdx, src, tmp)` also stores the minimum itself, bit for bit, in column 0 of dstVal.
tmp is scratch that only a2a3 uses."""

class _TROWEXPAND(Instruction):
    def __call__(self, dst: Tile, src: Tile, *events: Wait) -> RecordEvent: ...

TROWEXPAND: _TROWEXPAND
"""Copy column 0 of every row of src to all valid columns of that row of dst.

The valid region of dst governs; other columns of src are ignored. On a2a3 tiles of bytes with
an odd number of valid columns also get the value in the next column."""

class _TROWEXPANDADD(Instruction):
    @overload
    def __call__(self, dst: Tile, src0: Tile, src1: Tile, *events: Wait) -> RecordEvent: ...
    @overload
    def __call__(
        self, dst: Tile, src0: Tile, src1: Tile, tmp: Tile, *events: Wait
    ) -> RecordEvent: ...

TROWEXPANDADD: _TROWEXPANDADD
"""Add a value per row to a tile: dst = src0 + src1, where one source has one value per row.

The valid region of dst governs and dst may be the full source. The per-row source is a column,
or holds 32 bytes per row that repeat along it. On a2a3 a column is spread out in tmp or, when
there is none, in UB bytes 188416 to 196608, whose contents are lost. Integers wrap."""

class _TROWEXPANDDIV(Instruction):
    @overload
    def __call__(
        self, dst: Tile, src0: Tile, src1: Tile, *events: Wait, PrecisionType: Any = ...
    ) -> RecordEvent: ...
    @overload
    def __call__(
        self, dst: Tile, src0: Tile, src1: Tile, tmp: Tile, *events: Wait, PrecisionType: Any = ...
    ) -> RecordEvent: ...

TROWEXPANDDIV: _TROWEXPANDDIV
"""Divide with one value per row: dst = src0 / src1, where one source has one value per row.

The operands keep their order whichever is the per-row source.
Integers are truncated toward zero; what division by zero gives is not defined for them (0
here). HIGH_PRECISION asks a5 for the correctly rounded quotient of floats. Layout, tmp and the
UB scratch of a2a3 are as for TROWEXPANDADD."""

class _TROWEXPANDEXPDIF(Instruction):
    @overload
    def __call__(self, dst: Tile, src0: Tile, src1: Tile, *events: Wait) -> RecordEvent: ...
    @overload
    def __call__(
        self, dst: Tile, src0: Tile, src1: Tile, tmp: Tile, *events: Wait
    ) -> RecordEvent: ...

TROWEXPANDEXPDIF: _TROWEXPANDEXPDIF
"""Compute exp(src0 - src1), where one source has one value per row: the core of a softmax.

The operands keep their order whichever is the per-row source.
The difference is rounded to the element type before the exponential, except for f32 on a5.
Layout, tmp and the UB scratch of a2a3 are as for TROWEXPANDADD."""

class _TROWEXPANDMAX(Instruction):
    @overload
    def __call__(self, dst: Tile, src0: Tile, src1: Tile, *events: Wait) -> RecordEvent: ...
    @overload
    def __call__(
        self, dst: Tile, src0: Tile, src1: Tile, tmp: Tile, *events: Wait
    ) -> RecordEvent: ...

TROWEXPANDMAX: _TROWEXPANDMAX
"""Take the larger of an element and the value of its row; one source has one value per row.

Layout, tmp and the UB scratch of a2a3 are as for TROWEXPANDADD. Keep the data free of NaN."""

class _TROWEXPANDMIN(Instruction):
    @overload
    def __call__(self, dst: Tile, src0: Tile, src1: Tile, *events: Wait) -> RecordEvent: ...
    @overload
    def __call__(
        self, dst: Tile, src0: Tile, src1: Tile, tmp: Tile, *events: Wait
    ) -> RecordEvent: ...

TROWEXPANDMIN: _TROWEXPANDMIN
"""Take the smaller of an element and the value of its row; one source has one value per row.

Layout, tmp and the UB scratch of a2a3 are as for TROWEXPANDADD. Keep the data free of NaN."""

class _TROWEXPANDMUL(Instruction):
    @overload
    def __call__(self, dst: Tile, src0: Tile, src1: Tile, *events: Wait) -> RecordEvent: ...
    @overload
    def __call__(
        self, dst: Tile, src0: Tile, src1: Tile, tmp: Tile, *events: Wait
    ) -> RecordEvent: ...

TROWEXPANDMUL: _TROWEXPANDMUL
"""Multiply a tile by a value per row: dst = src0 * src1; one source has one value per row.

Layout, tmp and the UB scratch of a2a3 are as for TROWEXPANDADD. Integers wrap."""

class _TROWEXPANDSUB(Instruction):
    @overload
    def __call__(self, dst: Tile, src0: Tile, src1: Tile, *events: Wait) -> RecordEvent: ...
    @overload
    def __call__(
        self, dst: Tile, src0: Tile, src1: Tile, tmp: Tile, *events: Wait
    ) -> RecordEvent: ...

TROWEXPANDSUB: _TROWEXPANDSUB
"""Subtract with one value per row: dst = src0 - src1, where one source has one value per row.

The operands keep their order whichever is the per-row source. Layout, tmp and the UB scratch
of a2a3 are as for TROWEXPANDADD. Integers wrap."""

class _TROWMAX(Instruction):
    def __call__(self, dst: Tile, src: Tile, tmp: Tile, *events: Wait) -> RecordEvent: ...

TROWMAX: _TROWMAX
"""Store the maximum of every row of src in column 0 of dst.

The valid region of src governs. The result is one of the elements, bit for bit; keep the data
free of NaN. tmp is scratch that only a2a3 uses; one of the type and shape of src is always
large enough."""

class _TROWMIN(Instruction):
    def __call__(self, dst: Tile, src: Tile, tmp: Tile, *events: Wait) -> RecordEvent: ...

TROWMIN: _TROWMIN
"""Store the minimum of every row of src in column 0 of dst.

The valid region of src governs. The result is one of the elements, bit for bit; keep the data
free of NaN. tmp is scratch that only a2a3 uses; one of the type and shape of src is always
large enough."""

class _TROWPROD(Instruction):
    def __call__(self, dst: Tile, src: Tile, tmp: Tile, *events: Wait) -> RecordEvent: ...

TROWPROD: _TROWPROD
"""Multiply every row of src into column 0 of dst.

The valid region of src governs. Products are rounded to the element type at every step;
integers wrap. tmp is scratch that only a2a3 uses: one 32-byte block."""

class _TROWSUM(Instruction):
    def __call__(self, dst: Tile, src: Tile, tmp: Tile, *events: Wait) -> RecordEvent: ...

TROWSUM: _TROWSUM
"""Sum every row of src into column 0 of dst.

The valid region of src governs. Sums are formed in the element type: f16 rounds, and overflows
to infinity, at every step; integers wrap. tmp is scratch that only a2a3 uses; one of the type
and shape of src is always large enough. The permissive profile adds from left to right, f16
and bf16 in f32, and may sum f16 and bf16 into f32 and i16 into i32."""

class _TRSQRT(Instruction):
    @overload
    def __call__(
        self, dst: Tile, src: Tile, *events: Wait, PrecisionType: Any = ...
    ) -> RecordEvent: ...
    @overload
    def __call__(
        self, dst: Tile, src: Tile, tmp: Tile, *events: Wait, PrecisionType: Any = ...
    ) -> RecordEvent: ...

TRSQRT: _TRSQRT
"""Take the reciprocal of the square root.

rsqrt(0) is an infinity, rsqrt(+inf) 0, and negative elements give NaN; kernels should not rely
on any of the three. Give A2/A3 a `tmp` when its hardware estimate is not good enough; other
targets do not touch it. HIGH_PRECISION corrects the last place on A5."""

class _TSCATTER(Instruction):
    @overload
    def __call__(
        self,
        dst: Tile,
        src: Tile,
        indexes: Tile,
        *events: Wait,
        maskPattern: Any = ...,
        ScatterType: Any = ...,
    ) -> RecordEvent: ...
    @overload
    def __call__(
        self, dst: Tile, src: Tile, *events: Wait, maskPattern: Any = ..., ScatterType: Any = ...
    ) -> RecordEvent: ...

TSCATTER: _TSCATTER
"""Clear dst, then scatter the elements of src to where an index tile or a pattern says.

`TSCATTER(dst, src, indexes)` moves the elements under the valid region of indexes; an index
counts the elements of dst in memory order, padding included. `TSCATTER[pattern](dst, src)`
spreads columns to every second or fourth, `TSCATTER[pattern, ScatterAxis.SCATTER_COL](dst,
src)` rows. The whole tile becomes zero first, padding included; only the full pattern, P1111,
is a plain copy. The permissive profile clears the valid region for a pattern."""

class _TSEL(Instruction):
    def __call__(
        self, dst: Tile, selMask: Tile, src0: Tile, src1: Tile, tmp: Tile, *events: Wait
    ) -> RecordEvent: ...

TSEL: _TSEL
"""Choose between two tiles, element by element, by the bits of a packed mask.

Bits are laid out as TCMP leaves them; give the mask tile u8 elements. Nothing is converted, so
NaNs keep their payload. The destination may be one of the sources. A2/A3 needs `tmp`; other
targets do not touch it."""

class _TSELS(Instruction):
    def __call__(
        self, dst: Tile, mask: Tile, src: Tile, tmp: Tile, scalar: float, *events: Wait
    ) -> RecordEvent: ...

TSELS: _TSELS
"""Take elements of a tile where a packed mask has ones, and a scalar where it has zeros.

Bits are laid out as TCMP and TCMPS leave them. Nothing is computed, so NaNs of src keep their
payload. The destination may be the source. A2/A3 needs `tmp`; other targets do not touch it."""

class _TSETHF32MODE(Instruction):
    def __call__(
        self, *events: Wait, isEnable: Any = ..., hf32TransMode: Any = ...
    ) -> RecordEvent: ...

TSETHF32MODE: _TSETHF32MODE
"""Switch HF32 mode; no supported device has it, use TSETTF32MODE.

The page documents the call without saying what it does, and no device implements it."""

class _TSETTF32MODE(Instruction):
    def __call__(
        self, *events: Wait, isEnable: Any = ..., tf32TransMode: Any = ...
    ) -> RecordEvent: ...

TSETTF32MODE: _TSETTF32MODE
"""Switch the reduced precision of f32 matrix products on or off.

While it is on, f32 operands of TMATMUL and TGEMV are rounded before they are multiplied, to 11
mantissa bits on A2/A3 and 10 on A5; sums stay in float32. The mode is part of the control
register and lasts until it is set again, so order it against products still under way. On the
permissive profile it has no effect on numbers."""

class _TSHL(Instruction):
    def __call__(self, dst: Tile, src0: Tile, src1: Tile, *events: Wait) -> RecordEvent: ...

TSHL: _TSHL
"""Shift left by the counts in the second tile; zeros come in from the right.

A count from the width of the elements up to 31 shifts every bit out; a larger or negative one
leaves its element undefined. Only 64-bit elements take their counts modulo 64."""

class _TSHLS(Instruction):
    def __call__(self, dst: Tile, src: Tile, scalar: float, *events: Wait) -> RecordEvent: ...

TSHLS: _TSHLS
"""Shift every element left by a scalar count; zeros come in from the right.
    """

class _TSHR(Instruction):
    def __call__(self, dst: Tile, src0: Tile, src1: Tile, *events: Wait) -> RecordEvent: ...

TSHR: _TSHR
"""Shift right by the counts in the second tile; signed elements keep their sign.

A count from the width of the elements up to 31 shifts every bit out; a larger or negative one
leaves its element undefined. Only 64-bit elements take their counts modulo 64."""

class _TSHRS(Instruction):
    def __call__(self, dst: Tile, src: Tile, scalar: float, *events: Wait) -> RecordEvent: ...

TSHRS: _TSHRS
"""Shift every element right by a scalar count; signed elements keep their sign.
    """

class _TSORT32(Instruction):
    @overload
    def __call__(self, dst: Tile, src: Tile, idx: Tile, *events: Wait) -> RecordEvent: ...
    @overload
    def __call__(
        self, dst: Tile, src: Tile, idx: Tile, tmp: Tile, *events: Wait
    ) -> RecordEvent: ...

TSORT32: _TSORT32
"""Sort every 32 columns of a row in descending order, carrying an index with each value.

dst receives 8-byte records of value and index; runs are sorted by themselves, equal values keep
their order. The rows are the valid rows of dst, the columns those of src; an idx with one valid
row serves all. A short run at the end needs tmp: it is filled up with negative NaNs, which come
last, and their records hold whatever idx has there. TSORT32 takes no wait events. The
permissive profile sorts a short run as it is, and breaks ties by the smaller index."""

class _TSQRT(Instruction):
    def __call__(
        self, dst: Tile, src: Tile, *events: Wait, PrecisionType: Any = ...
    ) -> RecordEvent: ...

TSQRT: _TSQRT
"""Take the square root. The root of a negative number is NaN, that of -0 is -0."""

class _TSTORE(Instruction):
    @overload
    def __call__(
        self,
        dst: GlobalTensor,
        src: Tile | ConvTile,
        *events: Wait,
        stPhase: Any = ...,
        atomicType: Any = ...,
        reluPreMode: Any = ...,
    ) -> RecordEvent: ...
    @overload
    def __call__(
        self,
        dst: GlobalTensor,
        src: Tile | ConvTile,
        preQuantScalar: int,
        *events: Wait,
        stPhase: Any = ...,
        atomicType: Any = ...,
        reluPreMode: Any = ...,
    ) -> RecordEvent: ...

TSTORE: _TSTORE
"""Store the valid region of a tile to a view of global memory.

Vec and Mat tiles are copied bit by bit. An accumulator leaves through the fix pipe: it is
converted to the element type of the view (f32 to f16 and bf16 rounding to nearest even, f16
saturating), or quantised with the word `preQuantScalar`, then passed through ReLU if asked.
With AtomicType.AtomicAdd the result is added to memory in the view's type, one element at a
time. Memory outside the view is untouched. The phase orders the drain of an accumulator with
the matmul that fills it and changes no value."""

class _TSTORE_FP(Instruction):
    def __call__(
        self,
        dst: GlobalTensor,
        src: Tile,
        fp: Tile,
        *events: Wait,
        atomicType: Any = ...,
        reluPreMode: Any = ...,
    ) -> RecordEvent: ...

TSTORE_FP: _TSTORE_FP
"""Store an accumulator, each column quantised with its own word of `fp`.

Word k belongs to column k of the source. Apart from where the words come from this is TSTORE of
an accumulator with a quantisation word. `fp` must stay unchanged until the store is complete."""

class _TSUB(Instruction):
    def __call__(self, dst: Tile, src0: Tile, src1: Tile, *events: Wait) -> RecordEvent: ...

TSUB: _TSUB
"""Subtract the second tile from the first.

Integers wrap around. Floats are rounded once, to nearest even, in their own type."""

class _TSUBC(Instruction):
    def __call__(
        self, dst: Tile, src0: Tile, src1: Tile, src2: Tile, *events: Wait
    ) -> RecordEvent: ...

TSUBC: _TSUBC
"""Subtract the second tile from the first and add the third. There is no borrow.

No device has it as one instruction: it stands for TSUB followed by TADD, with a rounding
after each."""

class _TSUBRELU(Instruction):
    def __call__(self, dst: Tile, src0: Tile, src1: Tile, *events: Wait) -> RecordEvent: ...

TSUBRELU: _TSUBRELU
"""Subtract, and replace what is negative by zero: `dst = max(src0 - src1, 0)`."""

class _TSUBRELUCONV(Instruction):
    def __call__(self, dst: Tile, src0: Tile, src1: Tile, *events: Wait) -> RecordEvent: ...

TSUBRELUCONV: _TSUBRELUCONV
"""Subtract, replace what is negative by zero, and convert to the narrower type of the destination.

f32 to f16 and f16 to i8 round to nearest even; whatever is too large becomes the largest value
of the destination. i16 differences are formed in 32 bits on A2/A3 but wrap around on A5,
which shows when they leave the range of i16."""

class _TSUBS(Instruction):
    def __call__(self, dst: Tile, src: Tile, scalar: float, *events: Wait) -> RecordEvent: ...

TSUBS: _TSUBS
"""Subtract a scalar from every element.

Integers wrap around. Floats are rounded once, to nearest even, in their own type. A2/A3 passes
i32 scalars through f32, which rounds those beyond 2^24."""

class _TSUBSC(Instruction):
    def __call__(
        self, dst: Tile, src0: Tile, scalar: float, src1: Tile, *events: Wait
    ) -> RecordEvent: ...

TSUBSC: _TSUBSC
"""Subtract a scalar from a tile and add a tile: (src0 - scalar) + src1, from left to right.

No device has it as one instruction: it stands for TSUBS followed by TADD, with a
rounding after each. The three tiles have one type."""

class _TSUBVIEW(Instruction):
    def __call__(
        self, dst: Tile, src: Tile, rowIdx: int, colIdx: int, *events: Wait
    ) -> RecordEvent: ...

TSUBVIEW: _TSUBVIEW
"""Bind dst to the part of src that starts at (rowIdx, colIdx). No data moves.

dst is a window onto src: writes through one are seen through the other, and dst keeps its own
valid region. The window starts rowIdx * RowStride + colIdx * ColStride elements past src, by
the plain strides also for boxed tiles, and is exact only where dst steps through memory as src
does: the same Cols for row-major tiles (or one row), the same Rows for column-major ones (or
one column), whole columns of boxes for boxed ones. Vector instructions and transfers also want
its address to be a multiple of 32 bytes."""

class _TSYNC(Instruction):
    def __call__(self, *events: Wait, OpCode: Any = ...) -> RecordEvent: ...

TSYNC: _TSYNC
"""Wait for events, `TSYNC(e0, e1)`, or drain the pipe of an operation, `TSYNC[Op.TADD]()`.

With events, each is waited for from left to right; without any nothing happens."""

class _TTRANS(Instruction):
    def __call__(
        self, dst: Tile | ConvTile, src: Tile | ConvTile, tmp: Tile, *events: Wait
    ) -> RecordEvent: ...

TTRANS: _TTRANS
"""Transpose a Vec tile, or convert a Vec convolution tile between layouts.

A matrix: dst[i, j] = src[j, i] over the valid region of `src`; A5 and the Kirin targets
transpose the whole tile whatever is valid. Convolution tiles: NCHW to NC1HWC0 and back, the
same with groups, NC1HWC0 (with or without groups) to FRACTAL_Z and NCDHW to FRACTAL_Z_3D, whose
blocks are ordered D, C1, H, W. Bits are copied.

`tmp` is always passed. It is used, and its contents lost, where the strides allow the fast
transposition (dst stride a multiple of 16, for 8-bit elements of 32; src stride whole 32-byte
blocks, at most 255 of them); elsewhere elements are copied one by one. A5 and Kirin do not
touch it. `TTRANS.tmp_bytes(dst, src)` says how many bytes it needs: sizeof times as many
elements, with R = 32 for 8-bit elements and R = 16 for others.

* A matrix of H valid rows and W valid columns: W * ceil(H / R) * R
* NCHW to NC1HWC0, also with groups, C1 = ceil(C / C0): H * W * ceil(C0 / R) * R
* NC1HWC0 to NCHW, also with groups: C0 * ceil(H * W / R) * R
* NC1HWC0 and GNC1HWC0 to FRACTAL_Z, N1 = ceil(N / N0): none, blocks are only rearranged
* NCDHW to FRACTAL_Z_3D: P + max(P, H * W * ceil(C0 / R) * R), where P = N * C1 * C0 * H * W;
  a plane of depth is taken out into the first part, and the second is for either way to go on

Groups of GNC1HWC0 weights lie N1 * N0 filters apart on a device whose `src` reserves room for
that many (BufferSize), N filters elsewhere. Filters beyond N keep their contents in NC1HWC0 to
FRACTAL_Z: clear `dst` first. Elsewhere channels beyond C and filters beyond N become zero; the
permissive profile leaves all of them untouched. The fast path of A2A3 leaves the rest of the
last 32-byte block of each row of `dst` unspecified."""

class _TTRI(Instruction):
    def __call__(
        self, dst: Tile, diagonal: int, *events: Wait, isUpperOrLower: Any = ...
    ) -> RecordEvent: ...

TTRI: _TTRI
"""Write a triangular matrix of ones and zeros.

The lower triangle has ones where column <= row + diagonal, the upper one where
column >= row + diagonal: `diagonal` 0 is the main diagonal, which belongs to both. Only the
valid region is written."""

class _TXOR(Instruction):
    def __call__(
        self, dst: Tile, src0: Tile, src1: Tile, tmp: Tile, *events: Wait
    ) -> RecordEvent: ...

TXOR: _TXOR
"""Combine two tiles with bitwise XOR.

A2/A3 composes it from OR, AND and NOT: it needs `tmp`, shaped like the destination, and all
tiles apart but the sources; with an odd number of valid columns it also overwrites the byte
past each row of an 8-bit tile. Other targets do not touch `tmp` and work in place."""

class _TXORS(Instruction):
    def __call__(
        self, dst: Tile, src0: Tile, scalar: float, tmp: Tile, *events: Wait
    ) -> RecordEvent: ...

TXORS: _TXORS
"""Combine every element with a scalar by bitwise XOR.

A2/A3 needs `tmp`, shaped like the destination, and all three tiles apart; with an odd number of
valid columns it also overwrites the byte past each row of an 8-bit tile. Other targets do not
touch `tmp` and work in place."""

class _barrier_all(Instruction):
    def __call__(self, *events: Wait, scope: Any = ...) -> RecordEvent: ...

barrier_all: _barrier_all
"""Complete the earlier work of every pipe, and what it stored in global memory.

What others are told of after it, they will find there."""

class _cacheinvalid(Instruction):
    @overload
    def __call__(self, *events: Wait) -> RecordEvent: ...
    @overload
    def __call__(self, ptr: Pointer | GlobalTensor, *events: Wait) -> RecordEvent: ...

cacheinvalid: _cacheinvalid
"""Write a line of the scalar data cache back and forget it; without an address all lines."""

class _copy_cbuf_to_ubuf(Instruction):
    def __call__(self, dst: Tile, src: Tile, *events: Wait, SubBlock: Any = ...) -> RecordEvent: ...

copy_cbuf_to_ubuf: _copy_cbuf_to_ubuf
"""Copy rows of bytes from L1 of a cube core to the UB of one of its vector cores.

The address of dst counts in the memory of that core. A core that is alone in its cluster
receives what goes to core 0."""

class _dcci(Instruction):
    @overload
    def __call__(self, ptr: Pointer | GlobalTensor, scope: int, *events: Wait) -> RecordEvent: ...
    @overload
    def __call__(
        self, ptr: Pointer | GlobalTensor, scope: int, out: int, *events: Wait
    ) -> RecordEvent: ...

dcci: _dcci
"""Write a line of the scalar data cache back and forget it, or all lines.

The cache holds 64-byte lines of global memory and is coherent with nobody: clean a line before
others may read what was written, and before reading what others wrote. Transfers of the
MTE and FIX pipes pass it by. On-chip memory is reached without a cache here: of a pointer into
it there is nothing to write back."""

class _dsb(Instruction):
    def __call__(self, kind: int, *events: Wait) -> RecordEvent: ...

dsb: _dsb
"""Wait until earlier scalar stores and cache write-backs have reached memory."""

class _ffts_cross_core_sync(Instruction):
    def __call__(self, pipe: int, msg: int, *events: Wait) -> RecordEvent: ...

ffts_cross_core_sync: _ffts_cross_core_sync
"""Signal other cores, after the earlier work of a pipe.

Mode 2 reaches the cluster: both vector cores when the cube core signals; the cube core, once
both vector cores have signalled. Modes 0 and 1 are meetings: of all cores of the kind, of the
two vector cores of the cluster; each gets its signal when all have given theirs."""

class _get_buf(Instruction):
    @overload
    def __call__(self, pipe: int, buf_id: int, *events: Wait) -> RecordEvent: ...
    @overload
    def __call__(self, pipe: int, buf_id: int, mode: int, *events: Wait) -> RecordEvent: ...

get_buf: _get_buf
"""Acquire a numbered buffer for a pipe: its later work waits for whoever holds it.

The pipes that acquired the same buffer earlier in program order must have released it. No
priming before a loop and no draining after it; a pipe holds a buffer at most once."""

class _load_scalar(Instruction):
    def __call__(self, ptr: Pointer | GlobalTensor, offset: int, *events: Wait) -> Any: ...

load_scalar: _load_scalar
"""Read one element of global memory through the scalar data cache and return it."""

class _pipe_barrier(Instruction):
    def __call__(self, pipe: int, *events: Wait) -> RecordEvent: ...

pipe_barrier: _pipe_barrier
"""Start later work of a pipe only when all its earlier work is complete.

PIPE_ALL does so for all pipes of the core together. One core only; other pipes are not
ordered by the barrier of one."""

class _rls_buf(Instruction):
    @overload
    def __call__(self, pipe: int, buf_id: int, *events: Wait) -> RecordEvent: ...
    @overload
    def __call__(self, pipe: int, buf_id: int, mode: int, *events: Wait) -> RecordEvent: ...

rls_buf: _rls_buf
"""Release a numbered buffer, after the work of the pipe so far; once per get_buf."""

class _set_cross_block(Instruction):
    def __call__(self, pipe: int, event_id: int, *events: Wait) -> RecordEvent: ...

set_cross_block: _set_cross_block
"""Signal all cores of the kind, after the earlier work of a pipe."""

class _set_ffts_base_addr(Instruction):
    def __call__(self, addr: int | Pointer | GlobalTensor, *events: Wait) -> RecordEvent: ...

set_ffts_base_addr: _set_ffts_base_addr
"""Tell the core where its cross-core signals go; once, before the first of them.

A5 accepts it and needs it for nothing: kernels for both targets call it unconditionally."""

class _set_flag(Instruction):
    def __call__(
        self, src_pipe: int, dst_pipe: int, event_id: int, *events: Wait
    ) -> RecordEvent: ...

set_flag: _set_flag
"""Raise a flag from one pipe for another, after all earlier work of the first.

Per (source, destination, id) sets and waits alternate, starting with a set; a second set
before the wait, or a set that nobody waits for, is an error of the program."""

class _set_intra_block(Instruction):
    def __call__(self, pipe: int, id: int, *events: Wait) -> RecordEvent: ...

set_intra_block: _set_intra_block
"""Signal one core of the cluster, after the earlier work of a pipe.

The cube core reaches vector core 0 with id and vector core 1 with id + 16; a vector core
always reaches the cube core with the plain id. It has 16 flags: id + 16 is the same as id."""

class _store_scalar(Instruction):
    def __call__(
        self, ptr: Pointer | GlobalTensor, offset: int, value: float, *events: Wait
    ) -> RecordEvent: ...

store_scalar: _store_scalar
"""Write one element of global memory through the scalar data cache.

Others see it after dcci of its line and dsb(DSB_DDR)."""

class _sync_set(Instruction):
    def __call__(
        self, pipe: int, event_id: int, *events: Wait, ffts_mode: Any = ...
    ) -> RecordEvent: ...

sync_set: _sync_set
"""Signal other cores, after the earlier work of a pipe: ffts_cross_core_sync of texts."""

class _sync_wait(Instruction):
    def __call__(
        self, pipe: int, event_id: int, *events: Wait, ffts_mode: Any = ...
    ) -> RecordEvent: ...

sync_wait: _sync_wait
"""Stop the scalar unit until other cores have signalled: wait_flag_dev of texts.

The mode is that of the signal; a wait is the same for all of them."""

class _wait_cross_block(Instruction):
    def __call__(self, pipe: int, event_id: int, *events: Wait) -> RecordEvent: ...

wait_cross_block: _wait_cross_block
"""Stop the scalar unit until all cores of the kind have signalled."""

class _wait_flag(Instruction):
    def __call__(
        self, src_pipe: int, dst_pipe: int, event_id: int, *events: Wait
    ) -> RecordEvent: ...

wait_flag: _wait_flag
"""Hold later work of the destination pipe until the flag is raised, and lower it.

Other pipes go on; a wait of PIPE_S stops the issue of everything."""

class _wait_flag_dev(Instruction):
    @overload
    def __call__(self, id: int, *events: Wait) -> RecordEvent: ...
    @overload
    def __call__(self, pipe: int, id: int, *events: Wait) -> RecordEvent: ...

wait_flag_dev: _wait_flag_dev
"""Stop the scalar unit until a cross-core signal has come, and take it.

Nothing later is issued on any pipe; queued work goes on. The cube core needs the signal of
both vector cores."""

class _wait_intra_block(Instruction):
    def __call__(self, pipe: int, id: int, *events: Wait) -> RecordEvent: ...

wait_intra_block: _wait_intra_block
"""Hold one pipe until a core of the cluster has signalled, and take the signal."""

__all__ = [
    "GETVAL",
    "MGATHER",
    "MSCATTER",
    "SETFMATRIX",
    "SETVAL",
    "SET_IMG2COL_PADDING",
    "SET_IMG2COL_RPT",
    "SET_QUANT_SCALAR",
    "SET_QUANT_VECTOR",
    "SYNCALL",
    "TABS",
    "TADD",
    "TADDC",
    "TADDDEQRELU",
    "TADDRELU",
    "TADDRELUCONV",
    "TADDS",
    "TADDSC",
    "TALLOC",
    "TAND",
    "TANDS",
    "TASSIGN",
    "TAXPY",
    "TCI",
    "TCMP",
    "TCMPS",
    "TCOLARGMAX",
    "TCOLARGMIN",
    "TCOLEXPAND",
    "TCOLEXPANDADD",
    "TCOLEXPANDDIV",
    "TCOLEXPANDEXPDIF",
    "TCOLEXPANDMAX",
    "TCOLEXPANDMIN",
    "TCOLEXPANDMUL",
    "TCOLEXPANDSUB",
    "TCOLMAX",
    "TCOLMIN",
    "TCOLPROD",
    "TCOLSUM",
    "TCONCAT",
    "TCVT",
    "TDEINTERLEAVE",
    "TDEQUANT",
    "TDIV",
    "TDIVS",
    "TEXP",
    "TEXPANDS",
    "TEXTRACT",
    "TEXTRACT_FP",
    "TFILLPAD",
    "TFILLPAD_EXPAND",
    "TFILLPAD_INPLACE",
    "TFMOD",
    "TFMODS",
    "TFREE",
    "TFUSEDMULADD",
    "TFUSEDMULADDRELU",
    "TGATHER",
    "TGATHERB",
    "TGEMV",
    "TGEMV_ACC",
    "TGEMV_BIAS",
    "TGEMV_MX",
    "TGET_SCALE_ADDR",
    "THISTOGRAM",
    "TIMG2COL",
    "TINSERT",
    "TINSERT_FP",
    "TINTERLEAVE",
    "TLOAD",
    "TLOG",
    "TLRELU",
    "TMATMUL",
    "TMATMUL_ACC",
    "TMATMUL_BIAS",
    "TMATMUL_MX",
    "TMATMUL_MX_HIF4",
    "TMAX",
    "TMAXS",
    "TMIN",
    "TMINS",
    "TMOV",
    "TMOV_FP",
    "TMRGSORT",
    "TMUL",
    "TMULADDDST",
    "TMULS",
    "TNEG",
    "TNOT",
    "TOR",
    "TORS",
    "TPACK",
    "TPAIRREDUCESUM",
    "TPARTADD",
    "TPARTARGMAX",
    "TPARTARGMIN",
    "TPARTMAX",
    "TPARTMIN",
    "TPARTMUL",
    "TPOP",
    "TPOW",
    "TPOWS",
    "TPREFETCH",
    "TPREFETCH_ASYNC",
    "TPRELU",
    "TPRINT",
    "TPUSH",
    "TQUANT",
    "TQUANT_DN",
    "TQUANT_HIF4",
    "TQUANT_MX",
    "TRANDOM",
    "TRECIP",
    "TRELU",
    "TREM",
    "TREMS",
    "TRESHAPE",
    "TROWARGMAX",
    "TROWARGMIN",
    "TROWEXPAND",
    "TROWEXPANDADD",
    "TROWEXPANDDIV",
    "TROWEXPANDEXPDIF",
    "TROWEXPANDMAX",
    "TROWEXPANDMIN",
    "TROWEXPANDMUL",
    "TROWEXPANDSUB",
    "TROWMAX",
    "TROWMIN",
    "TROWPROD",
    "TROWSUM",
    "TRSQRT",
    "TSCATTER",
    "TSEL",
    "TSELS",
    "TSETHF32MODE",
    "TSETTF32MODE",
    "TSHL",
    "TSHLS",
    "TSHR",
    "TSHRS",
    "TSORT32",
    "TSQRT",
    "TSTORE",
    "TSTORE_FP",
    "TSUB",
    "TSUBC",
    "TSUBRELU",
    "TSUBRELUCONV",
    "TSUBS",
    "TSUBSC",
    "TSUBVIEW",
    "TSYNC",
    "TTRANS",
    "TTRI",
    "TXOR",
    "TXORS",
    "barrier_all",
    "cacheinvalid",
    "copy_cbuf_to_ubuf",
    "dcci",
    "dsb",
    "ffts_cross_core_sync",
    "get_buf",
    "load_scalar",
    "pipe_barrier",
    "rls_buf",
    "set_cross_block",
    "set_ffts_base_addr",
    "set_flag",
    "set_intra_block",
    "store_scalar",
    "sync_set",
    "sync_wait",
    "wait_cross_block",
    "wait_flag",
    "wait_flag_dev",
    "wait_intra_block",
]
