# The micro-operations as editors see them: names, operands, documentation.
# Generated from the table by tools/gen.py; do not edit.
# pyright: reportIncompatibleMethodOverride=false

from typing import Any

from ptokit.frontend.micro_operations import MicroOperation

class _vabs(MicroOperation):
    def __call__(self, a: Any, mask: Any) -> Any: ...

vabs: _vabs
"""Take the absolute value; that of the least integer wraps."""

class _vneg(MicroOperation):
    def __call__(self, a: Any, mask: Any) -> Any: ...

vneg: _vneg
"""Change the sign; integers wrap."""

class _vexp(MicroOperation):
    def __call__(self, a: Any, mask: Any) -> Any: ...

vexp: _vexp
"""Raise e to the power of each lane."""

class _vln(MicroOperation):
    def __call__(self, a: Any, mask: Any) -> Any: ...

vln: _vln
"""Take the natural logarithm: -inf of 0."""

class _vsqrt(MicroOperation):
    def __call__(self, a: Any, mask: Any) -> Any: ...

vsqrt: _vsqrt
"""Take the square root."""

class _vrec(MicroOperation):
    def __call__(self, a: Any, mask: Any) -> Any: ...

vrec: _vrec
"""Take the reciprocal."""

class _vrelu(MicroOperation):
    def __call__(self, a: Any, mask: Any) -> Any: ...

vrelu: _vrelu
"""Replace what is not positive by 0."""

class _vnot(MicroOperation):
    def __call__(self, a: Any, mask: Any) -> Any: ...

vnot: _vnot
"""Complement every bit."""

class _vadd(MicroOperation):
    def __call__(self, a: Any, b: Any, mask: Any) -> Any: ...

vadd: _vadd
"""Add two registers; integers wrap."""

class _vsub(MicroOperation):
    def __call__(self, a: Any, b: Any, mask: Any) -> Any: ...

vsub: _vsub
"""Subtract a register from another; integers wrap."""

class _vmul(MicroOperation):
    def __call__(self, a: Any, b: Any, mask: Any) -> Any: ...

vmul: _vmul
"""Multiply two registers; integers wrap."""

class _vdiv(MicroOperation):
    def __call__(self, a: Any, b: Any, mask: Any) -> Any: ...

vdiv: _vdiv
"""Divide; integers toward zero."""

class _vmax(MicroOperation):
    def __call__(self, a: Any, b: Any, mask: Any) -> Any: ...

vmax: _vmax
"""Take the larger lane; NaN if either is."""

class _vmin(MicroOperation):
    def __call__(self, a: Any, b: Any, mask: Any) -> Any: ...

vmin: _vmin
"""Take the smaller lane; NaN if either is."""

class _vand(MicroOperation):
    def __call__(self, a: Any, b: Any, mask: Any) -> Any: ...

vand: _vand
"""Combine the bits with and; of floats too."""

class _vor(MicroOperation):
    def __call__(self, a: Any, b: Any, mask: Any) -> Any: ...

vor: _vor
"""Combine the bits with or; of floats too."""

class _vxor(MicroOperation):
    def __call__(self, a: Any, b: Any, mask: Any) -> Any: ...

vxor: _vxor
"""Combine the bits with exclusive or; of floats too."""

class _vshl(MicroOperation):
    def __call__(self, a: Any, b: Any, mask: Any) -> Any: ...

vshl: _vshl
"""Shift lanes to the left by the counts beside them."""

class _vshr(MicroOperation):
    def __call__(self, a: Any, b: Any, mask: Any) -> Any: ...

vshr: _vshr
"""Shift lanes to the right, signed ones with their sign, by the counts beside them."""

class _vshls(MicroOperation):
    def __call__(self, a: Any, b: Any, mask: Any) -> Any: ...

vshls: _vshls
"""Shift lanes to the left by one count."""

class _vshrs(MicroOperation):
    def __call__(self, a: Any, b: Any, mask: Any) -> Any: ...

vshrs: _vshrs
"""Shift lanes to the right, signed ones with their sign, by one count."""

class _vadds(MicroOperation):
    def __call__(self, a: Any, b: Any, mask: Any) -> Any: ...

vadds: _vadds
"""Add a number to every lane; integers wrap."""

class _vmuls(MicroOperation):
    def __call__(self, a: Any, b: Any, mask: Any) -> Any: ...

vmuls: _vmuls
"""Multiply every lane by a number; integers wrap."""

class _vmaxs(MicroOperation):
    def __call__(self, a: Any, b: Any, mask: Any) -> Any: ...

vmaxs: _vmaxs
"""Take the larger of each lane and a number."""

class _vmins(MicroOperation):
    def __call__(self, a: Any, b: Any, mask: Any) -> Any: ...

vmins: _vmins
"""Take the smaller of each lane and a number."""

class _vlrelu(MicroOperation):
    def __call__(self, a: Any, b: Any, mask: Any) -> Any: ...

vlrelu: _vlrelu
"""Multiply negative lanes by a number."""

class _vprelu(MicroOperation):
    def __call__(self, a: Any, b: Any, mask: Any) -> Any: ...

vprelu: _vprelu
"""Multiply negative lanes by the slope beside them."""

class _vmula(MicroOperation):
    def __call__(self, acc: Any, a: Any, b: Any, mask: Any) -> Any: ...

vmula: _vmula
"""Add the product of two registers to a third; floats are rounded once."""

class _vmadd(MicroOperation):
    def __call__(self, acc: Any, a: Any, b: Any, mask: Any) -> Any: ...

vmadd: _vmadd
"""Multiply the first register by the second and add the third, rounded once."""

class _vaxpy(MicroOperation):
    def __call__(self, a: Any, b: Any, s: Any, mask: Any) -> Any: ...

vaxpy: _vaxpy
"""Multiply a register by a number and add another, rounded once."""

class _vmull(MicroOperation):
    def __call__(self, a: Any, b: Any, mask: Any) -> Any: ...

vmull: _vmull
"""Multiply two registers of 32-bit lanes; the results are the halves of the product."""

class _vaddc(MicroOperation):
    def __call__(self, a: Any, b: Any, mask: Any) -> Any: ...

vaddc: _vaddc
"""Add two registers without sign; the mask has the carries out."""

class _vaddcs(MicroOperation):
    def __call__(self, a: Any, b: Any, cin: Any, mask: Any) -> Any: ...

vaddcs: _vaddcs
"""Add two registers and a mask of carries; the other mask has the carries out."""

class _vsubc(MicroOperation):
    def __call__(self, a: Any, b: Any, mask: Any) -> Any: ...

vsubc: _vsubc
"""Subtract without sign; the mask is set where nothing had to be borrowed."""

class _vsubcs(MicroOperation):
    def __call__(self, a: Any, b: Any, cin: Any, mask: Any) -> Any: ...

vsubcs: _vsubcs
"""Subtract, and 1 where the mask is not set; the other is set where nothing was borrowed."""

class _vcmp(MicroOperation):
    def __call__(self, a: Any, b: Any, mask: Any, *words: str, op: str = ...) -> Any: ...

vcmp: _vcmp
"""Compare two registers: a bit is set where the mask is and the comparison holds.

NaN compares false with everything, and true with `ne`."""

class _vcmps(MicroOperation):
    def __call__(self, a: Any, s: Any, mask: Any, *words: str, op: str = ...) -> Any: ...

vcmps: _vcmps
"""Compare a register with a number: a bit is set where the mask is and it holds."""

class _vsel(MicroOperation):
    def __call__(self, a: Any, b: Any, mask: Any) -> Any: ...

vsel: _vsel
"""Take the lanes of one register where the mask is set, those of another elsewhere."""

class _vselr(MicroOperation):
    def __call__(self, a: Any, index: Any) -> Any: ...

vselr: _vselr
"""Permute lanes: each is the lane of the first register that the index beside it names."""

class _vbr(MicroOperation):
    def __call__(self, s: Any) -> Any: ...

vbr: _vbr
"""Make all lanes a number."""

class _vdup(MicroOperation):
    def __call__(self, a: Any, mask: Any, *words: str, position: str = ...) -> Any: ...

vdup: _vdup
"""Make all active lanes a number, or one lane of a register."""

class _vci(MicroOperation):
    def __call__(self, s: Any, *words: str, order: str = ...) -> Any: ...

vci: _vci
"""Count from a number on, upwards or downwards."""

class _get_ctrl(MicroOperation):
    def __call__(self) -> Any: ...

get_ctrl: _get_ctrl
"""Return the control register of the core. It is 0 at the start."""

class _set_ctrl(MicroOperation):
    def __call__(self, value: Any) -> Any: ...

set_ctrl: _set_ctrl
"""Set the control register of the core."""

class _sbitset0(MicroOperation):
    def __call__(self, value: Any, bit: Any) -> Any: ...

sbitset0: _sbitset0
"""Return a number with one of its bits cleared."""

class _sbitset1(MicroOperation):
    def __call__(self, value: Any, bit: Any) -> Any: ...

sbitset1: _sbitset1
"""Return a number with one of its bits set."""

class _set_atomic_s8(MicroOperation):
    def __call__(self) -> Any: ...

set_atomic_s8: _set_atomic_s8
"""Let atomic stores to global memory take elements of i8."""

class _set_atomic_s16(MicroOperation):
    def __call__(self) -> Any: ...

set_atomic_s16: _set_atomic_s16
"""Let atomic stores to global memory take elements of i16."""

class _set_atomic_s32(MicroOperation):
    def __call__(self) -> Any: ...

set_atomic_s32: _set_atomic_s32
"""Let atomic stores to global memory take elements of i32."""

class _set_atomic_f16(MicroOperation):
    def __call__(self) -> Any: ...

set_atomic_f16: _set_atomic_f16
"""Let atomic stores to global memory take elements of f16."""

class _set_atomic_bf16(MicroOperation):
    def __call__(self) -> Any: ...

set_atomic_bf16: _set_atomic_bf16
"""Let atomic stores to global memory take elements of bf16."""

class _set_atomic_f32(MicroOperation):
    def __call__(self) -> Any: ...

set_atomic_f32: _set_atomic_f32
"""Let atomic stores to global memory take elements of f32."""

class _set_atomic_add(MicroOperation):
    def __call__(self) -> Any: ...

set_atomic_add: _set_atomic_add
"""Let stores to global memory add to what is there, until this is set again."""

class _set_atomic_max(MicroOperation):
    def __call__(self) -> Any: ...

set_atomic_max: _set_atomic_max
"""Let stores to global memory keep the greater of both values, until this is set again."""

class _set_atomic_min(MicroOperation):
    def __call__(self) -> Any: ...

set_atomic_min: _set_atomic_min
"""Let stores to global memory keep the smaller of both values, until this is set again."""

class _set_atomic_none(MicroOperation):
    def __call__(self) -> Any: ...

set_atomic_none: _set_atomic_none
"""Let stores to global memory overwrite it, as at the start, until this is set again."""

class _vcvt(MicroOperation):
    def __call__(
        self, a: Any, mask: Any, *words: str, rnd: str = ..., sat: str = ..., part: str = ...
    ) -> Any: ...

vcvt: _vcvt
"""Convert the element type; the mask counts the lanes of the source.

Lanes of the same width stay in place. A narrower lane takes the chosen part of the place of a
wider one, the other parts are 0; a wider lane is made of the chosen part of its place."""

class _vtrc(MicroOperation):
    def __call__(self, a: Any, mask: Any, *words: str, rnd: str = ...) -> Any: ...

vtrc: _vtrc
"""Round to floats that are whole numbers."""

class _vexpdif(MicroOperation):
    def __call__(self, a: Any, b: Any, mask: Any, *words: str, part: str = ...) -> Any: ...

vexpdif: _vexpdif
"""Raise e to the difference of two registers, in f32; of f16 the even or the odd lanes."""

class _vmulscvt(MicroOperation):
    def __call__(
        self, a: Any, s: Any, mask: Any, *words: str, rnd: str = ..., part: str = ...
    ) -> Any: ...

vmulscvt: _vmulscvt
"""Multiply by a number and narrow to f16, into the even or the odd lanes; others are 0."""

class _ld_dev(MicroOperation):
    def __call__(self, ptr: Any, offset: Any) -> Any: ...

ld_dev: _ld_dev
"""Read an element of global memory as it is there, whatever the data cache holds."""

class _st_dev(MicroOperation):
    def __call__(self, value: Any, ptr: Any, offset: Any) -> Any: ...

st_dev: _st_dev
"""Write an element of global memory at once: other cores need no pto.dcci to see it."""

class _mte_l0c_gm(MicroOperation):
    def __call__(
        self,
        src: Any,
        dst: Any,
        m: Any,
        n: Any,
        src_stride: Any,
        dst_stride: Any,
        sid: Any,
        l2: Any,
        quant: Any = ...,
        relu: Any = ...,
        clip: Any = ...,
        walk: Any = ...,
        loop3: Any = ...,
        *words: str,
        unit_flag: str = ...,
        quant_mode: str = ...,
        relu_mode: str = ...,
        layout: str = ...,
        sat: str = ...,
        nan: str = ...,
        atomic_type: str = ...,
        atomic: str = ...,
    ) -> Any: ...

mte_l0c_gm: _mte_l0c_gm
"""Bring an accumulator to global memory.

Element (i, j) lies in column j // 16 of boxes, which have `src_stride` rows. With `pre_quant` it
is multiplied by a scale, of which the upper 19 bits count: a number, or one for each column, in
words of 8 bytes. `pre_relu` follows: numbers below 0 become 0, or are multiplied by a number, or by
one for each column, from the second table of the fix pipe; then numbers above `clip` become `clip`.
At last it is converted. It goes to row i, column j of a matrix with `dst_stride` elements from one
row to the next; `nz2dn` swaps both.

`atomic` adds to what is there, or keeps the greater or smaller value."""

class _mte_l0c_l1(MicroOperation):
    def __call__(
        self,
        src: Any,
        dst: Any,
        m: Any,
        n: Any,
        src_stride: Any,
        dst_stride: Any,
        quant: Any = ...,
        relu: Any = ...,
        clip: Any = ...,
        walk: Any = ...,
        loop3: Any = ...,
        *words: str,
        unit_flag: str = ...,
        quant_mode: str = ...,
        relu_mode: str = ...,
        layout: str = ...,
        sat: str = ...,
        nan: str = ...,
    ) -> Any: ...

mte_l0c_l1: _mte_l0c_l1
"""Bring an accumulator to L1.

Element (i, j) lies in column j // 16 of boxes, which have `src_stride` rows. With `pre_quant` it
is multiplied by a scale, of which the upper 19 bits count: a number, or one for each column, in
words of 8 bytes. `pre_relu` follows: numbers below 0 become 0, or are multiplied by a number, or by
one for each column, from the second table of the fix pipe; then numbers above `clip` become `clip`.
At last it is converted. It goes to row i, column j of a matrix with `dst_stride` elements from one
row to the next; `nz2dn` swaps both."""

class _mte_l0c_ub(MicroOperation):
    def __call__(
        self,
        src: Any,
        dst: Any,
        m: Any,
        n: Any,
        src_stride: Any,
        dst_stride: Any,
        core: Any = ...,
        quant: Any = ...,
        relu: Any = ...,
        clip: Any = ...,
        walk: Any = ...,
        loop3: Any = ...,
        *words: str,
        unit_flag: str = ...,
        quant_mode: str = ...,
        relu_mode: str = ...,
        layout: str = ...,
        sat: str = ...,
        nan: str = ...,
        split: str = ...,
    ) -> Any: ...

mte_l0c_ub: _mte_l0c_ub
"""Bring an accumulator to the unified buffer of a vector core, or a half to each.

Element (i, j) lies in column j // 16 of boxes, which have `src_stride` rows. With `pre_quant` it
is multiplied by a scale, of which the upper 19 bits count: a number, or one for each column, in
words of 8 bytes. `pre_relu` follows: numbers below 0 become 0, or are multiplied by a number, or by
one for each column, from the second table of the fix pipe; then numbers above `clip` become `clip`.
At last it is converted. It goes to row i, column j of a matrix with `dst_stride` elements from one
row to the next; `nz2dn` swaps both."""

class _mad(MicroOperation):
    def __call__(
        self,
        a: Any,
        b: Any,
        dst: Any,
        m: Any,
        n: Any,
        k: Any,
        *words: str,
        unit_flag: str = ...,
        gemv: str = ...,
        sat: str = ...,
        tf32: str = ...,
        direction: str = ...,
    ) -> Any: ...

mad: _mad
"""Multiply the left operand, m x k, by the right one, k x n, into the accumulator."""

class _mad_mx(MicroOperation):
    def __call__(
        self,
        a: Any,
        b: Any,
        dst: Any,
        m: Any,
        n: Any,
        k: Any,
        *words: str,
        unit_flag: str = ...,
        gemv: str = ...,
        sat: str = ...,
        tf32: str = ...,
        direction: str = ...,
    ) -> Any: ...

mad_mx: _mad_mx
"""Multiply the left operand, m x k, by the right one, k x n, into the accumulator.

Each 32 elements along k have a scale, a power of two, that pto.mte_l1_l0a_mx and pto.mte_l1_l0b_mx have brought."""

class _mad_acc(MicroOperation):
    def __call__(
        self,
        a: Any,
        b: Any,
        dst: Any,
        m: Any,
        n: Any,
        k: Any,
        *words: str,
        unit_flag: str = ...,
        gemv: str = ...,
        sat: str = ...,
        tf32: str = ...,
        direction: str = ...,
    ) -> Any: ...

mad_acc: _mad_acc
"""Multiply, and add to what the accumulator holds."""

class _mad_mx_acc(MicroOperation):
    def __call__(
        self,
        a: Any,
        b: Any,
        dst: Any,
        m: Any,
        n: Any,
        k: Any,
        *words: str,
        unit_flag: str = ...,
        gemv: str = ...,
        sat: str = ...,
        tf32: str = ...,
        direction: str = ...,
    ) -> Any: ...

mad_mx_acc: _mad_mx_acc
"""Multiply, and add to what the accumulator holds.

Each 32 elements along k have a scale, a power of two, that pto.mte_l1_l0a_mx and pto.mte_l1_l0b_mx have brought."""

class _mad_bias(MicroOperation):
    def __call__(
        self,
        a: Any,
        b: Any,
        dst: Any,
        bias: Any,
        m: Any,
        n: Any,
        k: Any,
        *words: str,
        unit_flag: str = ...,
        gemv: str = ...,
        sat: str = ...,
        tf32: str = ...,
        direction: str = ...,
    ) -> Any: ...

mad_bias: _mad_bias
"""Multiply, and add a row of the bias table to every row."""

class _mad_mx_bias(MicroOperation):
    def __call__(
        self,
        a: Any,
        b: Any,
        dst: Any,
        bias: Any,
        m: Any,
        n: Any,
        k: Any,
        *words: str,
        unit_flag: str = ...,
        gemv: str = ...,
        sat: str = ...,
        tf32: str = ...,
        direction: str = ...,
    ) -> Any: ...

mad_mx_bias: _mad_mx_bias
"""Multiply, and add a row of the bias table to every row.

Each 32 elements along k have a scale, a power of two, that pto.mte_l1_l0a_mx and pto.mte_l1_l0b_mx have brought."""

class _vlds(MicroOperation):
    def __call__(self, base: Any, offset: Any, *words: str, dist: str = ...) -> Any: ...

vlds: _vlds
"""Load a register: as it lies (NORM), or spread, thinned out or repeated.

`BRC` repeats one slot, `BRC_BLK` a block of 32 bytes; `US` takes every slot twice, `DS` every
second one; `UNPK` widens slots with zeros, `UNPK4` bytes to words; `E2B` fills a block with
each slot. Loads have no mask: all bytes of the pattern are read."""

class _vlds_post(MicroOperation):
    def __call__(self, base: Any, offset: Any, *words: str, dist: str = ...) -> Any: ...

vlds_post: _vlds_post
"""Load a register: as it lies (NORM), or spread, thinned out or repeated.

`BRC` repeats one slot, `BRC_BLK` a block of 32 bytes; `US` takes every slot twice, `DS` every
second one; `UNPK` widens slots with zeros, `UNPK4` bytes to words; `E2B` fills a block with
each slot. Loads have no mask: all bytes of the pattern are read."""

class _vldsx2(MicroOperation):
    def __call__(self, base: Any, offset: Any, *words: str, dist: str = ...) -> Any: ...

vldsx2: _vldsx2
"""Load 512 bytes; even slots make one register, odd slots another."""

class _vldsx2_post(MicroOperation):
    def __call__(self, base: Any, offset: Any, *words: str, dist: str = ...) -> Any: ...

vldsx2_post: _vldsx2_post
"""Load 512 bytes; even slots make one register, odd slots another."""

class _vsldb(MicroOperation):
    def __call__(self, base: Any, block_stride: Any, repeat_stride: Any, mask: Any) -> Any: ...

vsldb: _vsldb
"""Load eight blocks of 32 bytes that lie a stride apart; strides count blocks.

A block without an active lane is not read, and is 0."""

class _vsldb_post(MicroOperation):
    def __call__(self, base: Any, block_stride: Any, repeat_stride: Any, mask: Any) -> Any: ...

vsldb_post: _vsldb_post
"""Load eight blocks of 32 bytes that lie a stride apart; strides count blocks.

A block without an active lane is not read, and is 0."""

class _vgather2(MicroOperation):
    def __call__(self, base: Any, index: Any, mask: Any) -> Any: ...

vgather2: _vgather2
"""Gather elements by index; indices have no sign. An inactive lane makes no access, and is 0.

Elements of 8 bits are widened with zeros to the lanes of their 16-bit indices."""

class _vgather2_bc(MicroOperation):
    def __call__(self, base: Any, index: Any, mask: Any) -> Any: ...

vgather2_bc: _vgather2_bc
"""Gather elements by 32-bit indices: an older form of vgather2."""

class _vgatherb(MicroOperation):
    def __call__(self, base: Any, index: Any, mask: Any) -> Any: ...

vgatherb: _vgatherb
"""Gather eight blocks of 32 bytes at byte offsets, the first eight words of the indices.

The first eight words of the mask say which of them are read; the others are 0."""

class _vsts(MicroOperation):
    def __call__(
        self, src: Any, base: Any, offset: Any, mask: Any, *words: str, dist: str = ...
    ) -> Any: ...

vsts: _vsts
"""Store a register: as it lies (NORM), its first slot (1PT), or the low part of each (PK).

`PK` keeps the lower half of every slot, `PK4` its lowest byte. Slots whose bit is not set keep
what memory holds; the mask counts the slots of the pattern. 1PT does not look at it."""

class _vsts_post(MicroOperation):
    def __call__(
        self, src: Any, base: Any, offset: Any, mask: Any, *words: str, dist: str = ...
    ) -> Any: ...

vsts_post: _vsts_post
"""Store a register: as it lies (NORM), its first slot (1PT), or the low part of each (PK).

`PK` keeps the lower half of every slot, `PK4` its lowest byte. Slots whose bit is not set keep
what memory holds; the mask counts the slots of the pattern. 1PT does not look at it."""

class _vstsx2(MicroOperation):
    def __call__(
        self, low: Any, high: Any, base: Any, offset: Any, mask: Any, *words: str, dist: str = ...
    ) -> Any: ...

vstsx2: _vstsx2
"""Store the slots of two registers in turn. The mask is there, and has no effect."""

class _vsstb(MicroOperation):
    def __call__(
        self, src: Any, base: Any, block_stride: Any, repeat_stride: Any, mask: Any
    ) -> Any: ...

vsstb: _vsstb
"""Store eight blocks of 32 bytes a stride apart; strides count blocks."""

class _vsstb_post(MicroOperation):
    def __call__(
        self, src: Any, base: Any, block_stride: Any, repeat_stride: Any, mask: Any
    ) -> Any: ...

vsstb_post: _vsstb_post
"""Store eight blocks of 32 bytes a stride apart; strides count blocks."""

class _vscatter(MicroOperation):
    def __call__(self, src: Any, base: Any, index: Any, mask: Any) -> Any: ...

vscatter: _vscatter
"""Scatter lanes by index; indices have no sign. Of 8-bit lanes every second one is stored."""

class _plds(MicroOperation):
    def __call__(self, base: Any, offset: Any, *words: str, dist: str = ...) -> Any: ...

plds: _plds
"""Load a mask, bit k from bit k % 8 of byte k // 8; the offset counts bytes."""

class _plds_post(MicroOperation):
    def __call__(self, base: Any, offset: Any, *words: str, dist: str = ...) -> Any: ...

plds_post: _plds_post
"""Load a mask, bit k from bit k % 8 of byte k // 8; the offset counts bytes."""

class _psts(MicroOperation):
    def __call__(self, mask: Any, base: Any, offset: Any, *words: str, dist: str = ...) -> Any: ...

psts: _psts
"""Store a mask, bit k to bit k % 8 of byte k // 8; the offset counts bytes."""

class _psts_post(MicroOperation):
    def __call__(self, mask: Any, base: Any, offset: Any, *words: str, dist: str = ...) -> Any: ...

psts_post: _psts_post
"""Store a mask, bit k to bit k % 8 of byte k // 8; the offset counts bytes."""

class _pldi(MicroOperation):
    def __call__(self, base: Any, offset: Any, *words: str, dist: str = ...) -> Any: ...

pldi: _pldi
"""Load a mask, bit k from bit k % 8 of byte k // 8; the offset counts units of what the pattern takes."""

class _pldi_post(MicroOperation):
    def __call__(self, base: Any, offset: Any, *words: str, dist: str = ...) -> Any: ...

pldi_post: _pldi_post
"""Load a mask, bit k from bit k % 8 of byte k // 8; the offset counts units of what the pattern takes."""

class _psti(MicroOperation):
    def __call__(self, mask: Any, base: Any, offset: Any, *words: str, dist: str = ...) -> Any: ...

psti: _psti
"""Store a mask, bit k to bit k % 8 of byte k // 8; the offset counts units of what the pattern takes."""

class _psti_post(MicroOperation):
    def __call__(self, mask: Any, base: Any, offset: Any, *words: str, dist: str = ...) -> Any: ...

psti_post: _psti_post
"""Store a mask, bit k to bit k % 8 of byte k // 8; the offset counts units of what the pattern takes."""

class _vintlv(MicroOperation):
    def __call__(self, a: Any, b: Any) -> Any: ...

vintlv: _vintlv
"""Take the lanes of two registers in turn: the first half of them, and the second."""

class _vdintlv(MicroOperation):
    def __call__(self, a: Any, b: Any) -> Any: ...

vdintlv: _vdintlv
"""Divide the lanes of two registers, one after the other, into even and odd ones."""

class _vsqz(MicroOperation):
    def __call__(self, a: Any, mask: Any) -> Any: ...

vsqz: _vsqz
"""Move the active lanes to the front, in their order; zeros follow.

The hidden register SQZN has the bytes that they take, for vstur."""

class _vusqz(MicroOperation):
    def __call__(self, a: Any, mask: Any) -> Any: ...

vusqz: _vusqz
"""Count for each lane the active ones before it. The register itself is not looked at."""

class _vpack(MicroOperation):
    def __call__(self, a: Any, *words: str, part: str = ...) -> Any: ...

vpack: _vpack
"""Put the low halves of all lanes into one half of a register; the rest is 0."""

class _vsunpack(MicroOperation):
    def __call__(self, a: Any, part: Any) -> Any: ...

vsunpack: _vsunpack
"""Widen the lanes of one half with their sign."""

class _vzunpack(MicroOperation):
    def __call__(self, a: Any, part: Any) -> Any: ...

vzunpack: _vzunpack
"""Widen the lanes of one half with zeros."""

class _vbitcast(MicroOperation):
    def __call__(self, a: Any) -> Any: ...

vbitcast: _vbitcast
"""Look at the same bytes as lanes of another type."""

class _pset_b8(MicroOperation):
    def __call__(self, *words: str, pattern: str = ...) -> Any: ...

pset_b8: _pset_b8
"""Make a mask of a named pattern of lanes."""

class _pge_b8(MicroOperation):
    def __call__(self, *words: str, pattern: str = ...) -> Any: ...

pge_b8: _pge_b8
"""Make a mask of a named pattern of lanes, as pset does."""

class _plt_b8(MicroOperation):
    def __call__(self, n: Any) -> Any: ...

plt_b8: _plt_b8
"""Make a mask of the first n lanes; the rest of n is for the next."""

class _pltm_b8(MicroOperation):
    def __call__(self, loop: Any, n: Any) -> Any: ...

pltm_b8: _pltm_b8
"""Make the mask of a round of a loop over n lanes."""

class _pintlv_b8(MicroOperation):
    def __call__(self, a: Any, b: Any) -> Any: ...

pintlv_b8: _pintlv_b8
"""Take the lanes of two masks in turn."""

class _pdintlv_b8(MicroOperation):
    def __call__(self, a: Any, b: Any) -> Any: ...

pdintlv_b8: _pdintlv_b8
"""Divide the lanes of two masks into even and odd ones."""

class _pset_b16(MicroOperation):
    def __call__(self, *words: str, pattern: str = ...) -> Any: ...

pset_b16: _pset_b16
"""Make a mask of a named pattern of lanes."""

class _pge_b16(MicroOperation):
    def __call__(self, *words: str, pattern: str = ...) -> Any: ...

pge_b16: _pge_b16
"""Make a mask of a named pattern of lanes, as pset does."""

class _plt_b16(MicroOperation):
    def __call__(self, n: Any) -> Any: ...

plt_b16: _plt_b16
"""Make a mask of the first n lanes; the rest of n is for the next."""

class _pltm_b16(MicroOperation):
    def __call__(self, loop: Any, n: Any) -> Any: ...

pltm_b16: _pltm_b16
"""Make the mask of a round of a loop over n lanes."""

class _pintlv_b16(MicroOperation):
    def __call__(self, a: Any, b: Any) -> Any: ...

pintlv_b16: _pintlv_b16
"""Take the lanes of two masks in turn."""

class _pdintlv_b16(MicroOperation):
    def __call__(self, a: Any, b: Any) -> Any: ...

pdintlv_b16: _pdintlv_b16
"""Divide the lanes of two masks into even and odd ones."""

class _pset_b32(MicroOperation):
    def __call__(self, *words: str, pattern: str = ...) -> Any: ...

pset_b32: _pset_b32
"""Make a mask of a named pattern of lanes."""

class _pge_b32(MicroOperation):
    def __call__(self, *words: str, pattern: str = ...) -> Any: ...

pge_b32: _pge_b32
"""Make a mask of a named pattern of lanes, as pset does."""

class _plt_b32(MicroOperation):
    def __call__(self, n: Any) -> Any: ...

plt_b32: _plt_b32
"""Make a mask of the first n lanes; the rest of n is for the next."""

class _pltm_b32(MicroOperation):
    def __call__(self, loop: Any, n: Any) -> Any: ...

pltm_b32: _pltm_b32
"""Make the mask of a round of a loop over n lanes."""

class _pintlv_b32(MicroOperation):
    def __call__(self, a: Any, b: Any) -> Any: ...

pintlv_b32: _pintlv_b32
"""Take the lanes of two masks in turn."""

class _pdintlv_b32(MicroOperation):
    def __call__(self, a: Any, b: Any) -> Any: ...

pdintlv_b32: _pdintlv_b32
"""Divide the lanes of two masks into even and odd ones."""

class _pand(MicroOperation):
    def __call__(self, a: Any, b: Any, mask: Any) -> Any: ...

pand: _pand
"""Combine two masks with and, where a third is set."""

class _por(MicroOperation):
    def __call__(self, a: Any, b: Any, mask: Any) -> Any: ...

por: _por
"""Combine two masks with or, where a third is set."""

class _pxor(MicroOperation):
    def __call__(self, a: Any, b: Any, mask: Any) -> Any: ...

pxor: _pxor
"""Combine two masks with exclusive or, where a third is set."""

class _pnot(MicroOperation):
    def __call__(self, a: Any, mask: Any) -> Any: ...

pnot: _pnot
"""Complement a mask, where another is set."""

class _psel(MicroOperation):
    def __call__(self, a: Any, b: Any, sel: Any) -> Any: ...

psel: _psel
"""Take the bits of one mask where a third is set, those of another elsewhere."""

class _ppack(MicroOperation):
    def __call__(self, a: Any, *words: str, part: str = ...) -> Any: ...

ppack: _ppack
"""Put every second bit of a mask into one half of another; the rest is 0."""

class _punpack(MicroOperation):
    def __call__(self, a: Any, *words: str, part: str = ...) -> Any: ...

punpack: _punpack
"""Spread one half of a mask to every second bit of another; the bits between are 0."""

class _pbitcast(MicroOperation):
    def __call__(self, a: Any) -> Any: ...

pbitcast: _pbitcast
"""Look at the same bits as a mask for lanes of another width."""

class _set_loop_size_outtoub(MicroOperation):
    def __call__(self, first: Any, second: Any) -> Any: ...

set_loop_size_outtoub: _set_loop_size_outtoub
"""Set how often the two loops around raw transfers run: the inner, the outer."""

class _set_loop1_stride_outtoub(MicroOperation):
    def __call__(self, first: Any, second: Any) -> Any: ...

set_loop1_stride_outtoub: _set_loop1_stride_outtoub
"""Set the bytes from one turn of the inner loop to the next: source, then destination."""

class _set_loop2_stride_outtoub(MicroOperation):
    def __call__(self, first: Any, second: Any) -> Any: ...

set_loop2_stride_outtoub: _set_loop2_stride_outtoub
"""Set the bytes from one turn of the outer loop to the next: source, then destination."""

class _set_loop_size_ubtoout(MicroOperation):
    def __call__(self, first: Any, second: Any) -> Any: ...

set_loop_size_ubtoout: _set_loop_size_ubtoout
"""Set how often the two loops around raw transfers run: the inner, the outer."""

class _set_loop1_stride_ubtoout(MicroOperation):
    def __call__(self, first: Any, second: Any) -> Any: ...

set_loop1_stride_ubtoout: _set_loop1_stride_ubtoout
"""Set the bytes from one turn of the inner loop to the next: source, then destination."""

class _set_loop2_stride_ubtoout(MicroOperation):
    def __call__(self, first: Any, second: Any) -> Any: ...

set_loop2_stride_ubtoout: _set_loop2_stride_ubtoout
"""Set the bytes from one turn of the outer loop to the next: source, then destination."""

class _set_mov_pad_val(MicroOperation):
    def __call__(self, value: Any) -> Any: ...

set_mov_pad_val: _set_mov_pad_val
"""Set what raw transfers from global memory pad with."""

class _copy_gm_to_ubuf(MicroOperation):
    def __call__(
        self,
        src: Any,
        dst: Any,
        sid: Any,
        n: Any,
        len: Any,
        left: Any,
        right: Any,
        select: Any,
        l2: Any,
        src_stride: Any,
        dst_stride: Any,
    ) -> Any: ...

copy_gm_to_ubuf: _copy_gm_to_ubuf
"""Copy bursts from global memory to the unified buffer, with the loops of the registers."""

class _copy_ubuf_to_gm(MicroOperation):
    def __call__(
        self,
        src: Any,
        dst: Any,
        sid: Any,
        n: Any,
        len: Any,
        l2: Any,
        dst_stride: Any,
        src_stride: Any,
    ) -> Any: ...

copy_ubuf_to_gm: _copy_ubuf_to_gm
"""Copy bursts from the unified buffer to global memory, with the loops of the registers."""

class _mte_ub_ub(MicroOperation):
    def __call__(self, src: Any, dst: Any, len: Any, nburst: Any) -> Any: ...

mte_ub_ub: _mte_ub_ub
"""Copy bursts of blocks of 32 bytes inside the unified buffer.

`nburst` is how many bursts there are, and the blocks between one and the next on both sides."""

class _vcadd(MicroOperation):
    def __call__(self, a: Any, mask: Any) -> Any: ...

vcadd: _vcadd
"""Add the active lanes; the sum is in lane 0, the others are 0.

Integers of less than 32 bits have a sum of twice their width."""

class _vcmax(MicroOperation):
    def __call__(self, a: Any, mask: Any) -> Any: ...

vcmax: _vcmax
"""Find the largest active lane: its value in lane 0, its first place, an integer, in lane 1.

Without an active lane, lane 0 is the neutral element."""

class _vcgmax(MicroOperation):
    def __call__(self, a: Any, mask: Any) -> Any: ...

vcgmax: _vcgmax
"""Find the largest active lane of each block of 32 bytes; lane g is that of block g."""

class _vcbmax(MicroOperation):
    def __call__(self, a: Any, mask: Any) -> Any: ...

vcbmax: _vcbmax
"""Find the largest active lane, in lane 0, and a mask of the lanes equal to it."""

class _vcmin(MicroOperation):
    def __call__(self, a: Any, mask: Any) -> Any: ...

vcmin: _vcmin
"""Find the smallest active lane: its value in lane 0, its first place, an integer, in lane 1.

Without an active lane, lane 0 is the neutral element."""

class _vcgmin(MicroOperation):
    def __call__(self, a: Any, mask: Any) -> Any: ...

vcgmin: _vcgmin
"""Find the smallest active lane of each block of 32 bytes; lane g is that of block g."""

class _vcbmin(MicroOperation):
    def __call__(self, a: Any, mask: Any) -> Any: ...

vcbmin: _vcbmin
"""Find the smallest active lane, in lane 0, and a mask of the lanes equal to it."""

class _vcgadd(MicroOperation):
    def __call__(self, a: Any, mask: Any) -> Any: ...

vcgadd: _vcgadd
"""Add the active lanes of each block of 32 bytes; lane g is the sum of block g."""

class _vcpadd(MicroOperation):
    def __call__(self, a: Any, mask: Any) -> Any: ...

vcpadd: _vcpadd
"""Add neighbours: lane i is the sum of the active ones of lanes 2i and 2i + 1."""

class _mem_bar(MicroOperation):
    def __call__(self, *words: str, kind: str = ...) -> Any: ...

mem_bar: _mem_bar
"""Put accesses of a scope in order: those of one class before it, those of another behind it.

`VST_VLD` lets loads of the vector unit see what it has stored. V stands for accesses of the
vector unit, S for those of the scalar unit; LD and ST without a V are the latter."""

class _vbitsort(MicroOperation):
    def __call__(self, dst: Any, src: Any, index: Any, n: Any) -> Any: ...

vbitsort: _vbitsort
"""Sort groups of 32 scores, each with its index, into records of eight bytes.

The score takes the first bytes of a record, the index its last four. Scores fall; equal ones
stay in the order of the input."""

class _vmrgsort4(MicroOperation):
    def __call__(
        self, dst: Any, a: Any, b: Any, c: Any, d: Any, counts: Any, config: Any
    ) -> Any: ...

vmrgsort4: _vmrgsort4
"""Merge up to four lists of sorted records by falling score; of equal ones the first list's.

`counts` has the four lengths, 16 bits each; of `config` bits 8 to 11 say which lists there are,
and bit 12 ends the merge when one of them runs out. The hidden register VMS4 has how many
records were taken of each."""

class _get_vms4_sr(MicroOperation):
    def __call__(self) -> Any: ...

get_vms4_sr: _get_vms4_sr
"""Read how many records the last merge has taken of each list."""

class _mte_gm_l1(MicroOperation):
    def __call__(
        self,
        src: Any,
        dst: Any,
        len: Any,
        nburst: Any,
        loop1: Any = ...,
        loop2: Any = ...,
        loop3: Any = ...,
    ) -> Any: ...

mte_gm_l1: _mte_gm_l1
"""Copy bursts of bytes from global memory to L1, as pto.mte_gm_ub does to the other memory."""

class _mte_gm_l1_frac(MicroOperation):
    def __call__(
        self,
        src: Any,
        dst: Any,
        n: Any,
        d: Any,
        inner: Any,
        outer: Any = ...,
        groups: Any = ...,
        row_step: Any = ...,
        column_step: Any = ...,
        group_step: Any = ...,
        l2: Any = ...,
        small: Any = ...,
        *words: str,
        order: str = ...,
    ) -> Any: ...

mte_gm_l1_frac: _mte_gm_l1_frac
"""Bring matrices of n rows and d columns from global memory to L1, boxed.

`inner` is how many bytes lie between two rows of memory, `outer` between two matrices. Steps
between rows, columns of boxes and matrices in L1 are in blocks of 32 bytes. The last block of a
row is filled up with zeros."""

class _copy_gm_to_cbuf(MicroOperation):
    def __call__(self, src: Any, dst: Any, a: Any, b: Any, c: Any, d: Any) -> Any: ...

copy_gm_to_cbuf: _copy_gm_to_cbuf
"""Copy from global memory to L1, in raw form. It is read and checked; running it is refused."""

class _mte_l1_ub(MicroOperation):
    def __call__(self, src: Any, dst: Any, len: Any, nburst: Any) -> Any: ...

mte_l1_ub: _mte_l1_ub
"""Copy bursts of blocks of 32 bytes from L1 to the unified buffer of vector core 0.

`nburst` is how many bursts there are, and the blocks between one and the next on both sides."""

class _mte_ub_l1(MicroOperation):
    def __call__(self, src: Any, dst: Any, len: Any, nburst: Any) -> Any: ...

mte_ub_l1: _mte_ub_l1
"""Copy bursts of blocks of 32 bytes from the unified buffer of this core to L1."""

class _copy_ubuf_to_cbuf(MicroOperation):
    def __call__(
        self, src: Any, dst: Any, sid: Any, n: Any, len: Any, src_gap: Any, dst_gap: Any
    ) -> Any: ...

copy_ubuf_to_cbuf: _copy_ubuf_to_cbuf
"""Copy n bursts of so many blocks of 32 bytes, with gaps, from the unified buffer to L1."""

class _copy_cbuf_to_ubuf(MicroOperation):
    def __call__(
        self, src: Any, dst: Any, core: Any, n: Any, len: Any, src_gap: Any, dst_gap: Any
    ) -> Any: ...

copy_cbuf_to_ubuf: _copy_cbuf_to_ubuf
"""Copy n bursts of so many blocks, with gaps, from L1 to the unified buffer of a core."""

class _mte_l1_l0a(MicroOperation):
    def __call__(
        self,
        src: Any,
        dst: Any,
        rows: Any,
        cols: Any,
        row: Any = ...,
        col: Any = ...,
        src_stride: Any = ...,
        dst_stride: Any = ...,
        *words: str,
        transpose: str = ...,
    ) -> Any: ...

mte_l1_l0a: _mte_l1_l0a
"""Bring a boxed matrix from L1 to the left operand of products, m x k.

`row` and `col` are where it begins in the matrix of L1, which is k x m with `transpose`. With
strides the numbers are those of pto.load_cbuf_to_ca."""

class _mte_l1_l0b(MicroOperation):
    def __call__(
        self,
        src: Any,
        dst: Any,
        rows: Any,
        cols: Any,
        row: Any = ...,
        col: Any = ...,
        src_stride: Any = ...,
        dst_stride: Any = ...,
        *words: str,
        transpose: str = ...,
    ) -> Any: ...

mte_l1_l0b: _mte_l1_l0b
"""Bring a boxed matrix from L1 to the right operand of products, k x n.

The operand holds n rows of k elements. The matrix of L1 is k x n with `transpose` and n x k
without. With strides the numbers are those of pto.load_cbuf_to_cb."""

class _load_cbuf_to_ca(MicroOperation):
    def __call__(
        self,
        src: Any,
        dst: Any,
        m_start: Any,
        k_start: Any,
        m_step: Any,
        k_step: Any,
        src_stride: Any,
        dst_stride: Any,
        *words: str,
        transpose: str = ...,
    ) -> Any: ...

load_cbuf_to_ca: _load_cbuf_to_ca
"""Copy boxes of 512 bytes from L1 to l0a.

The box in which it begins, how many there are in a column and how many columns, and how many boxes lie between two columns in the source and in the destination."""

class _load_cbuf_to_ca_s4(MicroOperation):
    def __call__(
        self,
        src: Any,
        dst: Any,
        m_start: Any,
        k_start: Any,
        m_step: Any,
        k_step: Any,
        src_stride: Any,
        dst_stride: Any,
        transpose: Any,
    ) -> Any: ...

load_cbuf_to_ca_s4: _load_cbuf_to_ca_s4
"""Copy boxes of 512 bytes, of pairs of 4-bit elements, from L1 to l0a.

The numbers are those of pto.load_cbuf_to_ca; the last one is whether to transpose, which is refused."""

class _load_cbuf_to_cb(MicroOperation):
    def __call__(
        self,
        src: Any,
        dst: Any,
        m_start: Any,
        k_start: Any,
        m_step: Any,
        k_step: Any,
        src_stride: Any,
        dst_stride: Any,
        *words: str,
        transpose: str = ...,
    ) -> Any: ...

load_cbuf_to_cb: _load_cbuf_to_cb
"""Copy boxes of 512 bytes from L1 to l0b.

The box in which it begins, how many there are in a column and how many columns, and how many boxes lie between two columns in the source and in the destination."""

class _load_cbuf_to_cb_s4(MicroOperation):
    def __call__(
        self,
        src: Any,
        dst: Any,
        m_start: Any,
        k_start: Any,
        m_step: Any,
        k_step: Any,
        src_stride: Any,
        dst_stride: Any,
        transpose: Any,
    ) -> Any: ...

load_cbuf_to_cb_s4: _load_cbuf_to_cb_s4
"""Copy boxes of 512 bytes, of pairs of 4-bit elements, from L1 to l0b.

The numbers are those of pto.load_cbuf_to_ca; the last one is whether to transpose, which is refused."""

class _mte_l1_l0a_mx(MicroOperation):
    def __call__(
        self,
        src: Any,
        dst: Any,
        rows: Any,
        cols: Any,
        row: Any = ...,
        col: Any = ...,
        src_stride: Any = ...,
        dst_stride: Any = ...,
    ) -> Any: ...

mte_l1_l0a_mx: _mte_l1_l0a_mx
"""Bring the scales of a left operand of m x k elements from L1: one byte for each 32 of k.

They belong to the operand at `dst`."""

class _mte_l1_l0b_mx(MicroOperation):
    def __call__(
        self,
        src: Any,
        dst: Any,
        rows: Any,
        cols: Any,
        row: Any = ...,
        col: Any = ...,
        src_stride: Any = ...,
        dst_stride: Any = ...,
    ) -> Any: ...

mte_l1_l0b_mx: _mte_l1_l0b_mx
"""Bring the scales of a right operand of k x n elements from L1: one byte for each 32 of k.

They belong to the operand at `dst`."""

class _mte_l1_bt(MicroOperation):
    def __call__(self, src: Any, dst: Any, len: Any, nburst: Any) -> Any: ...

mte_l1_bt: _mte_l1_bt
"""Bring a row of bias values from L1 to the bias table, as f32 or i32.

`len` and the gaps of `nburst` count blocks of 32 bytes of the source."""

class _mte_l1_fb(MicroOperation):
    def __call__(self, src: Any, dst: Any, len: Any, nburst: Any) -> Any: ...

mte_l1_fb: _mte_l1_fb
"""Bring parameters of the fix pipe from L1: scales of 8 bytes, or factors of 4 bytes.

Scales go to its first table, factors to its second, which begins at address 65536. `len` and
the gaps of `nburst` count 64 bytes."""

class _copy_cbuf_to_fbuf(MicroOperation):
    def __call__(self, src: Any, dst: Any, n: Any, len: Any, src_gap: Any, dst_gap: Any) -> Any: ...

copy_cbuf_to_fbuf: _copy_cbuf_to_fbuf
"""Copy n bursts of so many units of 64 bytes from L1 to the parameters of the fix pipe.

It is what pto.mte_l1_fb is made of."""

class _vldas(MicroOperation):
    def __call__(self, base: Any) -> Any: ...

vldas: _vldas
"""Start an unaligned load: what follows reads from the pointer on."""

class _vldus(MicroOperation):
    def __call__(self, base: Any, state: Any, step: Any = ...) -> Any: ...

vldus: _vldus
"""Load the next register of an unaligned stream; the pointer moves by `step` elements."""

class _vldus_post(MicroOperation):
    def __call__(self, base: Any, state: Any, step: Any = ...) -> Any: ...

vldus_post: _vldus_post
"""Load the next register of an unaligned stream; the pointer moves by `step` elements."""

class _init_align(MicroOperation):
    def __call__(self) -> Any: ...

init_align: _init_align
"""Begin an unaligned store: nothing is on its way."""

class _vstus(MicroOperation):
    def __call__(self, state: Any, n: Any, src: Any, base: Any) -> Any: ...

vstus: _vstus
"""Append the first n lanes of a register to a stream; whole blocks go to memory."""

class _vstus_post(MicroOperation):
    def __call__(self, state: Any, n: Any, src: Any, base: Any) -> Any: ...

vstus_post: _vstus_post
"""Append the first n lanes of a register to a stream; whole blocks go to memory."""

class _vstas(MicroOperation):
    def __call__(self, state: Any, base: Any, n: Any) -> Any: ...

vstas: _vstas
"""Store what is left of a stream that ends n elements behind the pointer."""

class _vstas_post(MicroOperation):
    def __call__(self, state: Any, base: Any, n: Any) -> Any: ...

vstas_post: _vstas_post
"""Store what is left of a stream that ends n elements behind the pointer."""

class _vstur(MicroOperation):
    def __call__(self, state: Any, src: Any, base: Any, *words: str, mode: str = ...) -> Any: ...

vstur: _vstur
"""Append what the last vsqz has kept to a stream, AR bytes past the pointer.

With POST_UPDATE AR then counts these bytes too."""

class _vstar(MicroOperation):
    def __call__(self, state: Any, base: Any) -> Any: ...

vstar: _vstar
"""Store what is left of a stream that ends AR bytes past the pointer."""

class _sprclr(MicroOperation):
    def __call__(self, *words: str, register: str = ...) -> Any: ...

sprclr: _sprclr
"""Clear a hidden register."""

class _pstu(MicroOperation):
    def __call__(self, state: Any, mask: Any, base: Any) -> Any: ...

pstu: _pstu
"""Append a mask to a stream, one bit per lane of its width."""

class _sprsti(MicroOperation):
    def __call__(self, base: Any, offset: Any, *words: str, register: str = ...) -> Any: ...

sprsti: _sprsti
"""Store a hidden register as a word; the offset counts words."""

class _sprsti_post(MicroOperation):
    def __call__(self, base: Any, offset: Any, *words: str, register: str = ...) -> Any: ...

sprsti_post: _sprsti_post
"""Store a hidden register as a word; the offset counts words."""

class _sprsts(MicroOperation):
    def __call__(self, base: Any, offset: Any, *words: str, register: str = ...) -> Any: ...

sprsts: _sprsts
"""Store a hidden register as a word; the offset counts bytes."""

class _sprsts_post(MicroOperation):
    def __call__(self, base: Any, offset: Any, *words: str, register: str = ...) -> Any: ...

sprsts_post: _sprsts_post
"""Store a hidden register as a word; the offset counts bytes."""

class _mte_gm_ub(MicroOperation):
    def __call__(
        self,
        src: Any,
        dst: Any,
        l2: Any,
        len: Any,
        nburst: Any,
        loop1: Any = ...,
        loop2: Any = ...,
        loop3: Any = ...,
        pad: Any = ...,
    ) -> Any: ...

mte_gm_ub: _mte_gm_ub
"""Copy bursts of bytes from global memory to the unified buffer.

`nburst` is how many bursts there are, and the bytes from one to the next on both sides; loops
around them, the last one outermost, have the same three numbers. `pad` puts elements of a value
in front of each burst and behind it, and fills up its last block of 32 bytes."""

class _mte_ub_gm(MicroOperation):
    def __call__(
        self,
        src: Any,
        dst: Any,
        len: Any,
        nburst: Any,
        loop1: Any = ...,
        loop2: Any = ...,
        loop3: Any = ...,
        l2: Any = ...,
    ) -> Any: ...

mte_ub_gm: _mte_ub_gm
"""Copy bursts of bytes from the unified buffer to global memory.

Where pto.set_atomic_add or its sisters came before, they change what is there in place."""

__all__ = [
    "vabs",
    "vneg",
    "vexp",
    "vln",
    "vsqrt",
    "vrec",
    "vrelu",
    "vnot",
    "vadd",
    "vsub",
    "vmul",
    "vdiv",
    "vmax",
    "vmin",
    "vand",
    "vor",
    "vxor",
    "vshl",
    "vshr",
    "vshls",
    "vshrs",
    "vadds",
    "vmuls",
    "vmaxs",
    "vmins",
    "vlrelu",
    "vprelu",
    "vmula",
    "vmadd",
    "vaxpy",
    "vmull",
    "vaddc",
    "vaddcs",
    "vsubc",
    "vsubcs",
    "vcmp",
    "vcmps",
    "vsel",
    "vselr",
    "vbr",
    "vdup",
    "vci",
    "get_ctrl",
    "set_ctrl",
    "sbitset0",
    "sbitset1",
    "set_atomic_s8",
    "set_atomic_s16",
    "set_atomic_s32",
    "set_atomic_f16",
    "set_atomic_bf16",
    "set_atomic_f32",
    "set_atomic_add",
    "set_atomic_max",
    "set_atomic_min",
    "set_atomic_none",
    "vcvt",
    "vtrc",
    "vexpdif",
    "vmulscvt",
    "ld_dev",
    "st_dev",
    "mte_l0c_gm",
    "mte_l0c_l1",
    "mte_l0c_ub",
    "mad",
    "mad_mx",
    "mad_acc",
    "mad_mx_acc",
    "mad_bias",
    "mad_mx_bias",
    "vlds",
    "vlds_post",
    "vldsx2",
    "vldsx2_post",
    "vsldb",
    "vsldb_post",
    "vgather2",
    "vgather2_bc",
    "vgatherb",
    "vsts",
    "vsts_post",
    "vstsx2",
    "vsstb",
    "vsstb_post",
    "vscatter",
    "plds",
    "plds_post",
    "psts",
    "psts_post",
    "pldi",
    "pldi_post",
    "psti",
    "psti_post",
    "vintlv",
    "vdintlv",
    "vsqz",
    "vusqz",
    "vpack",
    "vsunpack",
    "vzunpack",
    "vbitcast",
    "pset_b8",
    "pge_b8",
    "plt_b8",
    "pltm_b8",
    "pintlv_b8",
    "pdintlv_b8",
    "pset_b16",
    "pge_b16",
    "plt_b16",
    "pltm_b16",
    "pintlv_b16",
    "pdintlv_b16",
    "pset_b32",
    "pge_b32",
    "plt_b32",
    "pltm_b32",
    "pintlv_b32",
    "pdintlv_b32",
    "pand",
    "por",
    "pxor",
    "pnot",
    "psel",
    "ppack",
    "punpack",
    "pbitcast",
    "set_loop_size_outtoub",
    "set_loop1_stride_outtoub",
    "set_loop2_stride_outtoub",
    "set_loop_size_ubtoout",
    "set_loop1_stride_ubtoout",
    "set_loop2_stride_ubtoout",
    "set_mov_pad_val",
    "copy_gm_to_ubuf",
    "copy_ubuf_to_gm",
    "mte_ub_ub",
    "vcadd",
    "vcmax",
    "vcgmax",
    "vcbmax",
    "vcmin",
    "vcgmin",
    "vcbmin",
    "vcgadd",
    "vcpadd",
    "mem_bar",
    "vbitsort",
    "vmrgsort4",
    "get_vms4_sr",
    "mte_gm_l1",
    "mte_gm_l1_frac",
    "copy_gm_to_cbuf",
    "mte_l1_ub",
    "mte_ub_l1",
    "copy_ubuf_to_cbuf",
    "copy_cbuf_to_ubuf",
    "mte_l1_l0a",
    "mte_l1_l0b",
    "load_cbuf_to_ca",
    "load_cbuf_to_ca_s4",
    "load_cbuf_to_cb",
    "load_cbuf_to_cb_s4",
    "mte_l1_l0a_mx",
    "mte_l1_l0b_mx",
    "mte_l1_bt",
    "mte_l1_fb",
    "copy_cbuf_to_fbuf",
    "vldas",
    "vldus",
    "vldus_post",
    "init_align",
    "vstus",
    "vstus_post",
    "vstas",
    "vstas_post",
    "vstur",
    "vstar",
    "sprclr",
    "pstu",
    "sprsti",
    "sprsti_post",
    "sprsts",
    "sprsts_post",
    "mte_gm_ub",
    "mte_ub_gm",
]
