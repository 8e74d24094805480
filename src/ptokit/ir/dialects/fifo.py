"""Pipes between the cube and the vector cores."""

from __future__ import annotations

from ptokit.ir.dialects.definition import define, definitions_in
from ptokit.isa.pipes import TALLOC, TFREE, TPOP, TPUSH

_PIPE = "id:i32 dir_mask:i8 slot_size:i32 slot_num:i32 local_slot_num:i32 flag_base:i32"
_SPLIT = "id:i32 split:i8"
_PEERS = {"aiv": "cube", "aic": "vector"}  # who talks to whom
_SIDE = (
    "{id?, dir_mask, slot_size, slot_num?, local_slot_num?, nosplit?, acc_push_epilogue?} "
    "(N(gm_slot_buffer, gm_slot_tensor, c2v_consumer_buf, v2c_consumer_buf)) {}"
)
_ENDS = "gm_slot_buffer?:gm gm_slot_tensor?:view c2v_consumer_buf?:i32 v2c_consumer_buf?:i32"
# Which vector core a cube core means: understood, and refused.
_OURS = {"aiv": "subBlockId", "aic": ""}
_LANE, _SUB = "subBlockId?:i64", "[?aiv_subblockid(%subBlockId)?]"
_KEYS = "{id?, split}"

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
    "gm_addr:any local_addr?:any peer_local_addr?:any -> pipe:pipe",
    "{dir_mask, slot_size, slot_num, local_slot_num?, flag_base?, nosplit?, unit_flag?} "
    "(%gm_addr : T(gm_addr)[?, %local_addr : T(local_addr)?]"
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
DECLARE_GLOBAL = define("pto.declare_global", "-> entry:view", "{} -> T(entry)")
OPENINGS = (AIC_PIPE, AIV_PIPE, GM_PIPE, DIRECT_PIPE)
# What a front end writes at the ends of its pipes, and the instruction that each is.
_FORMS = (
    ("talloc_to_", "-> entry:view", f"{_KEYS} {{}} -> T(entry)", TALLOC),
    ("tpush_to_", f"entry:data {_LANE}", f"(%entry : T(entry)) {_KEYS} {_SUB} {{}}", TPUSH),
    (
        "tpop_from_",
        f"valid_row?:index valid_col?:index {_LANE} -> entry:data",
        f"[?(%valid_row, %valid_col)?] {_KEYS} {_SUB} {{}} -> T(entry)",
        TPOP,
    ),
    ("tfree_from_", "entry?:data", f"[?(%entry : T(entry))?] {_KEYS} {{}}", TFREE),
)
TRANSFERS = {
    define(
        f"pto.{name}{peer}", signature, syntax, _SPLIT, core=_PEERS[peer], ours=_OURS[peer]
    ): insn
    for name, signature, syntax, insn in _FORMS
    for peer in (("aiv", "aic") if insn.end == "producer" else ("aic", "aiv"))
}
_TRANSFERS = tuple(TRANSFERS)

DEFINITIONS = definitions_in(globals())
