"""Outcomes that the specification states of rules which no link leads to, and what became of each.

`otherwise` says what happens where a rule is broken. A rule of the table that stands for one of
them is found by `spec_links.py`; the others are listed here by what they say: under the rules that
tell the outcome, or - without a rule - because every call does it, or because it is not modelled.
"""

from __future__ import annotations

FILES = frozenset({"elementwise", "tile_scalar", "reduce", "expand", "partial"})

# What the statement says -> the rules of the table that tell its outcome.
BY_RULES: dict[str, str] = {
    r"1- or 2-byte src: src\.validRow <= 32768": "index-range",
    r"^1-byte data: valid columns <= 256": "byte-columns",
    r"src0\.RowStride == src1\.RowStride required": "same-stride",
    r"All three element types are equal": "same-dtype",
    r"mask row stride is taken as MaskTile\.RowStride BYTES": "mask-bytes",
    r"The type of the mask tile is free": "mask-bytes",
    r"No run-time shape check: caller guarantees src1": "src1-covers mask-rows",
    r"Overload 2 \(scalar / tile\)": "separate",
    r"dst is filled with 1 before the division": "separate",
    r"a 16-bit index output must be able to hold": "index-range",
    r"a DN source must have Cols == 1": "single-column",
    r"valid shape == dst valid shape \(debug\)|^src valid rows == dst valid rows and src valid": (
        "PA-0017 PA-0020 PA-0024 PA-0025 PA-0026 PA-0027 PA-0049 PA-0050 PA-0055 PA-0056 PA-0060 "
        "PA-0061 PA-0062 PA-0063"
    ),
    r"bf16 -> fp4: valid columns must be even": "even-columns",
    r"dst row bytes (>=|as TCMP)": "mask-store",
    r"f16 values with 32-bit indices: dst\.validCol <= 64": "index-columns",
    r"f32/f16 with C > EPR: tmp\.Rows": "tmp-pitch",
    r"four-operand form: the expanded operand is DN": "per-row-source",
    r"i32 scalars must satisfy": "scalar-range",
    r"index form with 2-byte src: src\.validRow <= 2049": "index-precision",
    r"mode 1 with dst\.validRow >= 256": "row-groups",
    r"^T\w+\.\w+\.2: one source's valid shape equals dst's": "PA-0051 PA-0052 PA-0053 PA-0054",
    r"src\.validCol >= dst\.validCol: the code compares": "same-columns",
    r"src\.validRow == dst\.validRow$": "same-rows",
    r"three-operand form, mode 1: UB bytes": "ub-window",
    r"tmp row bytes >= packed mask row size": "tmp-width",
    r"the full source's pitch must equal dst\.validCol": "contiguous",
    r"\(8-bit strides\)": "repeat-stride",
    r"\(8-bit repeat count\)": "repeat-count",
    r"tmp has at least one valid row": "tmp-columns",
    r"sign-correction mask of the implementation covers": "correction-lanes",
}

# What the statement says -> why no rule is needed: what happens is what every call does.
ALWAYS: dict[str, str] = {
    r"one vector \(64 elements\) per row": "Kirin has no 64-bit integers",
    r"Bits of a mask row from C up": "test_a2a3_compares_what_lies_behind_a_row",
    r"^Delegates to the scalar-divided-by-tile|is exactly TMULS": "a pointer, no rule",
    r"Shift counts of 8/16/32-bit types": "test_counts_past_the_width_shift_every_bit_out",
    r"i32 operands must satisfy|i32: \|values\|": "the meaning is that of the f32 steps",
    r"^tmp bytes|tmp holds|tmp: Vec scratch": "test_of_scratch_only_the_address_counts",
    r"dst row bytes is a multiple of 4": "rows of every mask tile are multiples of 32 bytes",
    r"dst\.validCol is not checked and not used": "only column 0 is written",
    r"exactly one source has the dst valid shape": "test_a_row_major_row_operand_is_packed_blocks",
    r"expanded operand is readable up to the next": "no dst row uses the elements behind it",
    r"tmp\.dtype == src\.dtype and tmp\.Loc == Vec": "later targets do not look at tmp",
    r"u16 values must be < 0x7C00": "test_a2a3_compares_unsigned_as_floats",
    r"16-bit indices are widened in place": "the indices come out right",
}

# What the statement says -> why what happens is not modelled.
NOT_MODELLED: dict[str, str] = {
    r"ValidRow <= Rows and ValidCol <= Cols": (
        "valid sizes beyond the tile are refused where they are set, whatever uses them"
    ),
    r"dst\.validRow \* ceil\(dst\.validCol/EPR\) <= 65535": "no tile with so many steps fits UB",
    r"src element size is 2 or 4 bytes": "undefined, and an error (element-size)",
}
