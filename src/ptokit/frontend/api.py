"""The instructions as Python sees them: names, signatures, documentation.

Generated from the instruction table by tools/gen.py; do not edit.
"""

# Each class narrows the general call of Instruction to its own operands, for editors only.
# pyright: reportIncompatibleMethodOverride=false, reportNoOverloadImplementation=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

from ptokit.frontend.instruction import Instruction
from ptokit.isa import INSTRUCTIONS

if TYPE_CHECKING:
    from ptokit.frontend.instruction import RecordEvent, Waitable
    from ptokit.frontend.tensor_types import ConvTile, GlobalTensor
    from ptokit.frontend.types import Tile
    from ptokit.machine.objects import Pointer

    Wait = RecordEvent | Waitable


class _TROWARGMAX(Instruction):
    """Store the column index of the maximum of every row in column 0 of dstIdx."""

    if TYPE_CHECKING:

        @overload
        def __call__(self, dstIdx: Tile, src: Tile, tmp: Tile, *events: Wait) -> RecordEvent: ...
        @overload
        def __call__(
            self, dstVal: Tile, dstIdx: Tile, src: Tile, tmp: Tile, *events: Wait
        ) -> RecordEvent: ...


TROWARGMAX = _TROWARGMAX(INSTRUCTIONS["TROWARGMAX"])


class _TROWARGMIN(Instruction):
    """Store the column index of the minimum of every row in column 0 of dstIdx."""

    if TYPE_CHECKING:

        @overload
        def __call__(self, dstIdx: Tile, src: Tile, tmp: Tile, *events: Wait) -> RecordEvent: ...
        @overload
        def __call__(
            self, dstVal: Tile, dstIdx: Tile, src: Tile, tmp: Tile, *events: Wait
        ) -> RecordEvent: ...


TROWARGMIN = _TROWARGMIN(INSTRUCTIONS["TROWARGMIN"])


class _TCOLARGMAX(Instruction):
    """Store the row index of the maximum of every column in row 0 of dstIdx."""

    if TYPE_CHECKING:

        @overload
        def __call__(self, dstIdx: Tile, src: Tile, tmp: Tile, *events: Wait) -> RecordEvent: ...
        @overload
        def __call__(
            self, dstVal: Tile, dstIdx: Tile, src: Tile, tmp: Tile, *events: Wait
        ) -> RecordEvent: ...


TCOLARGMAX = _TCOLARGMAX(INSTRUCTIONS["TCOLARGMAX"])


class _TCOLARGMIN(Instruction):
    """Store the row index of the minimum of every column in row 0 of dstIdx."""

    if TYPE_CHECKING:

        @overload
        def __call__(self, dstIdx: Tile, src: Tile, tmp: Tile, *events: Wait) -> RecordEvent: ...
        @overload
        def __call__(
            self, dstVal: Tile, dstIdx: Tile, src: Tile, tmp: Tile, *events: Wait
        ) -> RecordEvent: ...


TCOLARGMIN = _TCOLARGMIN(INSTRUCTIONS["TCOLARGMIN"])


class _TASSIGN(Instruction):
    """Bind a tile to an on-chip address, or a GlobalTensor to a pointer. No data moves."""

    if TYPE_CHECKING:

        @overload
        def __call__(
            self, obj: Tile | ConvTile | GlobalTensor, addr: float | Pointer, *events: Wait
        ) -> RecordEvent: ...
        @overload
        def __call__(self, obj: Tile | ConvTile | GlobalTensor, *events: Wait) -> RecordEvent: ...


TASSIGN = _TASSIGN(INSTRUCTIONS["TASSIGN"])


class _TRESHAPE(Instruction):
    """Let dst denote the bytes of src under its own type. No data moves."""

    if TYPE_CHECKING:

        def __call__(
            self, dst: Tile | ConvTile, src: Tile | ConvTile, *events: Wait
        ) -> RecordEvent: ...


TRESHAPE = _TRESHAPE(INSTRUCTIONS["TRESHAPE"])


class _TSUBVIEW(Instruction):
    """Bind dst to the part of src that starts at (rowIdx, colIdx). No data moves."""

    if TYPE_CHECKING:

        def __call__(
            self, dst: Tile, src: Tile, rowIdx: float, colIdx: float, *events: Wait
        ) -> RecordEvent: ...


TSUBVIEW = _TSUBVIEW(INSTRUCTIONS["TSUBVIEW"])


class _TGET_SCALE_ADDR(Instruction):
    """Bind an MX scale tile to the place that belongs to a Left or Right tile."""

    if TYPE_CHECKING:

        def __call__(self, dst: Tile, src: Tile, *events: Wait) -> RecordEvent: ...


TGET_SCALE_ADDR = _TGET_SCALE_ADDR(INSTRUCTIONS["TGET_SCALE_ADDR"])


class _SET_QUANT_SCALAR(Instruction):
    """Set the scale of the fix-pipe transfers that take it from a register (TPUSH with a config)."""

    if TYPE_CHECKING:

        def __call__(self, preQuantScalar: float, *events: Wait) -> RecordEvent: ...


SET_QUANT_SCALAR = _SET_QUANT_SCALAR(INSTRUCTIONS["SET_QUANT_SCALAR"])


class _SET_QUANT_VECTOR(Instruction):
    """Point the fix pipe at a vector of quantisation words, one per column of the results."""

    if TYPE_CHECKING:

        def __call__(self, fpTile: Tile, *events: Wait) -> RecordEvent: ...


SET_QUANT_VECTOR = _SET_QUANT_VECTOR(INSTRUCTIONS["SET_QUANT_VECTOR"])


class _TNOT(Instruction):
    """Complement every bit."""

    if TYPE_CHECKING:

        def __call__(self, dst: Tile, src: Tile, *events: Wait) -> RecordEvent: ...


TNOT = _TNOT(INSTRUCTIONS["TNOT"])


class _TAND(Instruction):
    """Combine two tiles with bitwise AND."""

    if TYPE_CHECKING:

        def __call__(self, dst: Tile, src0: Tile, src1: Tile, *events: Wait) -> RecordEvent: ...


TAND = _TAND(INSTRUCTIONS["TAND"])


class _TOR(Instruction):
    """Combine two tiles with bitwise OR."""

    if TYPE_CHECKING:

        def __call__(self, dst: Tile, src0: Tile, src1: Tile, *events: Wait) -> RecordEvent: ...


TOR = _TOR(INSTRUCTIONS["TOR"])


class _TXOR(Instruction):
    """Combine two tiles with bitwise XOR."""

    if TYPE_CHECKING:

        def __call__(
            self, dst: Tile, src0: Tile, src1: Tile, tmp: Tile, *events: Wait
        ) -> RecordEvent: ...


TXOR = _TXOR(INSTRUCTIONS["TXOR"])


class _TSHL(Instruction):
    """Shift left by the counts in the second tile; zeros come in from the right."""

    if TYPE_CHECKING:

        def __call__(self, dst: Tile, src0: Tile, src1: Tile, *events: Wait) -> RecordEvent: ...


TSHL = _TSHL(INSTRUCTIONS["TSHL"])


class _TSHR(Instruction):
    """Shift right by the counts in the second tile; signed elements keep their sign."""

    if TYPE_CHECKING:

        def __call__(self, dst: Tile, src0: Tile, src1: Tile, *events: Wait) -> RecordEvent: ...


TSHR = _TSHR(INSTRUCTIONS["TSHR"])


class _TLOAD(Instruction):
    """Load a view of global memory into a Vec or Mat tile, or a Mat convolution tile."""

    if TYPE_CHECKING:

        def __call__(
            self, dst: Tile | ConvTile, src: GlobalTensor, *events: Wait
        ) -> RecordEvent: ...


TLOAD = _TLOAD(INSTRUCTIONS["TLOAD"])


class _TSTORE(Instruction):
    """Store the valid region of a tile to a view of global memory."""

    if TYPE_CHECKING:

        @overload
        def __call__(
            self, dst: GlobalTensor, src: Tile | ConvTile, *events: Wait
        ) -> RecordEvent: ...
        @overload
        def __call__(
            self, dst: GlobalTensor, src: Tile | ConvTile, preQuantScalar: float, *events: Wait
        ) -> RecordEvent: ...


TSTORE = _TSTORE(INSTRUCTIONS["TSTORE"])


class _TSTORE_FP(Instruction):
    """Store an accumulator, each column quantised with its own word of `fp`."""

    if TYPE_CHECKING:

        def __call__(
            self, dst: GlobalTensor, src: Tile, fp: Tile, *events: Wait
        ) -> RecordEvent: ...


TSTORE_FP = _TSTORE_FP(INSTRUCTIONS["TSTORE_FP"])


class _TADD(Instruction):
    """Add two tiles."""

    if TYPE_CHECKING:

        def __call__(self, dst: Tile, src0: Tile, src1: Tile, *events: Wait) -> RecordEvent: ...


TADD = _TADD(INSTRUCTIONS["TADD"])


class _TSUB(Instruction):
    """Subtract the second tile from the first."""

    if TYPE_CHECKING:

        def __call__(self, dst: Tile, src0: Tile, src1: Tile, *events: Wait) -> RecordEvent: ...


TSUB = _TSUB(INSTRUCTIONS["TSUB"])


class _TMUL(Instruction):
    """Multiply two tiles."""

    if TYPE_CHECKING:

        def __call__(self, dst: Tile, src0: Tile, src1: Tile, *events: Wait) -> RecordEvent: ...


TMUL = _TMUL(INSTRUCTIONS["TMUL"])


class _TDIV(Instruction):
    """Divide the first tile by the second."""

    if TYPE_CHECKING:

        def __call__(self, dst: Tile, src0: Tile, src1: Tile, *events: Wait) -> RecordEvent: ...


TDIV = _TDIV(INSTRUCTIONS["TDIV"])


class _TREM(Instruction):
    """Take the remainder of a division; its sign is that of the divisor."""

    if TYPE_CHECKING:

        def __call__(
            self, dst: Tile, src0: Tile, src1: Tile, tmp: Tile, *events: Wait
        ) -> RecordEvent: ...


TREM = _TREM(INSTRUCTIONS["TREM"])


class _TFMOD(Instruction):
    """Take the remainder of a division; its sign is that of the dividend, as with C's fmod."""

    if TYPE_CHECKING:

        def __call__(self, dst: Tile, src0: Tile, src1: Tile, *events: Wait) -> RecordEvent: ...


TFMOD = _TFMOD(INSTRUCTIONS["TFMOD"])


class _TMAX(Instruction):
    """Take the larger of two elements."""

    if TYPE_CHECKING:

        def __call__(self, dst: Tile, src0: Tile, src1: Tile, *events: Wait) -> RecordEvent: ...


TMAX = _TMAX(INSTRUCTIONS["TMAX"])


class _TMIN(Instruction):
    """Take the smaller of two elements."""

    if TYPE_CHECKING:

        def __call__(self, dst: Tile, src0: Tile, src1: Tile, *events: Wait) -> RecordEvent: ...


TMIN = _TMIN(INSTRUCTIONS["TMIN"])


class _TABS(Instruction):
    """Take the absolute value."""

    if TYPE_CHECKING:

        def __call__(self, dst: Tile, src: Tile, *events: Wait) -> RecordEvent: ...


TABS = _TABS(INSTRUCTIONS["TABS"])


class _TNEG(Instruction):
    """Negate. The instruction is TMULS with the scalar -1; integers, signed or not, wrap around."""

    if TYPE_CHECKING:

        def __call__(self, dst: Tile, src: Tile, *events: Wait) -> RecordEvent: ...


TNEG = _TNEG(INSTRUCTIONS["TNEG"])


class _TRELU(Instruction):
    """Replace negative elements by zero. What becomes of NaN and -0 is up to the hardware."""

    if TYPE_CHECKING:

        def __call__(self, dst: Tile, src: Tile, *events: Wait) -> RecordEvent: ...


TRELU = _TRELU(INSTRUCTIONS["TRELU"])


class _TPRELU(Instruction):
    """Multiply the elements that are not positive by a slope of their own."""

    if TYPE_CHECKING:

        def __call__(
            self, dst: Tile, src0: Tile, src1: Tile, tmp: Tile, *events: Wait
        ) -> RecordEvent: ...


TPRELU = _TPRELU(INSTRUCTIONS["TPRELU"])


class _TCMP(Instruction):
    """Compare two tiles and pack the answers, one bit per element, into a mask."""

    if TYPE_CHECKING:

        def __call__(self, dst: Tile, src0: Tile, src1: Tile, *events: Wait) -> RecordEvent: ...


TCMP = _TCMP(INSTRUCTIONS["TCMP"])


class _TSEL(Instruction):
    """Choose between two tiles, element by element, by the bits of a packed mask."""

    if TYPE_CHECKING:

        def __call__(
            self, dst: Tile, selMask: Tile, src0: Tile, src1: Tile, tmp: Tile, *events: Wait
        ) -> RecordEvent: ...


TSEL = _TSEL(INSTRUCTIONS["TSEL"])


class _TCVT(Instruction):
    """Convert every element to the element type of the destination."""

    if TYPE_CHECKING:

        @overload
        def __call__(self, dst: Tile, src: Tile, *events: Wait) -> RecordEvent: ...
        @overload
        def __call__(self, dst: Tile, src: Tile, tmp: Tile, *events: Wait) -> RecordEvent: ...


TCVT = _TCVT(INSTRUCTIONS["TCVT"])


class _TROWEXPAND(Instruction):
    """Copy column 0 of every row of src to all valid columns of that row of dst."""

    if TYPE_CHECKING:

        def __call__(self, dst: Tile, src: Tile, *events: Wait) -> RecordEvent: ...


TROWEXPAND = _TROWEXPAND(INSTRUCTIONS["TROWEXPAND"])


class _TROWEXPANDADD(Instruction):
    """Add a value per row to a tile: dst = src0 + src1, where one source has one value per row."""

    if TYPE_CHECKING:

        @overload
        def __call__(self, dst: Tile, src0: Tile, src1: Tile, *events: Wait) -> RecordEvent: ...
        @overload
        def __call__(
            self, dst: Tile, src0: Tile, src1: Tile, tmp: Tile, *events: Wait
        ) -> RecordEvent: ...


TROWEXPANDADD = _TROWEXPANDADD(INSTRUCTIONS["TROWEXPANDADD"])


class _TROWEXPANDSUB(Instruction):
    """Subtract with one value per row: dst = src0 - src1, where one source has one value per row."""

    if TYPE_CHECKING:

        @overload
        def __call__(self, dst: Tile, src0: Tile, src1: Tile, *events: Wait) -> RecordEvent: ...
        @overload
        def __call__(
            self, dst: Tile, src0: Tile, src1: Tile, tmp: Tile, *events: Wait
        ) -> RecordEvent: ...


TROWEXPANDSUB = _TROWEXPANDSUB(INSTRUCTIONS["TROWEXPANDSUB"])


class _TROWEXPANDMUL(Instruction):
    """Multiply a tile by a value per row: dst = src0 * src1; one source has one value per row."""

    if TYPE_CHECKING:

        @overload
        def __call__(self, dst: Tile, src0: Tile, src1: Tile, *events: Wait) -> RecordEvent: ...
        @overload
        def __call__(
            self, dst: Tile, src0: Tile, src1: Tile, tmp: Tile, *events: Wait
        ) -> RecordEvent: ...


TROWEXPANDMUL = _TROWEXPANDMUL(INSTRUCTIONS["TROWEXPANDMUL"])


class _TROWEXPANDDIV(Instruction):
    """Divide with one value per row: dst = src0 / src1, where one source has one value per row."""

    if TYPE_CHECKING:

        @overload
        def __call__(self, dst: Tile, src0: Tile, src1: Tile, *events: Wait) -> RecordEvent: ...
        @overload
        def __call__(
            self, dst: Tile, src0: Tile, src1: Tile, tmp: Tile, *events: Wait
        ) -> RecordEvent: ...


TROWEXPANDDIV = _TROWEXPANDDIV(INSTRUCTIONS["TROWEXPANDDIV"])


class _TROWEXPANDMAX(Instruction):
    """Take the larger of an element and the value of its row; one source has one value per row."""

    if TYPE_CHECKING:

        @overload
        def __call__(self, dst: Tile, src0: Tile, src1: Tile, *events: Wait) -> RecordEvent: ...
        @overload
        def __call__(
            self, dst: Tile, src0: Tile, src1: Tile, tmp: Tile, *events: Wait
        ) -> RecordEvent: ...


TROWEXPANDMAX = _TROWEXPANDMAX(INSTRUCTIONS["TROWEXPANDMAX"])


class _TROWEXPANDMIN(Instruction):
    """Take the smaller of an element and the value of its row; one source has one value per row."""

    if TYPE_CHECKING:

        @overload
        def __call__(self, dst: Tile, src0: Tile, src1: Tile, *events: Wait) -> RecordEvent: ...
        @overload
        def __call__(
            self, dst: Tile, src0: Tile, src1: Tile, tmp: Tile, *events: Wait
        ) -> RecordEvent: ...


TROWEXPANDMIN = _TROWEXPANDMIN(INSTRUCTIONS["TROWEXPANDMIN"])


class _TROWEXPANDEXPDIF(Instruction):
    """Compute exp(src0 - src1), where one source has one value per row: the core of a softmax."""

    if TYPE_CHECKING:

        @overload
        def __call__(self, dst: Tile, src0: Tile, src1: Tile, *events: Wait) -> RecordEvent: ...
        @overload
        def __call__(
            self, dst: Tile, src0: Tile, src1: Tile, tmp: Tile, *events: Wait
        ) -> RecordEvent: ...


TROWEXPANDEXPDIF = _TROWEXPANDEXPDIF(INSTRUCTIONS["TROWEXPANDEXPDIF"])


class _TCOLEXPAND(Instruction):
    """Copy row 0 of src to all valid rows of dst."""

    if TYPE_CHECKING:

        def __call__(self, dst: Tile, src: Tile, *events: Wait) -> RecordEvent: ...


TCOLEXPAND = _TCOLEXPAND(INSTRUCTIONS["TCOLEXPAND"])


class _TCOLEXPANDADD(Instruction):
    """Add a row to all rows of a tile: dst = src0 + src1, where one source is a single row."""

    if TYPE_CHECKING:

        def __call__(self, dst: Tile, src0: Tile, src1: Tile, *events: Wait) -> RecordEvent: ...


TCOLEXPANDADD = _TCOLEXPANDADD(INSTRUCTIONS["TCOLEXPANDADD"])


class _TCOLEXPANDSUB(Instruction):
    """Subtract with a single row: dst = src0 - src1, where one source is one row for all."""

    if TYPE_CHECKING:

        def __call__(self, dst: Tile, src0: Tile, src1: Tile, *events: Wait) -> RecordEvent: ...


TCOLEXPANDSUB = _TCOLEXPANDSUB(INSTRUCTIONS["TCOLEXPANDSUB"])


class _TCOLEXPANDMUL(Instruction):
    """Multiply all rows of a tile by one row: dst = src0 * src1; one source is a single row."""

    if TYPE_CHECKING:

        def __call__(self, dst: Tile, src0: Tile, src1: Tile, *events: Wait) -> RecordEvent: ...


TCOLEXPANDMUL = _TCOLEXPANDMUL(INSTRUCTIONS["TCOLEXPANDMUL"])


class _TCOLEXPANDDIV(Instruction):
    """Divide with a single row: dst = src0 / src1, where one source is one row for all."""

    if TYPE_CHECKING:

        def __call__(self, dst: Tile, src0: Tile, src1: Tile, *events: Wait) -> RecordEvent: ...


TCOLEXPANDDIV = _TCOLEXPANDDIV(INSTRUCTIONS["TCOLEXPANDDIV"])


class _TCOLEXPANDMAX(Instruction):
    """Take the larger of an element and that of one row in its column; one source is a single row."""

    if TYPE_CHECKING:

        def __call__(self, dst: Tile, src0: Tile, src1: Tile, *events: Wait) -> RecordEvent: ...


TCOLEXPANDMAX = _TCOLEXPANDMAX(INSTRUCTIONS["TCOLEXPANDMAX"])


class _TCOLEXPANDMIN(Instruction):
    """Take the smaller of an element and that of one row in its column; one source is a single row."""

    if TYPE_CHECKING:

        def __call__(self, dst: Tile, src0: Tile, src1: Tile, *events: Wait) -> RecordEvent: ...


TCOLEXPANDMIN = _TCOLEXPANDMIN(INSTRUCTIONS["TCOLEXPANDMIN"])


class _TCOLEXPANDEXPDIF(Instruction):
    """Compute exp(src0 - src1), where one source is a single row for all rows."""

    if TYPE_CHECKING:

        def __call__(self, dst: Tile, src0: Tile, src1: Tile, *events: Wait) -> RecordEvent: ...


TCOLEXPANDEXPDIF = _TCOLEXPANDEXPDIF(INSTRUCTIONS["TCOLEXPANDEXPDIF"])


class _TEXPANDS(Instruction):
    """Fill a tile with one scalar."""

    if TYPE_CHECKING:

        def __call__(self, dst: Tile | ConvTile, scalar: float, *events: Wait) -> RecordEvent: ...


TEXPANDS = _TEXPANDS(INSTRUCTIONS["TEXPANDS"])


class _TEXTRACT(Instruction):
    """Copy the window of src that starts at (indexRow, indexCol) into dst."""

    if TYPE_CHECKING:

        @overload
        def __call__(self, dst: Tile, src: Tile | ConvTile, *events: Wait) -> RecordEvent: ...
        @overload
        def __call__(
            self, dst: Tile, src: Tile | ConvTile, indexRow: float, *events: Wait
        ) -> RecordEvent: ...
        @overload
        def __call__(
            self, dst: Tile, src: Tile | ConvTile, indexRow: float, indexCol: float, *events: Wait
        ) -> RecordEvent: ...
        @overload
        def __call__(
            self,
            dst: Tile,
            src: Tile | ConvTile,
            preQuantScalar: float,
            indexRow: float,
            indexCol: float,
            *events: Wait,
        ) -> RecordEvent: ...
        @overload
        def __call__(
            self,
            dst: Tile,
            src: Tile | ConvTile,
            fp: Tile,
            indexRow: float,
            indexCol: float,
            *events: Wait,
        ) -> RecordEvent: ...
        @overload
        def __call__(
            self, dst: Tile, dst1: Tile, src: Tile | ConvTile, *events: Wait
        ) -> RecordEvent: ...
        @overload
        def __call__(
            self, dst: Tile, dst1: Tile, src: Tile | ConvTile, indexRow: float, *events: Wait
        ) -> RecordEvent: ...
        @overload
        def __call__(
            self,
            dst: Tile,
            dst1: Tile,
            src: Tile | ConvTile,
            indexRow: float,
            indexCol: float,
            *events: Wait,
        ) -> RecordEvent: ...
        @overload
        def __call__(
            self,
            dst: Tile,
            dst1: Tile,
            src: Tile | ConvTile,
            indexRow: float,
            indexCol: float,
            indexRow1: float,
            *events: Wait,
        ) -> RecordEvent: ...
        @overload
        def __call__(
            self,
            dst: Tile,
            dst1: Tile,
            src: Tile | ConvTile,
            indexRow: float,
            indexCol: float,
            indexRow1: float,
            indexCol1: float,
            *events: Wait,
        ) -> RecordEvent: ...


TEXTRACT = _TEXTRACT(INSTRUCTIONS["TEXTRACT"])


class _TEXTRACT_FP(Instruction):
    """Extract a window of an accumulator with a quantisation word per column."""

    if TYPE_CHECKING:

        def __call__(
            self, dst: Tile, src: Tile, fp: Tile, indexRow: float, indexCol: float, *events: Wait
        ) -> RecordEvent: ...


TEXTRACT_FP = _TEXTRACT_FP(INSTRUCTIONS["TEXTRACT_FP"])


class _TFILLPAD(Instruction):
    """Copy the valid part of a tile and fill what lies beside it with the pad value of dst."""

    if TYPE_CHECKING:

        def __call__(self, dst: Tile, src: Tile, *events: Wait) -> RecordEvent: ...


TFILLPAD = _TFILLPAD(INSTRUCTIONS["TFILLPAD"])


class _TFILLPAD_INPLACE(Instruction):
    """Fill what lies beside the valid part of a tile with the pad value of dst, in place."""

    if TYPE_CHECKING:

        def __call__(self, dst: Tile, src: Tile, *events: Wait) -> RecordEvent: ...


TFILLPAD_INPLACE = _TFILLPAD_INPLACE(INSTRUCTIONS["TFILLPAD_INPLACE"])


class _TFILLPAD_EXPAND(Instruction):
    """Copy the valid part of a tile into a larger one and fill the rest with its pad value."""

    if TYPE_CHECKING:

        def __call__(self, dst: Tile, src: Tile, *events: Wait) -> RecordEvent: ...


TFILLPAD_EXPAND = _TFILLPAD_EXPAND(INSTRUCTIONS["TFILLPAD_EXPAND"])


class _TADDC(Instruction):
    """Add three tiles, from left to right. There is no carry, whatever the name suggests."""

    if TYPE_CHECKING:

        def __call__(
            self, dst: Tile, src0: Tile, src1: Tile, src2: Tile, *events: Wait
        ) -> RecordEvent: ...


TADDC = _TADDC(INSTRUCTIONS["TADDC"])


class _TSUBC(Instruction):
    """Subtract the second tile from the first and add the third. There is no borrow."""

    if TYPE_CHECKING:

        def __call__(
            self, dst: Tile, src0: Tile, src1: Tile, src2: Tile, *events: Wait
        ) -> RecordEvent: ...


TSUBC = _TSUBC(INSTRUCTIONS["TSUBC"])


class _TMULADDDST(Instruction):
    """Add a product to the destination: `dst = src0 * src1 + dst`."""

    if TYPE_CHECKING:

        def __call__(self, dst: Tile, src0: Tile, src1: Tile, *events: Wait) -> RecordEvent: ...


TMULADDDST = _TMULADDDST(INSTRUCTIONS["TMULADDDST"])


class _TFUSEDMULADD(Instruction):
    """Multiply the destination and add to it: `dst = src0 * dst + src1`."""

    if TYPE_CHECKING:

        def __call__(self, dst: Tile, src0: Tile, src1: Tile, *events: Wait) -> RecordEvent: ...


TFUSEDMULADD = _TFUSEDMULADD(INSTRUCTIONS["TFUSEDMULADD"])


class _TFUSEDMULADDRELU(Instruction):
    """Multiply the destination, add to it and replace what is negative by zero."""

    if TYPE_CHECKING:

        def __call__(self, dst: Tile, src0: Tile, src1: Tile, *events: Wait) -> RecordEvent: ...


TFUSEDMULADDRELU = _TFUSEDMULADDRELU(INSTRUCTIONS["TFUSEDMULADDRELU"])


class _TSUBRELU(Instruction):
    """Subtract, and replace what is negative by zero: `dst = max(src0 - src1, 0)`."""

    if TYPE_CHECKING:

        def __call__(self, dst: Tile, src0: Tile, src1: Tile, *events: Wait) -> RecordEvent: ...


TSUBRELU = _TSUBRELU(INSTRUCTIONS["TSUBRELU"])


class _TADDRELUCONV(Instruction):
    """Add, replace what is negative by zero, and convert to the narrower type of the destination."""

    if TYPE_CHECKING:

        def __call__(self, dst: Tile, src0: Tile, src1: Tile, *events: Wait) -> RecordEvent: ...


TADDRELUCONV = _TADDRELUCONV(INSTRUCTIONS["TADDRELUCONV"])


class _TSUBRELUCONV(Instruction):
    """Subtract, replace what is negative by zero, and convert to the type of the destination."""

    if TYPE_CHECKING:

        def __call__(self, dst: Tile, src0: Tile, src1: Tile, *events: Wait) -> RecordEvent: ...


TSUBRELUCONV = _TSUBRELUCONV(INSTRUCTIONS["TSUBRELUCONV"])


class _TADDDEQRELU(Instruction):
    """Add two i32 tiles, scale the sum, replace what is negative by zero, and round to f16."""

    if TYPE_CHECKING:

        def __call__(
            self, dst: Tile, src0: Tile, src1: Tile, deqScale: float, tmp: Tile, *events: Wait
        ) -> RecordEvent: ...


TADDDEQRELU = _TADDDEQRELU(INSTRUCTIONS["TADDDEQRELU"])


class _TGATHER(Instruction):
    """Gather elements of a tile: by an index tile, by a fixed pattern, or those that compare."""

    if TYPE_CHECKING:

        @overload
        def __call__(
            self, dst: Tile, src0: Tile, src1: Tile, tmp: Tile, *events: Wait
        ) -> RecordEvent: ...
        @overload
        def __call__(self, dst: Tile, src0: Tile, *events: Wait) -> RecordEvent: ...
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
        ) -> RecordEvent: ...


TGATHER = _TGATHER(INSTRUCTIONS["TGATHER"])


class _TGATHERB(Instruction):
    """Copy 32-byte blocks of src, each from a byte offset of its own, to dst."""

    if TYPE_CHECKING:

        def __call__(self, dst: Tile, src: Tile, offset: Tile, *events: Wait) -> RecordEvent: ...


TGATHERB = _TGATHERB(INSTRUCTIONS["TGATHERB"])


class _MGATHER(Instruction):
    """Gather rows or single elements of a table in global memory into a tile."""

    if TYPE_CHECKING:

        @overload
        def __call__(
            self, dst: Tile, src: GlobalTensor, indexes: Tile | GlobalTensor, *events: Wait
        ) -> RecordEvent: ...
        @overload
        def __call__(
            self,
            dst: Tile,
            src: GlobalTensor,
            indexes: Tile | GlobalTensor,
            scratch: GlobalTensor,
            *events: Wait,
        ) -> RecordEvent: ...


MGATHER = _MGATHER(INSTRUCTIONS["MGATHER"])


class _MSCATTER(Instruction):
    """Scatter rows or single elements of a Vec tile into a table in global memory."""

    if TYPE_CHECKING:

        def __call__(
            self, dst: GlobalTensor, src: Tile, indexes: Tile, *events: Wait
        ) -> RecordEvent: ...


MSCATTER = _MSCATTER(INSTRUCTIONS["MSCATTER"])


class _SETFMATRIX(Instruction):
    """Load feature-map size and padding into image-to-column register A or B."""

    if TYPE_CHECKING:

        def __call__(self, src: ConvTile, *events: Wait) -> RecordEvent: ...


SETFMATRIX = _SETFMATRIX(INSTRUCTIONS["SETFMATRIX"])


class _SET_IMG2COL_RPT(Instruction):
    """Load the repeat configuration of the image-to-column engine."""

    if TYPE_CHECKING:

        def __call__(self, src: ConvTile, *events: Wait) -> RecordEvent: ...


SET_IMG2COL_RPT = _SET_IMG2COL_RPT(INSTRUCTIONS["SET_IMG2COL_RPT"])


class _SET_IMG2COL_PADDING(Instruction):
    """Load the value the image-to-column engine puts where the filter leaves the feature map."""

    if TYPE_CHECKING:

        def __call__(self, src: ConvTile, *events: Wait) -> RecordEvent: ...


SET_IMG2COL_PADDING = _SET_IMG2COL_PADDING(INSTRUCTIONS["SET_IMG2COL_PADDING"])


class _TIMG2COL(Instruction):
    """Unroll a feature map in L1 into rows of a left matmul operand."""

    if TYPE_CHECKING:

        @overload
        def __call__(self, dst: Tile, src: ConvTile, *events: Wait) -> RecordEvent: ...
        @overload
        def __call__(self, dst: Tile, src: ConvTile, posM: float, *events: Wait) -> RecordEvent: ...
        @overload
        def __call__(
            self, dst: Tile, src: ConvTile, posM: float, posK: float, *events: Wait
        ) -> RecordEvent: ...


TIMG2COL = _TIMG2COL(INSTRUCTIONS["TIMG2COL"])


class _TINSERT(Instruction):
    """Copy src into the window of dst that starts at (indexRow, indexCol)."""

    if TYPE_CHECKING:

        @overload
        def __call__(
            self, dst: Tile, src: Tile, indexRow: float, indexCol: float, *events: Wait
        ) -> RecordEvent: ...
        @overload
        def __call__(
            self,
            dst: Tile,
            src: Tile,
            preQuantScalar: float,
            indexRow: float,
            indexCol: float,
            *events: Wait,
        ) -> RecordEvent: ...
        @overload
        def __call__(
            self, dst: Tile, src: Tile, fp: Tile, indexRow: float, indexCol: float, *events: Wait
        ) -> RecordEvent: ...
        @overload
        def __call__(self, dst: Tile, src: Tile, *events: Wait) -> RecordEvent: ...
        @overload
        def __call__(self, dst: Tile, src: Tile, indexRow: float, *events: Wait) -> RecordEvent: ...


TINSERT = _TINSERT(INSTRUCTIONS["TINSERT"])


class _TINSERT_FP(Instruction):
    """Insert an accumulator with a quantisation word per column of src."""

    if TYPE_CHECKING:

        def __call__(
            self, dst: Tile, src: Tile, fp: Tile, indexRow: float, indexCol: float, *events: Wait
        ) -> RecordEvent: ...


TINSERT_FP = _TINSERT_FP(INSTRUCTIONS["TINSERT_FP"])


class _TMATMUL(Instruction):
    """Multiply two matrices into a fresh accumulator."""

    if TYPE_CHECKING:

        def __call__(
            self, cMatrix: Tile, aMatrix: Tile, bMatrix: Tile, *events: Wait
        ) -> RecordEvent: ...


TMATMUL = _TMATMUL(INSTRUCTIONS["TMATMUL"])


class _TMATMUL_ACC(Instruction):
    """Multiply two matrices and add the product to an accumulator."""

    if TYPE_CHECKING:

        @overload
        def __call__(
            self, cOutMatrix: Tile, cInMatrix: Tile, aMatrix: Tile, bMatrix: Tile, *events: Wait
        ) -> RecordEvent: ...
        @overload
        def __call__(
            self, cOutMatrix: Tile, aMatrix: Tile, bMatrix: Tile, *events: Wait
        ) -> RecordEvent: ...


TMATMUL_ACC = _TMATMUL_ACC(INSTRUCTIONS["TMATMUL_ACC"])


class _TMATMUL_BIAS(Instruction):
    """Multiply two matrices, every column of the accumulator starting from its bias."""

    if TYPE_CHECKING:

        def __call__(
            self, cMatrix: Tile, aMatrix: Tile, bMatrix: Tile, biasData: Tile, *events: Wait
        ) -> RecordEvent: ...


TMATMUL_BIAS = _TMATMUL_BIAS(INSTRUCTIONS["TMATMUL_BIAS"])


class _TGEMV(Instruction):
    """Multiply a row by a matrix into a fresh accumulator row."""

    if TYPE_CHECKING:

        def __call__(
            self, cMatrix: Tile, aMatrix: Tile, bMatrix: Tile, *events: Wait
        ) -> RecordEvent: ...


TGEMV = _TGEMV(INSTRUCTIONS["TGEMV"])


class _TGEMV_ACC(Instruction):
    """Multiply a row by a matrix and add the product to an accumulator row."""

    if TYPE_CHECKING:

        def __call__(
            self, cOutMatrix: Tile, cInMatrix: Tile, aMatrix: Tile, bMatrix: Tile, *events: Wait
        ) -> RecordEvent: ...


TGEMV_ACC = _TGEMV_ACC(INSTRUCTIONS["TGEMV_ACC"])


class _TGEMV_BIAS(Instruction):
    """Multiply a row by a matrix, every element of the accumulator row starting from its bias."""

    if TYPE_CHECKING:

        def __call__(
            self, cMatrix: Tile, aMatrix: Tile, bMatrix: Tile, biasData: Tile, *events: Wait
        ) -> RecordEvent: ...


TGEMV_BIAS = _TGEMV_BIAS(INSTRUCTIONS["TGEMV_BIAS"])


class _TSETTF32MODE(Instruction):
    """Switch the reduced precision of f32 matrix products on or off."""

    if TYPE_CHECKING:

        def __call__(self, *events: Wait) -> RecordEvent: ...


TSETTF32MODE = _TSETTF32MODE(INSTRUCTIONS["TSETTF32MODE"])


class _TSETHF32MODE(Instruction):
    """Switch HF32 mode; no supported device has it, use TSETTF32MODE."""

    if TYPE_CHECKING:

        def __call__(self, *events: Wait) -> RecordEvent: ...


TSETHF32MODE = _TSETHF32MODE(INSTRUCTIONS["TSETHF32MODE"])


class _TMATMUL_MX(Instruction):
    """Multiply two block-scaled matrices: fp8 or fp4 elements, one e8m0 scale per 32 along K."""

    if TYPE_CHECKING:

        @overload
        def __call__(
            self,
            cMatrix: Tile,
            aMatrix: Tile,
            aScaleMatrix: Tile,
            bMatrix: Tile,
            bScaleMatrix: Tile,
            *events: Wait,
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
        ) -> RecordEvent: ...


TMATMUL_MX = _TMATMUL_MX(INSTRUCTIONS["TMATMUL_MX"])


class _TGEMV_MX(Instruction):
    """Multiply a block-scaled row by a block-scaled matrix."""

    if TYPE_CHECKING:

        @overload
        def __call__(
            self,
            cMatrix: Tile,
            aMatrix: Tile,
            aScaleMatrix: Tile,
            bMatrix: Tile,
            bScaleMatrix: Tile,
            *events: Wait,
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
        ) -> RecordEvent: ...


TGEMV_MX = _TGEMV_MX(INSTRUCTIONS["TGEMV_MX"])


class _TMATMUL_MX_HIF4(Instruction):
    """Multiply HiFloat4 matrices with three-level scales; no supported device has it."""

    if TYPE_CHECKING:

        @overload
        def __call__(
            self,
            cMatrix: Tile,
            aMatrix: Tile,
            aScaleMatrix: Tile,
            bMatrix: Tile,
            bScaleMatrix: Tile,
            *events: Wait,
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
        ) -> RecordEvent: ...


TMATMUL_MX_HIF4 = _TMATMUL_MX_HIF4(INSTRUCTIONS["TMATMUL_MX_HIF4"])


class _TCI(Instruction):
    """Write consecutive integers into a row: start, start + 1, ... or start, start - 1, ..."""

    if TYPE_CHECKING:

        @overload
        def __call__(self, dst: Tile, start: float, *events: Wait) -> RecordEvent: ...
        @overload
        def __call__(self, dst: Tile, start: float, tmp: Tile, *events: Wait) -> RecordEvent: ...


TCI = _TCI(INSTRUCTIONS["TCI"])


class _TTRI(Instruction):
    """Write a triangular matrix of ones and zeros."""

    if TYPE_CHECKING:

        def __call__(self, dst: Tile, diagonal: float, *events: Wait) -> RecordEvent: ...


TTRI = _TTRI(INSTRUCTIONS["TTRI"])


class _TRANDOM(Instruction):
    """Fill a tile with random 32-bit words (Philox4x32, 7 or 10 rounds)."""

    if TYPE_CHECKING:

        def __call__(
            self,
            dst: Tile,
            key0: float,
            key1: float,
            counter0: float,
            counter1: float,
            counter2: float,
            counter3: float,
            *events: Wait,
        ) -> RecordEvent: ...


TRANDOM = _TRANDOM(INSTRUCTIONS["TRANDOM"])


class _THISTOGRAM(Instruction):
    """Count one byte of every element, row by row, into a cumulative histogram of 256 bins."""

    if TYPE_CHECKING:

        def __call__(self, dst: Tile, src: Tile, idx: Tile, *events: Wait) -> RecordEvent: ...


THISTOGRAM = _THISTOGRAM(INSTRUCTIONS["THISTOGRAM"])


class _GETVAL(Instruction):
    """Read one element in the scalar unit and return it as a Python number."""

    if TYPE_CHECKING:

        def __call__(self, src: Tile, offset: float, *events: Wait) -> Any: ...


GETVAL = _GETVAL(INSTRUCTIONS["GETVAL"])


class _SETVAL(Instruction):
    """Write one element in the scalar unit; all others keep their value."""

    if TYPE_CHECKING:

        def __call__(self, dst: Tile, offset: float, val: float, *events: Wait) -> RecordEvent: ...


SETVAL = _SETVAL(INSTRUCTIONS["SETVAL"])


class _TMOV(Instruction):
    """Move a tile to another memory space or layout; element (r, c) stays element (r, c)."""

    if TYPE_CHECKING:

        @overload
        def __call__(self, dst: Tile, src: Tile | ConvTile, *events: Wait) -> RecordEvent: ...
        @overload
        def __call__(
            self, dst: Tile, src: Tile | ConvTile, preQuantScalar: float, *events: Wait
        ) -> RecordEvent: ...
        @overload
        def __call__(
            self, dst: Tile, src: Tile | ConvTile, fp: Tile, *events: Wait
        ) -> RecordEvent: ...
        @overload
        def __call__(
            self, dst: Tile, src: Tile | ConvTile, tmp: Tile, *events: Wait
        ) -> RecordEvent: ...


TMOV = _TMOV(INSTRUCTIONS["TMOV"])


class _TMOV_FP(Instruction):
    """Move an accumulator with a quantisation word per column: dst(r, c) = quant(src(r, c), fp[c])."""

    if TYPE_CHECKING:

        def __call__(self, dst: Tile, src: Tile, fp: Tile, *events: Wait) -> RecordEvent: ...


TMOV_FP = _TMOV_FP(INSTRUCTIONS["TMOV_FP"])


class _TQUANT_MX(Instruction):
    """Quantise to MXFP8 (E4M3) or MXFP4 (E2M1); 32 consecutive elements of a row share an exponent."""

    if TYPE_CHECKING:

        @overload
        def __call__(
            self, dst: Tile, src: Tile, exp: Tile, max: Tile, scaling: Tile, *events: Wait
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
        ) -> RecordEvent: ...


TQUANT_MX = _TQUANT_MX(INSTRUCTIONS["TQUANT_MX"])


class _TQUANT_DN(Instruction):
    """Quantise to MXFP8 or MXFP4; 32 consecutive elements of a column share an exponent."""

    if TYPE_CHECKING:

        def __call__(
            self, dst: Tile, src: Tile, exp: Tile, max: Tile, scaling: Tile, *events: Wait
        ) -> RecordEvent: ...


TQUANT_DN = _TQUANT_DN(INSTRUCTIONS["TQUANT_DN"])


class _TQUANT_HIF4(Instruction):
    """Quantise bf16 to HiFloat4 with three-level scales; no supported device has it."""

    if TYPE_CHECKING:

        def __call__(
            self, dst: Tile, src: Tile, exp: Tile, max: Tile, scaling: Tile, *events: Wait
        ) -> RecordEvent: ...


TQUANT_HIF4 = _TQUANT_HIF4(INSTRUCTIONS["TQUANT_HIF4"])


class _TPARTADD(Instruction):
    """Add two tiles where both are defined, and copy the one that is where only one is."""

    if TYPE_CHECKING:

        def __call__(self, dst: Tile, src0: Tile, src1: Tile, *events: Wait) -> RecordEvent: ...


TPARTADD = _TPARTADD(INSTRUCTIONS["TPARTADD"])


class _TPARTMUL(Instruction):
    """Multiply two tiles where both are defined, and copy the one that is where only one is."""

    if TYPE_CHECKING:

        def __call__(self, dst: Tile, src0: Tile, src1: Tile, *events: Wait) -> RecordEvent: ...


TPARTMUL = _TPARTMUL(INSTRUCTIONS["TPARTMUL"])


class _TPARTMAX(Instruction):
    """Take the larger element where both tiles are defined; copy where only one is."""

    if TYPE_CHECKING:

        def __call__(self, dst: Tile, src0: Tile, src1: Tile, *events: Wait) -> RecordEvent: ...


TPARTMAX = _TPARTMAX(INSTRUCTIONS["TPARTMAX"])


class _TPARTMIN(Instruction):
    """Take the smaller element where both tiles are defined; copy where only one is."""

    if TYPE_CHECKING:

        def __call__(self, dst: Tile, src0: Tile, src1: Tile, *events: Wait) -> RecordEvent: ...


TPARTMIN = _TPARTMIN(INSTRUCTIONS["TPARTMIN"])


class _TPARTARGMAX(Instruction):
    """Keep the larger of two values together with its index; copy where only one is defined."""

    if TYPE_CHECKING:

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


TPARTARGMAX = _TPARTARGMAX(INSTRUCTIONS["TPARTARGMAX"])


class _TPARTARGMIN(Instruction):
    """Keep the smaller of two values together with its index; copy where only one is defined."""

    if TYPE_CHECKING:

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


TPARTARGMIN = _TPARTARGMIN(INSTRUCTIONS["TPARTARGMIN"])


class _TALLOC(Instruction):
    """Reserve the next slot of a FIFO for the producer and show it as a GlobalTensor."""

    if TYPE_CHECKING:

        def __call__(self, pipe: Any, gmTensor: GlobalTensor, *events: Wait) -> RecordEvent: ...


TALLOC = _TALLOC(INSTRUCTIONS["TALLOC"])


class _TPUSH(Instruction):
    """Hand one entry to the consumer: write a tile into the ring, or commit an allocated slot."""

    if TYPE_CHECKING:

        @overload
        def __call__(self, pipe: Any, tile: Tile, *events: Wait) -> RecordEvent: ...
        @overload
        def __call__(
            self, pipe: Any, tile: Tile, subBlockId: float, *events: Wait
        ) -> RecordEvent: ...
        @overload
        def __call__(self, pipe: Any, gmTensor: GlobalTensor, *events: Wait) -> RecordEvent: ...
        @overload
        def __call__(self, tile: Tile, pipe: Any, *events: Wait) -> RecordEvent: ...


TPUSH = _TPUSH(INSTRUCTIONS["TPUSH"])


class _TPOP(Instruction):
    """Wait for the next entry and take it, as a tile or as a GlobalTensor view of its slot."""

    if TYPE_CHECKING:

        @overload
        def __call__(self, pipe: Any, tile: Tile, *events: Wait) -> RecordEvent: ...
        @overload
        def __call__(
            self, pipe: Any, tile: Tile, subBlockId: float, *events: Wait
        ) -> RecordEvent: ...
        @overload
        def __call__(self, pipe: Any, gmTensor: GlobalTensor, *events: Wait) -> RecordEvent: ...
        @overload
        def __call__(self, tile: Tile, pipe: Any, *events: Wait) -> RecordEvent: ...


TPOP = _TPOP(INSTRUCTIONS["TPOP"])


class _TFREE(Instruction):
    """Give a consumed slot back to the producer, after the last read of the entry."""

    if TYPE_CHECKING:

        @overload
        def __call__(self, pipe: Any, *events: Wait) -> RecordEvent: ...
        @overload
        def __call__(self, pipe: Any, gmTensor: GlobalTensor, *events: Wait) -> RecordEvent: ...


TFREE = _TFREE(INSTRUCTIONS["TFREE"])


class _TPREFETCH(Instruction):
    """Pull a region of global memory towards the core by reading it through a scratch Vec tile."""

    if TYPE_CHECKING:

        def __call__(self, dst: Tile, src: GlobalTensor, *events: Wait) -> RecordEvent: ...


TPREFETCH = _TPREFETCH(INSTRUCTIONS["TPREFETCH"])


class _TPREFETCH_ASYNC(Instruction):
    """Ask the DMA engine to bring a contiguous range of global memory into the L2 cache."""

    if TYPE_CHECKING:

        def __call__(self, src: GlobalTensor, context: Any, *events: Wait) -> RecordEvent: ...


TPREFETCH_ASYNC = _TPREFETCH_ASYNC(INSTRUCTIONS["TPREFETCH_ASYNC"])


class _TPRINT(Instruction):
    """Print a tile or a global tensor to standard output. A debugging aid: it orders all pipes."""

    if TYPE_CHECKING:

        @overload
        def __call__(self, src: Tile | GlobalTensor, *events: Wait) -> RecordEvent: ...
        @overload
        def __call__(
            self, src: Tile | GlobalTensor, tmp: GlobalTensor, *events: Wait
        ) -> RecordEvent: ...


TPRINT = _TPRINT(INSTRUCTIONS["TPRINT"])


class _TQUANT(Instruction):
    """Quantise f32 rows to 8-bit integers."""

    if TYPE_CHECKING:

        @overload
        def __call__(self, dst: Tile, src: Tile, scale: Tile, *events: Wait) -> RecordEvent: ...
        @overload
        def __call__(
            self, dst: Tile, src: Tile, scale: Tile, tmp: Tile, *events: Wait
        ) -> RecordEvent: ...
        @overload
        def __call__(
            self, dst: Tile, src: Tile, scale: Tile, offset: Tile, *events: Wait
        ) -> RecordEvent: ...
        @overload
        def __call__(
            self, dst: Tile, src: Tile, scale: Tile, tmp: Tile, offset: Tile, *events: Wait
        ) -> RecordEvent: ...


TQUANT = _TQUANT(INSTRUCTIONS["TQUANT"])


class _TDEQUANT(Instruction):
    """Turn quantised integers back into f32: (src - offset) * scale, one scale and offset per row."""

    if TYPE_CHECKING:

        def __call__(
            self, dst: Tile, src: Tile, scale: Tile, offset: Tile, *events: Wait
        ) -> RecordEvent: ...


TDEQUANT = _TDEQUANT(INSTRUCTIONS["TDEQUANT"])


class _TCONCAT(Instruction):
    """Join two tiles side by side, row by row; optionally each row has lengths of its own."""

    if TYPE_CHECKING:

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


TCONCAT = _TCONCAT(INSTRUCTIONS["TCONCAT"])


class _TINTERLEAVE(Instruction):
    """Merge two tiles element by element into one stream, given back as two halves."""

    if TYPE_CHECKING:

        def __call__(
            self, dst1: Tile, dst0: Tile, src1: Tile, src0: Tile, *events: Wait
        ) -> RecordEvent: ...


TINTERLEAVE = _TINTERLEAVE(INSTRUCTIONS["TINTERLEAVE"])


class _TDEINTERLEAVE(Instruction):
    """Separate the even positions of a stream (dst0) from the odd ones (dst1)."""

    if TYPE_CHECKING:

        @overload
        def __call__(
            self, dst1: Tile, dst0: Tile, src1: Tile, src0: Tile, *events: Wait
        ) -> RecordEvent: ...
        @overload
        def __call__(self, dst1: Tile, dst0: Tile, src: Tile, *events: Wait) -> RecordEvent: ...


TDEINTERLEAVE = _TDEINTERLEAVE(INSTRUCTIONS["TDEINTERLEAVE"])


class _TPAIRREDUCESUM(Instruction):
    """Add neighbouring pairs of each row: dst(r, k) = src0(r, 2k) + src0(r, 2k + 1)."""

    if TYPE_CHECKING:

        def __call__(self, dst: Tile, src0: Tile, *events: Wait) -> RecordEvent: ...


TPAIRREDUCESUM = _TPAIRREDUCESUM(INSTRUCTIONS["TPAIRREDUCESUM"])


class _TPACK(Instruction):
    """Reserved: the name of an instruction that no target has. Use TCVT."""

    if TYPE_CHECKING:

        def __call__(self, dst: Tile, src: Tile, *events: Wait) -> RecordEvent: ...


TPACK = _TPACK(INSTRUCTIONS["TPACK"])


class _TROWSUM(Instruction):
    """Sum every row of src into column 0 of dst."""

    if TYPE_CHECKING:

        def __call__(self, dst: Tile, src: Tile, tmp: Tile, *events: Wait) -> RecordEvent: ...


TROWSUM = _TROWSUM(INSTRUCTIONS["TROWSUM"])


class _TROWPROD(Instruction):
    """Multiply every row of src into column 0 of dst."""

    if TYPE_CHECKING:

        def __call__(self, dst: Tile, src: Tile, tmp: Tile, *events: Wait) -> RecordEvent: ...


TROWPROD = _TROWPROD(INSTRUCTIONS["TROWPROD"])


class _TROWMAX(Instruction):
    """Store the maximum of every row of src in column 0 of dst."""

    if TYPE_CHECKING:

        def __call__(self, dst: Tile, src: Tile, tmp: Tile, *events: Wait) -> RecordEvent: ...


TROWMAX = _TROWMAX(INSTRUCTIONS["TROWMAX"])


class _TROWMIN(Instruction):
    """Store the minimum of every row of src in column 0 of dst."""

    if TYPE_CHECKING:

        def __call__(self, dst: Tile, src: Tile, tmp: Tile, *events: Wait) -> RecordEvent: ...


TROWMIN = _TROWMIN(INSTRUCTIONS["TROWMIN"])


class _TCOLSUM(Instruction):
    """Sum every column of src into row 0 of dst."""

    if TYPE_CHECKING:

        @overload
        def __call__(self, dst: Tile, src: Tile, *events: Wait) -> RecordEvent: ...
        @overload
        def __call__(self, dst: Tile, src: Tile, tmp: Tile, *events: Wait) -> RecordEvent: ...


TCOLSUM = _TCOLSUM(INSTRUCTIONS["TCOLSUM"])


class _TCOLPROD(Instruction):
    """Multiply every column of src into row 0 of dst."""

    if TYPE_CHECKING:

        def __call__(self, dst: Tile, src: Tile, *events: Wait) -> RecordEvent: ...


TCOLPROD = _TCOLPROD(INSTRUCTIONS["TCOLPROD"])


class _TCOLMAX(Instruction):
    """Store the maximum of every column of src in row 0 of dst."""

    if TYPE_CHECKING:

        def __call__(self, dst: Tile, src: Tile, *events: Wait) -> RecordEvent: ...


TCOLMAX = _TCOLMAX(INSTRUCTIONS["TCOLMAX"])


class _TCOLMIN(Instruction):
    """Store the minimum of every column of src in row 0 of dst."""

    if TYPE_CHECKING:

        def __call__(self, dst: Tile, src: Tile, *events: Wait) -> RecordEvent: ...


TCOLMIN = _TCOLMIN(INSTRUCTIONS["TCOLMIN"])


class _TSCATTER(Instruction):
    """Clear dst, then scatter the elements of src to where an index tile or a pattern says."""

    if TYPE_CHECKING:

        @overload
        def __call__(self, dst: Tile, src: Tile, indexes: Tile, *events: Wait) -> RecordEvent: ...
        @overload
        def __call__(self, dst: Tile, src: Tile, *events: Wait) -> RecordEvent: ...


TSCATTER = _TSCATTER(INSTRUCTIONS["TSCATTER"])


class _TSORT32(Instruction):
    """Sort every 32 columns of a row in descending order, carrying an index with each value."""

    if TYPE_CHECKING:

        @overload
        def __call__(self, dst: Tile, src: Tile, idx: Tile, *events: Wait) -> RecordEvent: ...
        @overload
        def __call__(
            self, dst: Tile, src: Tile, idx: Tile, tmp: Tile, *events: Wait
        ) -> RecordEvent: ...


TSORT32 = _TSORT32(INSTRUCTIONS["TSORT32"])


class _TMRGSORT(Instruction):
    """Merge descending lists of 8-byte records, as TSORT32 makes them, into one."""

    if TYPE_CHECKING:

        @overload
        def __call__(
            self, dst: Tile, src0: Tile, blockLen: float, *events: Wait
        ) -> RecordEvent: ...
        @overload
        def __call__(
            self, dst: Tile, executedNumList: Any, tmp: Tile, src0: Tile, src1: Tile, *events: Wait
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
        ) -> RecordEvent: ...


TMRGSORT = _TMRGSORT(INSTRUCTIONS["TMRGSORT"])


class _set_flag(Instruction):
    """Raise a flag from one pipe for another, behind all earlier work of the first."""

    if TYPE_CHECKING:

        def __call__(
            self, src_pipe: float, dst_pipe: float, event_id: float, *events: Wait
        ) -> RecordEvent: ...


set_flag = _set_flag(INSTRUCTIONS["set_flag"])


class _wait_flag(Instruction):
    """Hold later work of the destination pipe until the flag is raised, and lower it."""

    if TYPE_CHECKING:

        def __call__(
            self, src_pipe: float, dst_pipe: float, event_id: float, *events: Wait
        ) -> RecordEvent: ...


wait_flag = _wait_flag(INSTRUCTIONS["wait_flag"])


class _pipe_barrier(Instruction):
    """Start later work of a pipe only when all its earlier work is complete."""

    if TYPE_CHECKING:

        def __call__(self, pipe: float, *events: Wait) -> RecordEvent: ...


pipe_barrier = _pipe_barrier(INSTRUCTIONS["pipe_barrier"])


class _TSYNC(Instruction):
    """Wait for events, `TSYNC(e0, e1)`, or drain the pipe of an operation, `TSYNC[Op.TADD]()`."""

    if TYPE_CHECKING:

        def __call__(self, *events: Wait) -> RecordEvent: ...


TSYNC = _TSYNC(INSTRUCTIONS["TSYNC"])


class _get_buf(Instruction):
    """Acquire a numbered buffer for a pipe: its later work waits for whoever holds it."""

    if TYPE_CHECKING:

        @overload
        def __call__(self, pipe: float, buf_id: float, *events: Wait) -> RecordEvent: ...
        @overload
        def __call__(
            self, pipe: float, buf_id: float, mode: float, *events: Wait
        ) -> RecordEvent: ...


get_buf = _get_buf(INSTRUCTIONS["get_buf"])


class _rls_buf(Instruction):
    """Release a numbered buffer, behind the work of the pipe so far; once per get_buf."""

    if TYPE_CHECKING:

        @overload
        def __call__(self, pipe: float, buf_id: float, *events: Wait) -> RecordEvent: ...
        @overload
        def __call__(
            self, pipe: float, buf_id: float, mode: float, *events: Wait
        ) -> RecordEvent: ...


rls_buf = _rls_buf(INSTRUCTIONS["rls_buf"])


class _set_ffts_base_addr(Instruction):
    """Tell the core where its cross-core signals go; once, before the first of them."""

    if TYPE_CHECKING:

        def __call__(self, addr: float, *events: Wait) -> RecordEvent: ...


set_ffts_base_addr = _set_ffts_base_addr(INSTRUCTIONS["set_ffts_base_addr"])


class _ffts_cross_core_sync(Instruction):
    """Signal other cores, behind the earlier work of a pipe."""

    if TYPE_CHECKING:

        def __call__(self, pipe: float, msg: float, *events: Wait) -> RecordEvent: ...


ffts_cross_core_sync = _ffts_cross_core_sync(INSTRUCTIONS["ffts_cross_core_sync"])


class _wait_flag_dev(Instruction):
    """Stop the scalar unit until a cross-core signal has come, and take it."""

    if TYPE_CHECKING:

        @overload
        def __call__(self, id: float, *events: Wait) -> RecordEvent: ...
        @overload
        def __call__(self, pipe: float, id: float, *events: Wait) -> RecordEvent: ...


wait_flag_dev = _wait_flag_dev(INSTRUCTIONS["wait_flag_dev"])


class _set_intra_block(Instruction):
    """Signal one core of the cluster, behind the earlier work of a pipe."""

    if TYPE_CHECKING:

        def __call__(self, pipe: float, id: float, *events: Wait) -> RecordEvent: ...


set_intra_block = _set_intra_block(INSTRUCTIONS["set_intra_block"])


class _wait_intra_block(Instruction):
    """Hold one pipe until a core of the cluster has signalled, and take the signal."""

    if TYPE_CHECKING:

        def __call__(self, pipe: float, id: float, *events: Wait) -> RecordEvent: ...


wait_intra_block = _wait_intra_block(INSTRUCTIONS["wait_intra_block"])


class _SYNCALL(Instruction):
    """Meet all cores of a launch: the vector cores, the cube cores, or all of them."""

    if TYPE_CHECKING:

        @overload
        def __call__(self, *events: Wait) -> RecordEvent: ...
        @overload
        def __call__(self, gmWorkspace: GlobalTensor, *events: Wait) -> RecordEvent: ...
        @overload
        def __call__(
            self, gmWorkspace: GlobalTensor, usedCores: float, *events: Wait
        ) -> RecordEvent: ...


SYNCALL = _SYNCALL(INSTRUCTIONS["SYNCALL"])


class _dcci(Instruction):
    """Write a line of the scalar data cache back and forget it, or all lines."""

    if TYPE_CHECKING:

        @overload
        def __call__(
            self, ptr: Pointer | GlobalTensor, scope: float, *events: Wait
        ) -> RecordEvent: ...
        @overload
        def __call__(
            self, ptr: Pointer | GlobalTensor, scope: float, out: float, *events: Wait
        ) -> RecordEvent: ...


dcci = _dcci(INSTRUCTIONS["dcci"])


class _dsb(Instruction):
    """Wait until earlier scalar stores and cache write-backs have reached memory."""

    if TYPE_CHECKING:

        def __call__(self, kind: float, *events: Wait) -> RecordEvent: ...


dsb = _dsb(INSTRUCTIONS["dsb"])


class _load_scalar(Instruction):
    """Read one element of global memory through the scalar data cache and return it."""

    if TYPE_CHECKING:

        def __call__(self, ptr: Pointer | GlobalTensor, offset: float, *events: Wait) -> Any: ...


load_scalar = _load_scalar(INSTRUCTIONS["load_scalar"])


class _store_scalar(Instruction):
    """Write one element of global memory through the scalar data cache."""

    if TYPE_CHECKING:

        def __call__(
            self, ptr: Pointer | GlobalTensor, offset: float, value: float, *events: Wait
        ) -> RecordEvent: ...


store_scalar = _store_scalar(INSTRUCTIONS["store_scalar"])


class _TEXP(Instruction):
    """Raise e to the power of each element."""

    if TYPE_CHECKING:

        def __call__(self, dst: Tile, src: Tile, *events: Wait) -> RecordEvent: ...


TEXP = _TEXP(INSTRUCTIONS["TEXP"])


class _TLOG(Instruction):
    """Take the natural logarithm."""

    if TYPE_CHECKING:

        def __call__(self, dst: Tile, src: Tile, *events: Wait) -> RecordEvent: ...


TLOG = _TLOG(INSTRUCTIONS["TLOG"])


class _TSQRT(Instruction):
    """Take the square root. The root of a negative number is NaN, that of -0 is -0."""

    if TYPE_CHECKING:

        def __call__(self, dst: Tile, src: Tile, *events: Wait) -> RecordEvent: ...


TSQRT = _TSQRT(INSTRUCTIONS["TSQRT"])


class _TRSQRT(Instruction):
    """Take the reciprocal of the square root."""

    if TYPE_CHECKING:

        @overload
        def __call__(self, dst: Tile, src: Tile, *events: Wait) -> RecordEvent: ...
        @overload
        def __call__(self, dst: Tile, src: Tile, tmp: Tile, *events: Wait) -> RecordEvent: ...


TRSQRT = _TRSQRT(INSTRUCTIONS["TRSQRT"])


class _TRECIP(Instruction):
    """Take the reciprocal; 1 / 0 is an infinity."""

    if TYPE_CHECKING:

        def __call__(self, dst: Tile, src: Tile, *events: Wait) -> RecordEvent: ...


TRECIP = _TRECIP(INSTRUCTIONS["TRECIP"])


class _TPOW(Instruction):
    """Raise the first tile to the powers in the second."""

    if TYPE_CHECKING:

        def __call__(
            self, dst: Tile, base: Tile, exp: Tile, tmp: Tile, *events: Wait
        ) -> RecordEvent: ...


TPOW = _TPOW(INSTRUCTIONS["TPOW"])


class _TADDS(Instruction):
    """Add a scalar to every element."""

    if TYPE_CHECKING:

        def __call__(self, dst: Tile, src: Tile, scalar: float, *events: Wait) -> RecordEvent: ...


TADDS = _TADDS(INSTRUCTIONS["TADDS"])


class _TSUBS(Instruction):
    """Subtract a scalar from every element."""

    if TYPE_CHECKING:

        def __call__(self, dst: Tile, src: Tile, scalar: float, *events: Wait) -> RecordEvent: ...


TSUBS = _TSUBS(INSTRUCTIONS["TSUBS"])


class _TMULS(Instruction):
    """Multiply every element by a scalar."""

    if TYPE_CHECKING:

        def __call__(self, dst: Tile, src: Tile, scalar: float, *events: Wait) -> RecordEvent: ...


TMULS = _TMULS(INSTRUCTIONS["TMULS"])


class _TMAXS(Instruction):
    """Replace elements below a scalar by it."""

    if TYPE_CHECKING:

        def __call__(self, dst: Tile, src: Tile, scalar: float, *events: Wait) -> RecordEvent: ...


TMAXS = _TMAXS(INSTRUCTIONS["TMAXS"])


class _TMINS(Instruction):
    """Replace elements above a scalar by it."""

    if TYPE_CHECKING:

        def __call__(self, dst: Tile, src: Tile, scalar: float, *events: Wait) -> RecordEvent: ...


TMINS = _TMINS(INSTRUCTIONS["TMINS"])


class _TDIVS(Instruction):
    """Divide a tile by a scalar, or a scalar by a tile: the order of the operands decides."""

    if TYPE_CHECKING:

        def __call__(
            self, dst: Tile, src0: Tile | float, scalar: float | Tile, *events: Wait
        ) -> RecordEvent: ...


TDIVS = _TDIVS(INSTRUCTIONS["TDIVS"])


class _TREMS(Instruction):
    """Take the remainder of a division by a scalar; its sign is that of the scalar."""

    if TYPE_CHECKING:

        def __call__(
            self, dst: Tile, src: Tile, scalar: float, tmp: Tile, *events: Wait
        ) -> RecordEvent: ...


TREMS = _TREMS(INSTRUCTIONS["TREMS"])


class _TFMODS(Instruction):
    """Take the remainder of a division by a scalar; its sign is that of the dividend."""

    if TYPE_CHECKING:

        def __call__(self, dst: Tile, src: Tile, scalar: float, *events: Wait) -> RecordEvent: ...


TFMODS = _TFMODS(INSTRUCTIONS["TFMODS"])


class _TPOWS(Instruction):
    """Raise every element to the same power."""

    if TYPE_CHECKING:

        def __call__(
            self, dst: Tile, base: Tile, exp: float, tmp: Tile, *events: Wait
        ) -> RecordEvent: ...


TPOWS = _TPOWS(INSTRUCTIONS["TPOWS"])


class _TLRELU(Instruction):
    """Multiply the elements that are not positive by a slope, the scalar (leaky ReLU)."""

    if TYPE_CHECKING:

        def __call__(self, dst: Tile, src: Tile, scalar: float, *events: Wait) -> RecordEvent: ...


TLRELU = _TLRELU(INSTRUCTIONS["TLRELU"])


class _TAXPY(Instruction):
    """Add a multiple of a tile: dst = dst + scalar * src."""

    if TYPE_CHECKING:

        def __call__(self, dst: Tile, src: Tile, scalar: float, *events: Wait) -> RecordEvent: ...


TAXPY = _TAXPY(INSTRUCTIONS["TAXPY"])


class _TADDSC(Instruction):
    """Add a scalar and a tile to a tile: (src0 + scalar) + src1, from left to right."""

    if TYPE_CHECKING:

        def __call__(
            self, dst: Tile, src0: Tile, scalar: float, src1: Tile, *events: Wait
        ) -> RecordEvent: ...


TADDSC = _TADDSC(INSTRUCTIONS["TADDSC"])


class _TSUBSC(Instruction):
    """Subtract a scalar from a tile and add a tile: (src0 - scalar) + src1, from left to right."""

    if TYPE_CHECKING:

        def __call__(
            self, dst: Tile, src0: Tile, scalar: float, src1: Tile, *events: Wait
        ) -> RecordEvent: ...


TSUBSC = _TSUBSC(INSTRUCTIONS["TSUBSC"])


class _TANDS(Instruction):
    """Combine every element with a scalar by bitwise AND."""

    if TYPE_CHECKING:

        def __call__(self, dst: Tile, src: Tile, scalar: float, *events: Wait) -> RecordEvent: ...


TANDS = _TANDS(INSTRUCTIONS["TANDS"])


class _TORS(Instruction):
    """Combine every element with a scalar by bitwise OR."""

    if TYPE_CHECKING:

        def __call__(self, dst: Tile, src: Tile, scalar: float, *events: Wait) -> RecordEvent: ...


TORS = _TORS(INSTRUCTIONS["TORS"])


class _TXORS(Instruction):
    """Combine every element with a scalar by bitwise XOR."""

    if TYPE_CHECKING:

        def __call__(
            self, dst: Tile, src0: Tile, scalar: float, tmp: Tile, *events: Wait
        ) -> RecordEvent: ...


TXORS = _TXORS(INSTRUCTIONS["TXORS"])


class _TSHLS(Instruction):
    """Shift every element left by a scalar count; zeros come in from the right."""

    if TYPE_CHECKING:

        def __call__(self, dst: Tile, src: Tile, scalar: float, *events: Wait) -> RecordEvent: ...


TSHLS = _TSHLS(INSTRUCTIONS["TSHLS"])


class _TSHRS(Instruction):
    """Shift every element right by a scalar count; signed elements keep their sign."""

    if TYPE_CHECKING:

        def __call__(self, dst: Tile, src: Tile, scalar: float, *events: Wait) -> RecordEvent: ...


TSHRS = _TSHRS(INSTRUCTIONS["TSHRS"])


class _TCMPS(Instruction):
    """Compare every element with a scalar and pack the answers, one bit each, into a mask."""

    if TYPE_CHECKING:

        def __call__(
            self, dst: Tile, src0: Tile, scalar: float | Tile, *events: Wait
        ) -> RecordEvent: ...


TCMPS = _TCMPS(INSTRUCTIONS["TCMPS"])


class _TSELS(Instruction):
    """Take elements of a tile where a packed mask has ones, and a scalar where it has zeros."""

    if TYPE_CHECKING:

        def __call__(
            self, dst: Tile, mask: Tile, src: Tile, tmp: Tile, scalar: float, *events: Wait
        ) -> RecordEvent: ...


TSELS = _TSELS(INSTRUCTIONS["TSELS"])


class _TTRANS(Instruction):
    """Transpose a Vec tile, or convert a Vec convolution tile between layouts."""

    if TYPE_CHECKING:

        def __call__(
            self, dst: Tile | ConvTile, src: Tile | ConvTile, tmp: Tile, *events: Wait
        ) -> RecordEvent: ...


TTRANS = _TTRANS(INSTRUCTIONS["TTRANS"])


__all__ = [
    "TROWARGMAX",
    "TROWARGMIN",
    "TCOLARGMAX",
    "TCOLARGMIN",
    "TASSIGN",
    "TRESHAPE",
    "TSUBVIEW",
    "TGET_SCALE_ADDR",
    "SET_QUANT_SCALAR",
    "SET_QUANT_VECTOR",
    "TNOT",
    "TAND",
    "TOR",
    "TXOR",
    "TSHL",
    "TSHR",
    "TLOAD",
    "TSTORE",
    "TSTORE_FP",
    "TADD",
    "TSUB",
    "TMUL",
    "TDIV",
    "TREM",
    "TFMOD",
    "TMAX",
    "TMIN",
    "TABS",
    "TNEG",
    "TRELU",
    "TPRELU",
    "TCMP",
    "TSEL",
    "TCVT",
    "TROWEXPAND",
    "TROWEXPANDADD",
    "TROWEXPANDSUB",
    "TROWEXPANDMUL",
    "TROWEXPANDDIV",
    "TROWEXPANDMAX",
    "TROWEXPANDMIN",
    "TROWEXPANDEXPDIF",
    "TCOLEXPAND",
    "TCOLEXPANDADD",
    "TCOLEXPANDSUB",
    "TCOLEXPANDMUL",
    "TCOLEXPANDDIV",
    "TCOLEXPANDMAX",
    "TCOLEXPANDMIN",
    "TCOLEXPANDEXPDIF",
    "TEXPANDS",
    "TEXTRACT",
    "TEXTRACT_FP",
    "TFILLPAD",
    "TFILLPAD_INPLACE",
    "TFILLPAD_EXPAND",
    "TADDC",
    "TSUBC",
    "TMULADDDST",
    "TFUSEDMULADD",
    "TFUSEDMULADDRELU",
    "TSUBRELU",
    "TADDRELUCONV",
    "TSUBRELUCONV",
    "TADDDEQRELU",
    "TGATHER",
    "TGATHERB",
    "MGATHER",
    "MSCATTER",
    "SETFMATRIX",
    "SET_IMG2COL_RPT",
    "SET_IMG2COL_PADDING",
    "TIMG2COL",
    "TINSERT",
    "TINSERT_FP",
    "TMATMUL",
    "TMATMUL_ACC",
    "TMATMUL_BIAS",
    "TGEMV",
    "TGEMV_ACC",
    "TGEMV_BIAS",
    "TSETTF32MODE",
    "TSETHF32MODE",
    "TMATMUL_MX",
    "TGEMV_MX",
    "TMATMUL_MX_HIF4",
    "TCI",
    "TTRI",
    "TRANDOM",
    "THISTOGRAM",
    "GETVAL",
    "SETVAL",
    "TMOV",
    "TMOV_FP",
    "TQUANT_MX",
    "TQUANT_DN",
    "TQUANT_HIF4",
    "TPARTADD",
    "TPARTMUL",
    "TPARTMAX",
    "TPARTMIN",
    "TPARTARGMAX",
    "TPARTARGMIN",
    "TALLOC",
    "TPUSH",
    "TPOP",
    "TFREE",
    "TPREFETCH",
    "TPREFETCH_ASYNC",
    "TPRINT",
    "TQUANT",
    "TDEQUANT",
    "TCONCAT",
    "TINTERLEAVE",
    "TDEINTERLEAVE",
    "TPAIRREDUCESUM",
    "TPACK",
    "TROWSUM",
    "TROWPROD",
    "TROWMAX",
    "TROWMIN",
    "TCOLSUM",
    "TCOLPROD",
    "TCOLMAX",
    "TCOLMIN",
    "TSCATTER",
    "TSORT32",
    "TMRGSORT",
    "set_flag",
    "wait_flag",
    "pipe_barrier",
    "TSYNC",
    "get_buf",
    "rls_buf",
    "set_ffts_base_addr",
    "ffts_cross_core_sync",
    "wait_flag_dev",
    "set_intra_block",
    "wait_intra_block",
    "SYNCALL",
    "dcci",
    "dsb",
    "load_scalar",
    "store_scalar",
    "TEXP",
    "TLOG",
    "TSQRT",
    "TRSQRT",
    "TRECIP",
    "TPOW",
    "TADDS",
    "TSUBS",
    "TMULS",
    "TMAXS",
    "TMINS",
    "TDIVS",
    "TREMS",
    "TFMODS",
    "TPOWS",
    "TLRELU",
    "TAXPY",
    "TADDSC",
    "TSUBSC",
    "TANDS",
    "TORS",
    "TXORS",
    "TSHLS",
    "TSHRS",
    "TCMPS",
    "TSELS",
    "TTRANS",
]
