"""Pipes between the cube and the vector cores."""

from __future__ import annotations

from ptokit.ir.dialects.definition import define, definitions_in
from ptokit.isa.pipes import TFREE, TPOP, TPUSH

_PIPE = "id:i32 dir_mask:i8 slot_size:i32 slot_num:i32 local_slot_num:i32 flag_base:i32"
_SPLIT = "id:i32 split:i8"
_PEERS = {"aiv": "cube", "aic": "vector"}  # who talks to whom
_SIDE = (
    "{id?, dir_mask, slot_size, slot_num?, local_slot_num?, nosplit?} "
    "(N(gm_slot_buffer, c2v_consumer_buf, v2c_consumer_buf)) {}"
)
_ENDS = "gm_slot_buffer?:gm c2v_consumer_buf?:i32 v2c_consumer_buf?:i32"
_SIZES = "valid_row?:index valid_col?:index"
_POP = "[?(%valid_row, %valid_col)?] {id?, split} {} -> T(tile)"

# ---- buffers shared with the peer function
RESERVE = define(
    "pto.reserve_buffer",
    "-> addr:i32",
    "{name, size, location, auto:autoAlloc, base?} {} -> T(addr)",
    "size:i32 location:address_space base:i32",
)
IMPORT = define("pto.import_reserved_buffer", "-> addr:i32", "{name, peer_func} {} -> T(addr)")
# ---- the pipes a front end writes
AIC_PIPE = define("pto.aic_initialize_pipe", _ENDS, _SIDE, _PIPE, core="cube")
AIV_PIPE = define("pto.aiv_initialize_pipe", _ENDS, _SIDE, _PIPE, core="vector")
# ---- the pipes lowering makes of them
GM_PIPE = define(
    "pto.initialize_l2g2l_pipe",
    "gm_addr:any local_addr:any peer_local_addr?:any -> pipe:pipe",
    "{dir_mask, slot_size, slot_num, local_slot_num?, flag_base?, nosplit?, unit_flag?} "
    "(%gm_addr : T(gm_addr), %local_addr : T(local_addr)"
    "[?, %peer_local_addr : T(peer_local_addr)?]) {} -> T(pipe)",
    _PIPE,
)
DIRECT_PIPE = define(
    "pto.initialize_l2l_pipe",
    "local_addr:any peer_local_addr?:any -> pipe:pipe",
    "{dir_mask, slot_size, slot_num, flag_base?, nosplit?, unit_flag?} "
    "(%local_addr : T(local_addr)[?, %peer_local_addr : T(peer_local_addr)?]) {} -> T(pipe)",
    _PIPE,
)
OPENINGS = (AIC_PIPE, AIV_PIPE, GM_PIPE, DIRECT_PIPE)
TRANSFERS = tuple(
    define(f"pto.{name}{peer}", signature, syntax, _SPLIT, insn=insn, core=_PEERS[peer])
    for name, ends, insn, signature, syntax in (
        ("tpush_to_", ("aiv", "aic"), TPUSH, "tile:data", "(%tile : T(tile)) {id?, split} {}"),
        ("tpop_from_", ("aic", "aiv"), TPOP, f"{_SIZES} -> tile:data", _POP),
        ("tfree_from_", ("aic", "aiv"), TFREE, "", "{id?, split} {}"),
    )
    for peer in ends
)

DEFINITIONS = definitions_in(globals())
