"""Queries about the place in the grid, and debugging aids."""

from __future__ import annotations

from ptokit.ir.dialects.definition import define, definitions_in

BLOCK_IDX, BLOCK_NUM, SUBBLOCK_IDX, SUBBLOCK_NUM = QUERIES = tuple(
    define(f"pto.get_{name}", "-> result:i64", "{}", pure=True)
    for name in ("block_idx", "block_num", "subblock_idx", "subblock_num")
)
PRINT = define("pto.print", "scalar:num", "ins(@format, %scalar : T(scalar)) {}")
TRAP = define("pto.trap", "", "{}")


DEFINITIONS = definitions_in(globals())
