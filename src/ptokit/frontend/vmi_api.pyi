# The micro-operations as editors see them: names, operands, documentation.
# Generated from the table by tools/gen.py; do not edit.
# pyright: reportIncompatibleMethodOverride=false

from typing import Any

from ptokit.frontend.logical_operations import LogicalOperation

class _vabs(LogicalOperation):
    def __call__(self, a: Any, mask: Any = ..., *words: str, pmode: str = ...) -> Any: ...

vabs: _vabs
"""Take the absolute value; that of the least integer wraps. Here of logical vectors, lane by lane."""

class _vneg(LogicalOperation):
    def __call__(self, a: Any, mask: Any = ..., *words: str, pmode: str = ...) -> Any: ...

vneg: _vneg
"""Change the sign; integers wrap. Here of logical vectors, lane by lane."""

class _vexp(LogicalOperation):
    def __call__(self, a: Any, mask: Any = ..., *words: str, pmode: str = ...) -> Any: ...

vexp: _vexp
"""Raise e to the power of each lane. Here of logical vectors, lane by lane."""

class _vln(LogicalOperation):
    def __call__(self, a: Any, mask: Any = ..., *words: str, pmode: str = ...) -> Any: ...

vln: _vln
"""Take the natural logarithm: -inf of 0. Here of logical vectors, lane by lane."""

class _vsqrt(LogicalOperation):
    def __call__(self, a: Any, mask: Any = ..., *words: str, pmode: str = ...) -> Any: ...

vsqrt: _vsqrt
"""Take the square root. Here of logical vectors, lane by lane."""

class _vrec(LogicalOperation):
    def __call__(self, a: Any, mask: Any = ..., *words: str, pmode: str = ...) -> Any: ...

vrec: _vrec
"""Take the reciprocal. Here of logical vectors, lane by lane."""

class _vrelu(LogicalOperation):
    def __call__(self, a: Any, mask: Any = ..., *words: str, pmode: str = ...) -> Any: ...

vrelu: _vrelu
"""Replace what is not positive by 0. Here of logical vectors, lane by lane."""

class _vadd(LogicalOperation):
    def __call__(self, a: Any, b: Any, mask: Any = ..., *words: str, pmode: str = ...) -> Any: ...

vadd: _vadd
"""Add two registers; integers wrap. Here of logical vectors, lane by lane."""

class _vsub(LogicalOperation):
    def __call__(self, a: Any, b: Any, mask: Any = ..., *words: str, pmode: str = ...) -> Any: ...

vsub: _vsub
"""Subtract a register from another; integers wrap. Here of logical vectors, lane by lane."""

class _vmul(LogicalOperation):
    def __call__(self, a: Any, b: Any, mask: Any = ..., *words: str, pmode: str = ...) -> Any: ...

vmul: _vmul
"""Multiply two registers; integers wrap. Here of logical vectors, lane by lane."""

class _vdiv(LogicalOperation):
    def __call__(self, a: Any, b: Any, mask: Any = ..., *words: str, pmode: str = ...) -> Any: ...

vdiv: _vdiv
"""Divide; integers toward zero. Here of logical vectors, lane by lane."""

class _vmax(LogicalOperation):
    def __call__(self, a: Any, b: Any, mask: Any = ..., *words: str, pmode: str = ...) -> Any: ...

vmax: _vmax
"""Take the larger lane; NaN if either is. Here of logical vectors, lane by lane."""

class _vmin(LogicalOperation):
    def __call__(self, a: Any, b: Any, mask: Any = ..., *words: str, pmode: str = ...) -> Any: ...

vmin: _vmin
"""Take the smaller lane; NaN if either is. Here of logical vectors, lane by lane."""

class _vshl(LogicalOperation):
    def __call__(self, a: Any, b: Any, mask: Any = ..., *words: str, pmode: str = ...) -> Any: ...

vshl: _vshl
"""Shift lanes to the left by the counts beside them. Here of logical vectors, lane by lane."""

class _vshr(LogicalOperation):
    def __call__(self, a: Any, b: Any, mask: Any = ..., *words: str, pmode: str = ...) -> Any: ...

vshr: _vshr
"""Shift lanes to the right, signed ones with their sign, by the counts beside them. Here of logical vectors, lane by lane."""

class _vshls(LogicalOperation):
    def __call__(self, a: Any, b: Any, mask: Any = ..., *words: str, pmode: str = ...) -> Any: ...

vshls: _vshls
"""Shift lanes to the left by one count. Here of logical vectors, lane by lane."""

class _vshrs(LogicalOperation):
    def __call__(self, a: Any, b: Any, mask: Any = ..., *words: str, pmode: str = ...) -> Any: ...

vshrs: _vshrs
"""Shift lanes to the right, signed ones with their sign, by one count. Here of logical vectors, lane by lane."""

class _vadds(LogicalOperation):
    def __call__(self, a: Any, b: Any, mask: Any = ..., *words: str, pmode: str = ...) -> Any: ...

vadds: _vadds
"""Add a number to every lane; integers wrap. Here of logical vectors, lane by lane."""

class _vmuls(LogicalOperation):
    def __call__(self, a: Any, b: Any, mask: Any = ..., *words: str, pmode: str = ...) -> Any: ...

vmuls: _vmuls
"""Multiply every lane by a number; integers wrap. Here of logical vectors, lane by lane."""

class _vmaxs(LogicalOperation):
    def __call__(self, a: Any, b: Any, mask: Any = ..., *words: str, pmode: str = ...) -> Any: ...

vmaxs: _vmaxs
"""Take the larger of each lane and a number. Here of logical vectors, lane by lane."""

class _vmins(LogicalOperation):
    def __call__(self, a: Any, b: Any, mask: Any = ..., *words: str, pmode: str = ...) -> Any: ...

vmins: _vmins
"""Take the smaller of each lane and a number. Here of logical vectors, lane by lane."""

class _vlrelu(LogicalOperation):
    def __call__(self, a: Any, b: Any, mask: Any = ..., *words: str, pmode: str = ...) -> Any: ...

vlrelu: _vlrelu
"""Multiply negative lanes by a number. Here of logical vectors, lane by lane."""

class _vprelu(LogicalOperation):
    def __call__(self, a: Any, b: Any, mask: Any = ..., *words: str, pmode: str = ...) -> Any: ...

vprelu: _vprelu
"""Multiply negative lanes by the slope beside them. Here of logical vectors, lane by lane."""

class _vmula(LogicalOperation):
    def __call__(
        self, acc: Any, a: Any, b: Any, mask: Any = ..., *words: str, pmode: str = ...
    ) -> Any: ...

vmula: _vmula
"""Add the product of two registers to a third; floats are rounded once. Here of logical vectors, lane by lane."""

class _vmadd(LogicalOperation):
    def __call__(
        self, acc: Any, a: Any, b: Any, mask: Any = ..., *words: str, pmode: str = ...
    ) -> Any: ...

vmadd: _vmadd
"""Multiply the first register by the second and add the third, rounded once. Here of logical vectors, lane by lane."""

class _vaxpy(LogicalOperation):
    def __call__(
        self, a: Any, b: Any, s: Any, mask: Any = ..., *words: str, pmode: str = ...
    ) -> Any: ...

vaxpy: _vaxpy
"""Multiply a register by a number and add another, rounded once. Here of logical vectors, lane by lane."""

class _vmull(LogicalOperation):
    def __call__(self, a: Any, b: Any, mask: Any = ..., *words: str, pmode: str = ...) -> Any: ...

vmull: _vmull
"""Multiply two registers of 32-bit lanes; the results are the halves of the product. Here of logical vectors, lane by lane."""

class _vaddc(LogicalOperation):
    def __call__(self, a: Any, b: Any, mask: Any = ..., *words: str, pmode: str = ...) -> Any: ...

vaddc: _vaddc
"""Add two registers without sign; the mask has the carries out. Here of logical vectors, lane by lane."""

class _vaddcs(LogicalOperation):
    def __call__(
        self, a: Any, b: Any, cin: Any, mask: Any = ..., *words: str, pmode: str = ...
    ) -> Any: ...

vaddcs: _vaddcs
"""Add two registers and a mask of carries; the other mask has the carries out. Here of logical vectors, lane by lane."""

class _vsubc(LogicalOperation):
    def __call__(self, a: Any, b: Any, mask: Any = ..., *words: str, pmode: str = ...) -> Any: ...

vsubc: _vsubc
"""Subtract without sign; the mask is set where nothing had to be borrowed. Here of logical vectors, lane by lane."""

class _vsubcs(LogicalOperation):
    def __call__(
        self, a: Any, b: Any, cin: Any, mask: Any = ..., *words: str, pmode: str = ...
    ) -> Any: ...

vsubcs: _vsubcs
"""Subtract, and 1 where the mask is not set; the other is set where nothing was borrowed. Here of logical vectors, lane by lane."""

class _addf(LogicalOperation):
    def __call__(self, a: Any, b: Any) -> Any: ...

addf: _addf
"""Add two vectors of floats."""

class _addi(LogicalOperation):
    def __call__(self, a: Any, b: Any) -> Any: ...

addi: _addi
"""Add two vectors of integers, which wrap."""

class _subf(LogicalOperation):
    def __call__(self, a: Any, b: Any) -> Any: ...

subf: _subf
"""Subtract a vector of floats from another."""

class _subi(LogicalOperation):
    def __call__(self, a: Any, b: Any) -> Any: ...

subi: _subi
"""Subtract a vector of integers from another; they wrap."""

class _mulf(LogicalOperation):
    def __call__(self, a: Any, b: Any) -> Any: ...

mulf: _mulf
"""Multiply two vectors of floats."""

class _muli(LogicalOperation):
    def __call__(self, a: Any, b: Any) -> Any: ...

muli: _muli
"""Multiply two vectors of integers, which wrap."""

class _divf(LogicalOperation):
    def __call__(self, a: Any, b: Any) -> Any: ...

divf: _divf
"""Divide a vector of floats by another."""

class _minf(LogicalOperation):
    def __call__(self, a: Any, b: Any) -> Any: ...

minf: _minf
"""Take the smaller of two floats; NaN if either is."""

class _maxf(LogicalOperation):
    def __call__(self, a: Any, b: Any) -> Any: ...

maxf: _maxf
"""Take the larger of two floats; NaN if either is."""

class _mini(LogicalOperation):
    def __call__(self, a: Any, b: Any) -> Any: ...

mini: _mini
"""Take the smaller of two integers."""

class _maxi(LogicalOperation):
    def __call__(self, a: Any, b: Any) -> Any: ...

maxi: _maxi
"""Take the larger of two integers."""

class _negf(LogicalOperation):
    def __call__(self, a: Any) -> Any: ...

negf: _negf
"""Change the sign of floats."""

class _negi(LogicalOperation):
    def __call__(self, a: Any) -> Any: ...

negi: _negi
"""Change the sign of integers, which wrap."""

class _absf(LogicalOperation):
    def __call__(self, a: Any) -> Any: ...

absf: _absf
"""Take the absolute value of floats."""

class _absi(LogicalOperation):
    def __call__(self, a: Any) -> Any: ...

absi: _absi
"""Take the absolute value of integers; that of the least wraps."""

class _sqrt(LogicalOperation):
    def __call__(self, a: Any) -> Any: ...

sqrt: _sqrt
"""Take the square root."""

class _exp(LogicalOperation):
    def __call__(self, a: Any) -> Any: ...

exp: _exp
"""Raise e to the power of each lane."""

class _ln(LogicalOperation):
    def __call__(self, a: Any) -> Any: ...

ln: _ln
"""Take the natural logarithm: -inf of 0."""

class _relu(LogicalOperation):
    def __call__(self, a: Any) -> Any: ...

relu: _relu
"""Replace what is not positive by 0."""

class _shli(LogicalOperation):
    def __call__(self, a: Any, b: Any) -> Any: ...

shli: _shli
"""Shift lanes to the left by the counts beside them."""

class _shrui(LogicalOperation):
    def __call__(self, a: Any, b: Any) -> Any: ...

shrui: _shrui
"""Shift lanes to the right by the counts; zeros come in."""

class _shrsi(LogicalOperation):
    def __call__(self, a: Any, b: Any) -> Any: ...

shrsi: _shrsi
"""Shift lanes to the right by the counts; the sign comes in."""

class _fma(LogicalOperation):
    def __call__(self, a: Any, b: Any, acc: Any) -> Any: ...

fma: _fma
"""Multiply two vectors and add a third, rounded once."""

class _vexpdif(LogicalOperation):
    def __call__(self, a: Any, b: Any, mask: Any = ..., *words: str, pmode: str = ...) -> Any: ...

vexpdif: _vexpdif
"""Raise e to the difference of two vectors, in f32."""

class _vand(LogicalOperation):
    def __call__(self, a: Any, b: Any, mask: Any = ..., *words: str, pmode: str = ...) -> Any: ...

vand: _vand
"""Combine the bits with and of integers, or of masks."""

class _andi(LogicalOperation):
    def __call__(self, a: Any, b: Any) -> Any: ...

andi: _andi
"""Combine the bits with and of integers."""

class _mask_and(LogicalOperation):
    def __call__(self, a: Any, b: Any) -> Any: ...

mask_and: _mask_and
"""Combine the bits with and of masks."""

class _vor(LogicalOperation):
    def __call__(self, a: Any, b: Any, mask: Any = ..., *words: str, pmode: str = ...) -> Any: ...

vor: _vor
"""Combine the bits with or of integers, or of masks."""

class _ori(LogicalOperation):
    def __call__(self, a: Any, b: Any) -> Any: ...

ori: _ori
"""Combine the bits with or of integers."""

class _mask_or(LogicalOperation):
    def __call__(self, a: Any, b: Any) -> Any: ...

mask_or: _mask_or
"""Combine the bits with or of masks."""

class _vxor(LogicalOperation):
    def __call__(self, a: Any, b: Any, mask: Any = ..., *words: str, pmode: str = ...) -> Any: ...

vxor: _vxor
"""Combine the bits with exclusive or of integers, or of masks."""

class _xori(LogicalOperation):
    def __call__(self, a: Any, b: Any) -> Any: ...

xori: _xori
"""Combine the bits with exclusive or of integers."""

class _mask_xor(LogicalOperation):
    def __call__(self, a: Any, b: Any) -> Any: ...

mask_xor: _mask_xor
"""Combine the bits with exclusive or of masks."""

class _vnot(LogicalOperation):
    def __call__(self, a: Any, mask: Any = ..., *words: str, pmode: str = ...) -> Any: ...

vnot: _vnot
"""Complement every bit of integers, or of masks."""

class _not_(LogicalOperation):
    def __call__(self, a: Any) -> Any: ...

not_: _not_
"""Complement every bit of integers."""

class _mask_not(LogicalOperation):
    def __call__(self, a: Any) -> Any: ...

mask_not: _mask_not
"""Complement every bit of masks."""

class _vcmp(LogicalOperation):
    def __call__(
        self, a: Any, b: Any, mask: Any, *words: str, cmp: str = ..., pmode: str = ...
    ) -> Any: ...

vcmp: _vcmp
"""Compare two vectors: a bit is set where the mask is and the comparison holds."""

class _vcmps(LogicalOperation):
    def __call__(
        self, a: Any, b: Any, mask: Any, *words: str, cmp: str = ..., pmode: str = ...
    ) -> Any: ...

vcmps: _vcmps
"""Compare a vector with a number: a bit is set where the mask is and the comparison holds."""

class _cmpf(LogicalOperation):
    def __call__(self, a: Any, b: Any, *words: str, predicate: str = ...) -> Any: ...

cmpf: _cmpf
"""Compare two vectors of floats: a bit is set where the comparison holds."""

class _cmpi(LogicalOperation):
    def __call__(self, a: Any, b: Any, *words: str, predicate: str = ...) -> Any: ...

cmpi: _cmpi
"""Compare two vectors of integers: a bit is set where the comparison holds."""

class _vsel(LogicalOperation):
    def __call__(self, select: Any, a: Any, b: Any) -> Any: ...

vsel: _vsel
"""Take the lanes of one vector where the mask is set, those of another elsewhere."""

class _select(LogicalOperation):
    def __call__(self, select: Any, a: Any, b: Any) -> Any: ...

select: _select
"""Take the lanes of one vector where the mask is set, those of another elsewhere."""

class _vcvt(LogicalOperation):
    def __call__(
        self,
        a: Any,
        mask: Any = ...,
        *words: str,
        rounding: str = ...,
        saturate: str = ...,
        pmode: str = ...,
    ) -> Any: ...

vcvt: _vcvt
"""Convert the element type; every lane stays in its place."""

class _extf(LogicalOperation):
    def __call__(self, a: Any) -> Any: ...

extf: _extf
"""Widen floats."""

class _truncf(LogicalOperation):
    def __call__(self, a: Any, *words: str, rounding: str = ..., saturate: str = ...) -> Any: ...

truncf: _truncf
"""Narrow floats."""

class _fptosi(LogicalOperation):
    def __call__(self, a: Any, *words: str, rounding: str = ..., saturate: str = ...) -> Any: ...

fptosi: _fptosi
"""Convert floats to integers with a sign."""

class _fptoui(LogicalOperation):
    def __call__(self, a: Any, *words: str, rounding: str = ..., saturate: str = ...) -> Any: ...

fptoui: _fptoui
"""Convert floats to integers without a sign."""

class _sitofp(LogicalOperation):
    def __call__(self, a: Any) -> Any: ...

sitofp: _sitofp
"""Convert integers with a sign to floats."""

class _extsi(LogicalOperation):
    def __call__(self, a: Any) -> Any: ...

extsi: _extsi
"""Widen integers with their sign."""

class _extui(LogicalOperation):
    def __call__(self, a: Any) -> Any: ...

extui: _extui
"""Widen integers with zeros."""

class _trunci(LogicalOperation):
    def __call__(self, a: Any, *words: str, saturate: str = ...) -> Any: ...

trunci: _trunci
"""Narrow integers."""

class _vbrc(LogicalOperation):
    def __call__(self, a: Any, *words: str, group: int = ...) -> Any: ...

vbrc: _vbrc
"""Make all lanes a number, or the lanes of each group the lane of its number."""

class _broadcast(LogicalOperation):
    def __call__(self, a: Any) -> Any: ...

broadcast: _broadcast
"""Make all lanes a number, or the one lane of a vector."""

class _group_broadcast(LogicalOperation):
    def __call__(self, a: Any, *words: str, num_groups: int = ...) -> Any: ...

group_broadcast: _group_broadcast
"""Make the lanes of each group the lane of its number."""

class _vci(LogicalOperation):
    def __call__(self, s: Any, *words: str, order: str = ..., group: int = ...) -> Any: ...

vci: _vci
"""Count from a number on, upwards or downwards; with groups anew in each of them."""

class _iota(LogicalOperation):
    def __call__(self, s: Any, *words: str, order: str = ...) -> Any: ...

iota: _iota
"""Count from a number on, upwards or downwards."""

class _group_iota(LogicalOperation):
    def __call__(self, s: Any, *words: str, order: str = ..., group: int = ...) -> Any: ...

group_iota: _group_iota
"""Count from a number on in every group, upwards or downwards."""

class _vinterpret_cast(LogicalOperation):
    def __call__(self, a: Any) -> Any: ...

vinterpret_cast: _vinterpret_cast
"""Look at the same bits as lanes of another type."""

class _bitcast(LogicalOperation):
    def __call__(self, a: Any) -> Any: ...

bitcast: _bitcast
"""Look at the same bits as lanes of another type."""

class _vintlv(LogicalOperation):
    def __call__(self, a: Any, b: Any, mask: Any = ..., *words: str, pmode: str = ...) -> Any: ...

vintlv: _vintlv
"""Take the lanes of two vectors in turn: the first half of them, and the second."""

class _vdintlv(LogicalOperation):
    def __call__(self, a: Any, b: Any, mask: Any = ..., *words: str, pmode: str = ...) -> Any: ...

vdintlv: _vdintlv
"""Divide the lanes of two vectors, one after the other, into even and odd ones."""

class _vselr(LogicalOperation):
    def __call__(self, a: Any, index: Any) -> Any: ...

vselr: _vselr
"""Permute lanes: each is the lane of the first vector that the index beside it names."""

class _ensure_layout(LogicalOperation):
    def __call__(self, a: Any) -> Any: ...

ensure_layout: _ensure_layout
"""Change the layout of a vector, and nothing of what it holds."""

class _create_mask(LogicalOperation):
    def __call__(self, n: Any) -> Any: ...

create_mask: _create_mask
"""Activate the first lanes, as many as a number says."""

class _create_group_mask(LogicalOperation):
    def __call__(
        self, n: Any, *words: str, num_groups: int = ..., group_size: int = ...
    ) -> Any: ...

create_group_mask: _create_group_mask
"""Activate the first lanes of every group, as many as a number says."""

class _pset(LogicalOperation):
    def __call__(self, *words: str, pattern: str = ..., group: int = ...) -> Any: ...

pset: _pset
"""Activate every lane."""

class _pge(LogicalOperation):
    def __call__(self, *words: str, pattern: str = ..., group: int = ...) -> Any: ...

pge: _pge
"""Activate as many lanes as the pattern says, the first ones or the first of every group."""

class _plt(LogicalOperation):
    def __call__(self, n: Any) -> Any: ...

plt: _plt
"""Activate the first lanes, as many as a number says; the rest of the number comes with it."""

class _active_prefix_index(LogicalOperation):
    def __call__(self, mask: Any) -> Any: ...

active_prefix_index: _active_prefix_index
"""Count for each lane the active ones before it."""

class _compress(LogicalOperation):
    def __call__(self, a: Any, mask: Any) -> Any: ...

compress: _compress
"""Move the active lanes to the front, in their order; zeros follow."""

class _vload(LogicalOperation):
    def __call__(
        self,
        base: Any,
        offset: Any,
        stride: Any = ...,
        *words: str,
        group: int = ...,
        dist_mode: str = ...,
        pmode: str = ...,
    ) -> Any: ...

vload: _vload
"""Load a vector: side by side, in groups a stride of elements apart, or in blocks.

`dist_mode` "brc" makes all lanes one element, "unpack" puts elements into wider lanes, "dintlv"
makes two vectors of elements in turn."""

class _load(LogicalOperation):
    def __call__(self, base: Any, offset: Any) -> Any: ...

load: _load
"""Load a vector whose elements lie side by side."""

class _deinterleave_load(LogicalOperation):
    def __call__(self, base: Any, offset: Any) -> Any: ...

deinterleave_load: _deinterleave_load
"""Load two vectors whose elements lie in turn."""

class _group_load(LogicalOperation):
    def __call__(
        self, base: Any, offset: Any, row_stride: Any, *words: str, num_groups: int = ...
    ) -> Any: ...

group_load: _group_load
"""Load groups of lanes that lie a stride of elements apart."""

class _group_slot_load(LogicalOperation):
    def __call__(
        self, base: Any, offset: Any, row_stride: Any, *words: str, num_groups: int = ...
    ) -> Any: ...

group_slot_load: _group_slot_load
"""Load one element for each group, a stride of elements apart, side by side."""

class _group_broadcast_load(LogicalOperation):
    def __call__(
        self, base: Any, offset: Any, row_stride: Any, *words: str, num_groups: int = ...
    ) -> Any: ...

group_broadcast_load: _group_broadcast_load
"""Load one element for each group, a stride of elements apart, into all lanes of the group."""

class _stride_load(LogicalOperation):
    def __call__(
        self, base: Any, offset: Any, block_stride: Any, repeat_stride: Any, mask: Any
    ) -> Any: ...

stride_load: _stride_load
"""Load blocks of 32 bytes that lie a stride of blocks apart; inactive lanes are 0."""

class _masked_load(LogicalOperation):
    def __call__(self, base: Any, offset: Any, mask: Any, passthru: Any) -> Any: ...

masked_load: _masked_load
"""Load the active lanes, each from its place; the others are those of another vector."""

class _expand_load(LogicalOperation):
    def __call__(self, base: Any, offset: Any, mask: Any, passthru: Any) -> Any: ...

expand_load: _expand_load
"""Load the active lanes from elements side by side; the others are those of another vector."""

class _vgather(LogicalOperation):
    def __call__(self, base: Any, index: Any, mask: Any, *words: str, pmode: str = ...) -> Any: ...

vgather: _vgather
"""Gather elements by indices without sign; an inactive lane makes no access, and is 0."""

class _vgatherb(LogicalOperation):
    def __call__(self, base: Any, index: Any, mask: Any, *words: str, pmode: str = ...) -> Any: ...

vgatherb: _vgatherb
"""Gather elements by bytes past the base; an inactive lane makes no access, and is 0."""

class _gather(LogicalOperation):
    def __call__(self, base: Any, index: Any, mask: Any, passthru: Any) -> Any: ...

gather: _gather
"""Gather elements by indices without sign; inactive lanes are those of another vector."""

class _vstore(LogicalOperation):
    def __call__(
        self,
        src: Any,
        base: Any,
        offset: Any,
        high: Any = ...,
        stride: Any = ...,
        mask: Any = ...,
        *words: str,
        group: int = ...,
        dist_mode: str = ...,
        pmode: str = ...,
    ) -> Any: ...

vstore: _vstore
"""Store the active lanes: side by side, in groups a stride of elements apart, or in blocks.

`dist_mode` "dintlv" stores the lanes of two vectors in turn."""

class _store(LogicalOperation):
    def __call__(self, src: Any, base: Any, offset: Any) -> Any: ...

store: _store
"""Store the lanes side by side."""

class _interleave_store(LogicalOperation):
    def __call__(self, src: Any, high: Any, base: Any, offset: Any) -> Any: ...

interleave_store: _interleave_store
"""Store the lanes of two vectors in turn."""

class _group_store(LogicalOperation):
    def __call__(
        self, src: Any, base: Any, offset: Any, row_stride: Any, *words: str, num_groups: int = ...
    ) -> Any: ...

group_store: _group_store
"""Store groups of lanes a stride of elements apart."""

class _masked_store(LogicalOperation):
    def __call__(self, src: Any, base: Any, offset: Any, mask: Any) -> Any: ...

masked_store: _masked_store
"""Store the active lanes, each in its place."""

class _compress_store(LogicalOperation):
    def __call__(self, src: Any, base: Any, offset: Any, mask: Any) -> Any: ...

compress_store: _compress_store
"""Store the active lanes side by side."""

class _stride_store(LogicalOperation):
    def __call__(
        self, src: Any, base: Any, offset: Any, block_stride: Any, repeat_stride: Any, mask: Any
    ) -> Any: ...

stride_store: _stride_store
"""Store active lanes in blocks of 32 bytes that lie a stride of blocks apart."""

class _vsstb(LogicalOperation):
    def __call__(
        self,
        src: Any,
        base: Any,
        offset: Any,
        block_stride: Any,
        mask: Any,
        *words: str,
        pmode: str = ...,
    ) -> Any: ...

vsstb: _vsstb
"""Store active lanes in blocks of 32 bytes that lie a stride of blocks apart."""

class _vscatter(LogicalOperation):
    def __call__(
        self, src: Any, base: Any, index: Any, mask: Any, *words: str, pmode: str = ...
    ) -> Any: ...

vscatter: _vscatter
"""Scatter active lanes by indices without sign."""

class _scatter(LogicalOperation):
    def __call__(self, src: Any, base: Any, index: Any, mask: Any) -> Any: ...

scatter: _scatter
"""Scatter active lanes by indices without sign."""

class _vcadd(LogicalOperation):
    def __call__(
        self,
        a: Any,
        mask: Any = ...,
        *words: str,
        group: int = ...,
        pmode: str = ...,
        reassoc: str = ...,
    ) -> Any: ...

vcadd: _vcadd
"""Add the active lanes of each group; the result has a lane for each."""

class _reduce_addf(LogicalOperation):
    def __call__(self, a: Any, mask: Any = ..., *words: str, reassoc: str = ...) -> Any: ...

reduce_addf: _reduce_addf
"""Add the active lanes of a vector of floats."""

class _group_reduce_addf(LogicalOperation):
    def __call__(
        self, a: Any, mask: Any = ..., *words: str, num_groups: int = ..., reassoc: str = ...
    ) -> Any: ...

group_reduce_addf: _group_reduce_addf
"""Add the active lanes of each group of floats; the result has a lane for each."""

class _reduce_addi(LogicalOperation):
    def __call__(self, a: Any, mask: Any = ..., *words: str, reassoc: str = ...) -> Any: ...

reduce_addi: _reduce_addi
"""Add the active lanes of a vector of integers."""

class _group_reduce_addi(LogicalOperation):
    def __call__(
        self, a: Any, mask: Any = ..., *words: str, num_groups: int = ..., reassoc: str = ...
    ) -> Any: ...

group_reduce_addi: _group_reduce_addi
"""Add the active lanes of each group of integers; the result has a lane for each."""

class _vcmax(LogicalOperation):
    def __call__(
        self, a: Any, mask: Any = ..., *words: str, group: int = ..., pmode: str = ...
    ) -> Any: ...

vcmax: _vcmax
"""Take the greatest active lane of each group; the result has a lane for each."""

class _reduce_maxf(LogicalOperation):
    def __call__(self, a: Any, mask: Any = ...) -> Any: ...

reduce_maxf: _reduce_maxf
"""Take the greatest active lane of a vector of floats."""

class _group_reduce_maxf(LogicalOperation):
    def __call__(self, a: Any, mask: Any = ..., *words: str, num_groups: int = ...) -> Any: ...

group_reduce_maxf: _group_reduce_maxf
"""Take the greatest active lane of each group of floats; the result has a lane for each."""

class _reduce_maxi(LogicalOperation):
    def __call__(self, a: Any, mask: Any = ...) -> Any: ...

reduce_maxi: _reduce_maxi
"""Take the greatest active lane of a vector of integers."""

class _group_reduce_maxi(LogicalOperation):
    def __call__(self, a: Any, mask: Any = ..., *words: str, num_groups: int = ...) -> Any: ...

group_reduce_maxi: _group_reduce_maxi
"""Take the greatest active lane of each group of integers; the result has a lane for each."""

class _vcmin(LogicalOperation):
    def __call__(
        self, a: Any, mask: Any = ..., *words: str, group: int = ..., pmode: str = ...
    ) -> Any: ...

vcmin: _vcmin
"""Take the least active lane of each group; the result has a lane for each."""

class _reduce_minf(LogicalOperation):
    def __call__(self, a: Any, mask: Any = ...) -> Any: ...

reduce_minf: _reduce_minf
"""Take the least active lane of a vector of floats."""

class _group_reduce_minf(LogicalOperation):
    def __call__(self, a: Any, mask: Any = ..., *words: str, num_groups: int = ...) -> Any: ...

group_reduce_minf: _group_reduce_minf
"""Take the least active lane of each group of floats; the result has a lane for each."""

class _reduce_mini(LogicalOperation):
    def __call__(self, a: Any, mask: Any = ...) -> Any: ...

reduce_mini: _reduce_mini
"""Take the least active lane of a vector of integers."""

class _group_reduce_mini(LogicalOperation):
    def __call__(self, a: Any, mask: Any = ..., *words: str, num_groups: int = ...) -> Any: ...

group_reduce_mini: _group_reduce_mini
"""Take the least active lane of each group of integers; the result has a lane for each."""

class _vdhist(LogicalOperation):
    def __call__(self, a: Any, values: Any, mask: Any) -> Any: ...

vdhist: _vdhist
"""Add to each count, of 256 or the first 128, how many active bytes have its number."""

class _vchist(LogicalOperation):
    def __call__(self, a: Any, values: Any, mask: Any) -> Any: ...

vchist: _vchist
"""Add to each count, of 256 or the first 128, how many active bytes are not above it."""

__all__ = [
    "vabs",
    "vneg",
    "vexp",
    "vln",
    "vsqrt",
    "vrec",
    "vrelu",
    "vadd",
    "vsub",
    "vmul",
    "vdiv",
    "vmax",
    "vmin",
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
    "addf",
    "addi",
    "subf",
    "subi",
    "mulf",
    "muli",
    "divf",
    "minf",
    "maxf",
    "mini",
    "maxi",
    "negf",
    "negi",
    "absf",
    "absi",
    "sqrt",
    "exp",
    "ln",
    "relu",
    "shli",
    "shrui",
    "shrsi",
    "fma",
    "vexpdif",
    "vand",
    "andi",
    "mask_and",
    "vor",
    "ori",
    "mask_or",
    "vxor",
    "xori",
    "mask_xor",
    "vnot",
    "not_",
    "mask_not",
    "vcmp",
    "vcmps",
    "cmpf",
    "cmpi",
    "vsel",
    "select",
    "vcvt",
    "extf",
    "truncf",
    "fptosi",
    "fptoui",
    "sitofp",
    "extsi",
    "extui",
    "trunci",
    "vbrc",
    "broadcast",
    "group_broadcast",
    "vci",
    "iota",
    "group_iota",
    "vinterpret_cast",
    "bitcast",
    "vintlv",
    "vdintlv",
    "vselr",
    "ensure_layout",
    "create_mask",
    "create_group_mask",
    "pset",
    "pge",
    "plt",
    "active_prefix_index",
    "compress",
    "vload",
    "load",
    "deinterleave_load",
    "group_load",
    "group_slot_load",
    "group_broadcast_load",
    "stride_load",
    "masked_load",
    "expand_load",
    "vgather",
    "vgatherb",
    "gather",
    "vstore",
    "store",
    "interleave_store",
    "group_store",
    "masked_store",
    "compress_store",
    "stride_store",
    "vsstb",
    "vscatter",
    "scatter",
    "vcadd",
    "reduce_addf",
    "group_reduce_addf",
    "reduce_addi",
    "group_reduce_addi",
    "vcmax",
    "reduce_maxf",
    "group_reduce_maxf",
    "reduce_maxi",
    "group_reduce_maxi",
    "vcmin",
    "reduce_minf",
    "group_reduce_minf",
    "reduce_mini",
    "group_reduce_mini",
    "vdhist",
    "vchist",
]
