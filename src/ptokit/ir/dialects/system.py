"""Queries about the place in the grid, and debugging aids."""

from __future__ import annotations

from ptokit.ir.dialects.definition import define

QUERIES = ("get_block_idx", "get_block_num", "get_subblock_idx", "get_subblock_num")

DEFINITIONS = [
    *(define(f"pto.{name}", "-> result:i64", "{}", pure=True) for name in QUERIES),
    define("pto.print", "scalar:num", "ins(@format, %scalar : T(scalar)) {}"),
    define("pto.trap", "", "{}"),
]
