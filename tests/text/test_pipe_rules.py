"""Every rule of FIFOs: a program that keeps it, a change that breaks it, and where that is told."""
# ruff: noqa: E501 - a table of changes is read in lines

from __future__ import annotations

import pytest

from ptokit.from_text import loads
from tests.text.pipe_programs import errors

VIEW = "!pto.tensor_view<16x16xf32>"
ACC = "!pto.tile_buf<acc, 16x16xf32, blayout=col_major, slayout=row_major, fractal=1024>"
HALF = "!pto.tile_buf<vec, 8x16xf32>"
MAT = "!pto.tile_buf<mat, 16x16xf32, blayout=col_major, slayout=row_major>"
FP = "!pto.tile_buf<scaling, 1x16xf32>"


def functions(cube: str, vector: str) -> str:
    def one(name: str, lines: str) -> str:
        return f"""
func.func private @{name}(%gm: !pto.ptr<f32>, %n: index, %k: f32, %w: f16)
    attributes {{pto.kernel_kind = #pto.kernel_kind<{name}>}} {{
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %lane = arith.constant 0 : i64
  %zero = arith.constant 0 : i32
  %slots = pto.make_tensor_view %gm, shape = [%c16, %c16], strides = [%c16, %c1] : {VIEW}
{lines}
  return
}}"""

    return one("cube", cube) + one("vector", vector)


RESERVE = "location = #pto.address_space<vec>, auto = true} -> i32"
# Tiles through both directions of one pipe.
TILES = functions(
    f"""  %far = pto.import_reserved_buffer {{name = "q", peer_func = @vector}} -> i32
  %near = pto.reserve_buffer {{name = "p", size = 4096,
      location = #pto.address_space<mat>, auto = true}} -> i32
  pto.aic_initialize_pipe {{id = 2, dir_mask = 3, slot_size = 1024}}
      (gm_slot_buffer = %gm : !pto.ptr<f32>, c2v_consumer_buf = %far : i32,
       v2c_consumer_buf = %near : i32)
  %acc = pto.alloc_tile : {ACC}
  pto.tpush_to_aiv(%acc : {ACC}) {{id = 2, split = 1}}
  %m = pto.tpop_from_aiv {{id = 2, split = 1}} -> {MAT}
  pto.tfree_from_aiv {{id = 2, split = 1}}""",
    f"""  %near = pto.reserve_buffer {{name = "q", size = 4096, {RESERVE}
  %far = pto.import_reserved_buffer {{name = "p", peer_func = @cube}} -> i32
  pto.aiv_initialize_pipe {{id = 2, dir_mask = 3, slot_size = 1024}}
      (gm_slot_buffer = %gm : !pto.ptr<f32>, c2v_consumer_buf = %near : i32,
       v2c_consumer_buf = %far : i32)
  %t = pto.tpop_from_aic {{id = 2, split = 1}} aiv_subblockid(%lane) -> {HALF}
  pto.tpush_to_aic(%t : {HALF}) {{id = 2, split = 1}} aiv_subblockid(%lane)
  pto.tfree_from_aic {{id = 2, split = 1}}""",
)
# Views of slots, one way.
VIEWS = functions(
    f"""  pto.aic_initialize_pipe {{dir_mask = 1, slot_size = 1024}} (gm_slot_tensor = %slots : {VIEW})
  %e = pto.talloc_to_aiv {{split = 0}} -> {VIEW}
  pto.tpush_to_aiv(%e : {VIEW}) {{split = 0}}""",
    f"""  pto.aiv_initialize_pipe {{dir_mask = 1, slot_size = 1024}} (gm_slot_tensor = %slots : {VIEW})
  %e = pto.tpop_from_aic {{split = 0}} -> {VIEW}
  pto.tfree_from_aic(%e : {VIEW}) {{split = 0}}""",
)
# An odd number of rows, backed by global memory.
ODD_ACC = ACC.replace("f32,", "f32, valid=15x16,")
ODD_HALF = "!pto.tile_buf<vec, 8x16xf32, valid=?x?>"
ODD = functions(
    f"""  %far = pto.import_reserved_buffer {{name = "q", peer_func = @vector}} -> i32
  pto.aic_initialize_pipe {{dir_mask = 1, slot_size = 1024}}
      (gm_slot_tensor = %slots : {VIEW}, c2v_consumer_buf = %far : i32)
  %acc = pto.alloc_tile : {ODD_ACC}
  pto.tpush_to_aiv(%acc : {ODD_ACC}) {{split = 3}}""",
    f"""  %near = pto.reserve_buffer {{name = "q", size = 8192, {RESERVE}
  pto.aiv_initialize_pipe {{dir_mask = 1, slot_size = 1024}}
      (gm_slot_tensor = %slots : {VIEW}, c2v_consumer_buf = %near : i32)
  %t = pto.tpop_from_aic(%n, %c16) {{split = 3}} -> {ODD_HALF}
  pto.tfree_from_aic {{split = 3}}""",
)
# Converted on the way, with one scale or with many.
EPILOGUE = "#pto.acc_push_epilogue<layout = nz2nd, quant = qf322f16_pre_scalar, relu = no_relu>"
KEYS = f"dir_mask = 1, slot_size = 512, nosplit = true, acc_push_epilogue = {EPILOGUE}"
POPPED = "!pto.tile_buf<vec, 16x16xf16>"
FIXED = functions(
    f"""  %far = pto.import_reserved_buffer {{name = "q", peer_func = @vector}} -> i32
  pto.aic_initialize_pipe {{{KEYS}}} (c2v_consumer_buf = %far : i32)
  %acc = pto.alloc_tile : {ACC}
  %scales = pto.alloc_tile : {FP}
  pto.set_quant_scalar(%k : f32) {{id = 0}}
  pto.tpush_to_aiv(%acc : {ACC}) {{split = 0}}""",
    f"""  %near = pto.reserve_buffer {{name = "q", size = 4096, {RESERVE}
  pto.aiv_initialize_pipe {{{KEYS}}} (c2v_consumer_buf = %near : i32)
  %t = pto.tpop_from_aic {{split = 0}} -> {POPPED}
  %u = pto.tpop_from_aic {{split = 0}} -> {POPPED}
  pto.tfree_from_aic {{split = 0}}
  pto.tfree_from_aic {{split = 0}}""",
)
# With handles.
LOW = functions(
    f"""  %far = pto.import_reserved_buffer {{name = "q", peer_func = @vector}} -> i32
  %p = pto.initialize_l2l_pipe {{dir_mask = 1, slot_size = 1024, slot_num = 2}}
      (%far : i32) -> !pto.pipe
  %acc = pto.alloc_tile : {ACC}
  pto.tpush(%acc, %p : {ACC}, !pto.pipe) {{split = 1}}""",
    f"""  %near = pto.reserve_buffer {{name = "q", size = 4096, {RESERVE}
  %p = pto.initialize_l2l_pipe {{dir_mask = 1, slot_size = 1024, slot_num = 2}}
      (%near : i32) -> !pto.pipe
  %t = pto.declare_tile -> {HALF}
  pto.tpop(%t, %p : {HALF}, !pto.pipe) {{split = 1}}
  pto.tfree(%p : !pto.pipe) {{split = 1}}""",
)
LOW_VIEWS = functions(
    f"""  %p = pto.initialize_l2g2l_pipe {{dir_mask = 1, slot_size = 1024, slot_num = 2, flag_base = 0}}
      (%slots : {VIEW}) -> !pto.pipe
  %e = pto.declare_global -> {VIEW}
  pto.talloc(%e, %p : {VIEW}, !pto.pipe) {{split = 0}}
  pto.tpush(%e, %p : {VIEW}, !pto.pipe) {{split = 0}}""",
    "",
)

PROGRAMS = {
    "tiles": (TILES, "a2a3 a5"),
    "views": (VIEWS, "a2a3 a5"),
    "odd": (ODD, "a2a3 a5"),
    "fixed": (FIXED, "a5"),
    "low": (LOW, "a5"),
    "low views": (LOW_VIEWS, "a2a3 a5"),
}


@pytest.mark.parametrize("target", ["a2a3", "a5"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_that_keep_the_rules(name: str, target: str) -> None:
    text, targets = PROGRAMS[name]
    made = loads(text)
    assert str(loads(str(made))) == str(made)
    if target in targets.split():
        assert not errors(made, target)


def test_the_tile_of_a_pop_may_be_named_when_it_is_freed() -> None:
    """It says nothing more, in the generic form neither."""
    bare = "pto.tfree(%p : !pto.pipe) {split = 1}"
    named = f"pto.tfree(%t, %p : {HALF}, !pto.pipe) {{split = 1}}"
    generic = f'"pto.tfree"(%t, %p) {{split = 1 : i8}} : ({HALF}, !pto.pipe) -> ()'
    assert bare in LOW
    assert str(loads(LOW.replace(bare, named))) == str(loads(LOW))
    assert str(loads(LOW.replace(bare, generic))) == str(loads(LOW))


# program, target, what is written instead of what, the code, a part of the message, at which line
BROKEN: list[tuple[str, str, dict[str, str], str, str, str]] = [
    # sides, ids, directions
    ("tiles", "a5", {"kernel_kind<cube>": "kernel_kind<vector>"}, "kernel-kind", "cube kernel", "tpush"),
    ("views", "a5", {"{split = 0}\n": "{id = 3, split = 0}\n"}, "pipe-id", "no pipe 3", "tpush_to"),
    ("tiles", "a5", {"{id = 2": "{id = -1"}, "pipe-id", "non-negative", "tpush_to"),
    (
        "views",
        "a5",
        {"  %e = pto.talloc": f"  pto.aic_initialize_pipe {{dir_mask = 1, slot_size = 1024}} "
         f"(gm_slot_tensor = %slots : {VIEW})\n  %e = pto.talloc"},
        "pipe-id", "unique", "aic_initialize",
    ),
    ("views", "a5", {"dir_mask = 1": "dir_mask = 2"}, "pipe-direction", "this way", "tpush_to"),
    ("views", "a5", {"dir_mask = 1": "dir_mask = 4"}, "pipe-direction", "1, 2 or 3", "initialize"),
    # slots
    ("views", "a5", {"slot_size": "slot_num = 0, slot_size"}, "pipe-slots", "slot_num is greater than 0", "init"),
    ("tiles", "a2a3", {"slot_size": "local_slot_num = 5, slot_size"}, "pipe-slots", "slot_num (4)", "init"),
    ("tiles", "a2a3", {"slot_size": "local_slot_num = 0, slot_size"}, "pipe-slots", "greater than 0", "init"),
    ("tiles", "a5", {"slot_size": "local_slot_num = 2, slot_size"}, "pipe-slots", "no meaning on a5", "init"),
    ("views", "a2a3", {"slot_size": "local_slot_num = 2, slot_size"}, "pipe-slots", "global memory alone", "init"),
    # memory
    ("tiles", "a5", {"c2v_consumer_buf = %far : i32,\n       ": ""}, "pipe-address", "a c2v_consumer_buf", "aic_init"),
    ("tiles", "a2a3", {"gm_slot_buffer = %gm : !pto.ptr<f32>, ": ""}, "pipe-address", "global memory", "init"),
    ("tiles", "a5", {"c2v_consumer_buf = %far": "c2v_consumer_buf = %zero", "v2c_consumer_buf = %near": "v2c_consumer_buf = %zero"}, "pipe-peer", "peer init pair", "aiv_init"),
    ("views", "a5", {"(gm_slot": "(gm_slot_buffer = %gm : !pto.ptr<f32>, gm_slot"}, "pipe-address", "not both", "init"),
    ("odd", "a5", {"dir_mask = 1": "dir_mask = 3"}, "pipe-address", "one direction", "init"),
    # how entries are divided
    ("tiles", "a5", {"split = 1": "split = 5"}, "pipe-split", "0, 1, 2, 3 or 4", "tpush_to"),
    ("tiles", "a5", {"free_from_aic {id = 2, split = 1}": "free_from_aic {id = 2, split = 5}"}, "pipe-split", "3 or 4", "tfree_from"),
    ("tiles", "a2a3", {"split = 1": "split = 3"}, "pipe-split", "odd entries", "tpush_to"),
    ("views", "a5", {"split = 0": "split = 3"}, "pipe-split", "odd entries", "talloc"),
    ("odd", "a5", {"valid=15x16": "valid=14x16"}, "pipe-split", "an odd number of valid rows", "tpush_to"),
    ("odd", "a5", {"split = 3": "split = 1"}, "pipe-split", "an even number of valid rows", "tpush_to"),
    ("odd", "a5", {"tpop_from_aic(%n, %c16)": "tpop_from_aic"}, "pipe-split", "says its valid sizes", "tpop"),
    ("tiles", "a5", {"{id = 2, split = 1}\n  %m": "{id = 2, split = 0}\n  %m"}, "pipe-split", "conflicting", "pto.t"),
    ("tiles", "a5", {"slot_size": "nosplit = true, slot_size"}, "pipe-split", "'nosplit = true' conflicts", "init"),
    ("views", "a5", {"slot_size": "nosplit = false, slot_size"}, "pipe-split", "'nosplit = false' conflicts", "init"),
    # the part of a core
    ("tiles", "a5", {"split = 1": "split = 0"}, "pipe-lane", "a divided entry", "tpop_from_aic"),
    ("views", "a5", {"tpop_from_aic {split = 0}": "tpop_from_aic {split = 1} aiv_subblockid(%lane)"}, "pipe-lane", "not of views", "tpop"),
    ("tiles", "a5", {"%m = pto.tpop_from_aiv {id = 2, split = 1}": "%m = pto.tpop_from_aiv {id = 2, split = 1} aiv_subblockid(%lane)"}, "pipe-lane", "of the vector cores", "tpop_from_aiv"),
    # valid sizes
    ("tiles", "a5", {"tpop_from_aic {": "tpop_from_aic(%n, %c16) {"}, "pop-valid", "dynamic validShape", "tpop"),
    ("views", "a5", {"tpop_from_aic {": "tpop_from_aic(%n, %c16) {"}, "pop-valid", "no valid sizes", "tpop"),
    # entries and slots
    ("views", "a5", {f"%e : {VIEW}": "%e : !pto.tensor_view<16x16xf16>", f"}} -> {VIEW}": "} -> !pto.tensor_view<16x16xf16>"}, "pipe-entry", "element type", "talloc"),
    ("views", "a5", {f"%e : {VIEW}": "%e : !pto.tensor_view<256xf32>", f"}} -> {VIEW}": "} -> !pto.tensor_view<256xf32>"}, "pipe-entry", "rank", "talloc"),
    ("views", "a5", {f"%e : {VIEW}": "%e : !pto.tensor_view<16x8xf32>", f"}} -> {VIEW}": "} -> !pto.tensor_view<16x8xf32>"}, "pipe-entry", "dimensions", "talloc"),
    ("views", "a5", {"slot_size = 1024": "slot_size = 512"}, "pipe-entry", "bytes of an entry", "init"),
    ("views", "a5", {"split = 0": "split = 1", "slot_size = 1024": "slot_size = 4096"}, "pipe-entry", "twice", "init"),
    ("tiles", "a5", {f"%m = pto.tpop_from_aiv {{id = 2, split = 1}} -> {MAT}": f"%m = pto.tpop_from_aiv {{id = 2, split = 1}} -> {VIEW}"}, "pipe-entry", "no gm_slot_tensor", "tpop"),
    ("views", "a5", {f"%e = pto.tpop_from_aic {{split = 0}} -> {VIEW}": f"%e = pto.tpop_from_aic {{split = 0}} -> {POPPED}", f"free_from_aic(%e : {VIEW})": "free_from_aic"}, "pipe-entry", "views of its slots", "tpop"),
    # both ends
    ("tiles", "a5", {"aiv_initialize_pipe {id = 2, dir_mask = 3, slot_size = 1024}": "aiv_initialize_pipe {id = 2, dir_mask = 3, slot_size = 2048}"}, "pipe-peer", "agree", "aiv_init"),
    ("odd", "a5", {"aiv_initialize_pipe {dir_mask = 1, slot_size = 1024}": "aiv_initialize_pipe {dir_mask = 1, slot_num = 2, slot_size = 1024}"}, "pipe-peer", "agree", "aiv_init"),
    ("low", "a5", {"%p = pto.initialize_l2l_pipe {dir_mask = 1, slot_size = 1024, slot_num = 2}\n      (%near": "%p = pto.initialize_l2l_pipe {dir_mask = 2, slot_size = 1024, slot_num = 2}\n      (%near"}, "pipe-peer", "peer init pair", "l2l"),
    ("tiles", "a5", {"peer_func = @vector": "peer_func = @nobody"}, "peer-function", "no function @nobody", "import"),
    ("tiles", "a5", {'{name = "q", peer': '{name = "x", peer'}, "peer-buffer", "no buffer", "import"),
    ("tiles", "a5", {"  pto.aiv_init": '  %again = pto.import_reserved_buffer {name = "p", peer_func = @cube} -> i32\n  pto.aiv_init'}, "peer-buffer", "imported twice", "import"),
    ("tiles", "a5", {"  pto.aiv_init": f'  %again = pto.reserve_buffer {{name = "q", size = 64, {RESERVE}\n  pto.aiv_init'}, "peer-buffer", "reserved twice", "reserve"),
    ("tiles", "a5", {"size = 4096": "size = 0"}, "reserved-base", "positive size", "reserve"),
    ("tiles", "a5", {"address_space<vec>": "address_space<acc>"}, "reserved-base", "vec", "reserve"),
    # flags
    ("low", "a5", {"slot_num = 2}": "slot_num = 2, flag_base = 15}"}, "pipe-flags", "16 hardware", "l2l"),
    ("low", "a5", {"slot_num = 2}": "slot_num = 2, flag_base = -2}"}, "pipe-flags", "16 hardware", "l2l"),
    ("low", "a5", {"(%near : i32)": "(%zero : i32)", "(%far : i32)": "(%zero : i32)"}, "pipe-address", "requires local_addr", "l2l"),
    ("low", "a5", {"split = 1": "split = 3"}, "pipe-split", "odd entries", "tpush"),
    ("low views", "a5", {"%e = pto.declare_global -> !pto.tensor_view<16x16xf32>": "%e = pto.declare_global -> !pto.tensor_view<16x8xf32>", f"%e, %p : {VIEW}": "%e, %p : !pto.tensor_view<16x8xf32>"}, "pipe-entry", "dimensions", "talloc"),
    ("low views", "a5", {"slot_size = 1024": "slot_size = 512"}, "pipe-entry", "bytes of an entry", "talloc"),
    ("low views", "a5", {"flag_base = 0}": "flag_base = 0, local_slot_num = 2}"}, "pipe-slots", "without local_addr", "l2g2l"),
    # conversions
    ("fixed", "a5", {"dir_mask = 1": "dir_mask = 2", "c2v_consumer_buf": "v2c_consumer_buf"}, "pipe-epilogue", "dir_mask = 1", "init"),
    ("fixed", "a5", {"nosplit = true, ": ""}, "pipe-epilogue", "nosplit = true", "init"),
    ("fixed", "a5", {"split = 0": "split = 1"}, "pipe-epilogue", "split = 0", "tpush"),
    ("fixed", "a5", {"= %near": "= %zero"}, "pipe-epilogue", "reserve_buffer or", "aiv_init"),
    ("fixed", "a5", {'%near = pto.reserve_buffer {name = "q", size = 4096, ' + RESERVE: '%near = pto.import_reserved_buffer {name = "q", peer_func = @vector} -> i32'}, "pipe-epilogue", "consumer reserves", "aiv_init"),
    ("fixed", "a5", {"= %far": "= %zero"}, "pipe-epilogue", "same buffer", "aiv_init"),
    ("fixed", "a5", {"aiv_initialize_pipe {dir_mask = 1, slot_size = 512, nosplit = true, acc_push_epilogue = #pto.acc_push_epilogue<layout = nz2nd": "aiv_initialize_pipe {dir_mask = 1, slot_size = 512, nosplit = true, acc_push_epilogue = #pto.acc_push_epilogue<layout = nz2dn"}, "pipe-epilogue", "both ends", "init"),
    ("fixed", "a5", {f"aiv_initialize_pipe {{{KEYS}}}": "aiv_initialize_pipe {dir_mask = 1, slot_size = 512, nosplit = true}"}, "pipe-epilogue", "both ends", "aic_init"),
    ("fixed", "a5", {"  %t = pto.tpop_from_aic {split = 0} -> !pto.tile_buf<vec, 16x16xf16>\n  %u = pto.tpop_from_aic {split = 0} -> !pto.tile_buf<vec, 16x16xf16>\n": ""}, "pipe-epilogue", "is popped", "aiv_init"),
    ("fixed", "a5", {"%u = pto.tpop_from_aic {split = 0} -> !pto.tile_buf<vec, 16x16xf16>": "%u = pto.tpop_from_aic {split = 0} -> !pto.tile_buf<vec, 8x16xf16>"}, "pipe-epilogue", "one type", "aiv_init"),
    ("fixed", "a5", {"16x16xf16": "16x16xbf16"}, "pipe-epilogue", "popped element type", "aiv_init"),
    ("fixed", "a5", {"qf322f16_pre_scalar": "qf322b8_pre_scalar", "16x16xf16": "16x32xi8", "16x16xf32, blayout": "16x32xf32, blayout"}, "pipe-epilogue", "popped element type", "aiv_init"),
    ("fixed", "a5", {"16x16xf32, blayout": "16x16xi32, blayout"}, "pipe-epilogue", "element type that the quant mode", "tpush"),
    ("fixed", "a5", {POPPED: POPPED.replace(">", ", blayout=col_major>")}, "pipe-epilogue", "arranged", "aiv_init"),
    ("fixed", "a5", {"slot_size = 512": "slot_size = 256"}, "pipe-epilogue", "hold the entry", "aiv_init"),
    ("fixed", "a5", {"relu = no_relu": "relu = pwl"}, "pipe-epilogue", "that there are", "init"),
    ("fixed", "a5", {"  pto.set_quant_scalar(%k : f32) {id = 0}\n": ""}, "pipe-epilogue", "set_quant_scalar with id = 0", "tpush"),
    ("fixed", "a5", {"  pto.set_quant_scalar(%k : f32) {id = 0}\n": "", "qf322f16_pre_scalar": "deqf16_vec", "16x16xf32, blayout": "16x16xi32, blayout"}, "pipe-epilogue", "set_quant_vector with id = 0", "tpush"),
    ("fixed", "a2a3", {"qf322f16_pre_scalar": "qf322fp8_pre_scalar"}, "pipe-epilogue", "A5 only", "init"),
    # scales
    ("fixed", "a5", {"{id = 0}": "{id = 4}"}, "pipe-scales", "pipe 4", "set_quant"),
    ("fixed", "a5", {"pto.set_quant_scalar(%k : f32)": f"pto.set_quant_vector(%scales : {FP})"}, "pipe-scales", "such scales", "set_quant"),
    ("fixed", "a5", {"set_quant_scalar(%k : f32)": "set_quant_scalar(%w : f16)"}, "pipe-scales", "an f32", "set_quant"),
    ("fixed", "a5", {"qf322f16_pre_scalar": "deqf16_vec", "16x16xf32, blayout": "16x16xi32, blayout", "pto.set_quant_scalar(%k : f32)": f"pto.set_quant_vector(%acc : {ACC.replace('f32', 'i32')})"}, "pipe-scales", "loc=scaling", "set_quant"),
    ("fixed", "a5", {"qf322f16_pre_scalar": "deqf16_vec", "16x16xf32, blayout": "16x16xi32, blayout", "pto.set_quant_scalar(%k : f32)": "pto.set_quant_vector(%scales : !pto.tile_buf<scaling, 1x16xui64>)", FP: "!pto.tile_buf<scaling, 1x16xui64>"}, "pipe-scales", "f16, bf16 or f32", "set_quant"),
    ("fixed", "a2a3", {"qf322f16_pre_scalar": "deqf16_vec", "16x16xf32, blayout": "16x16xi32, blayout", "pto.set_quant_scalar(%k : f32)": f"pto.set_quant_vector(%scales : {FP})"}, "pipe-scales", "packed i64", "set_quant"),
    # keys
    *(
        ("fixed", "a5", {"(%acc : " + ACC + ") {split = 0}": "(%acc : " + ACC + ") {split = 0} {" + key + " = 1 : i32}"}, "pipe-key", "fix pipe", "tpush")
        for key in ("stPhase", "atomicType", "subBlockId", "clipReluMode", "isChannelSplit")
    ),
    ("fixed", "a5", {"{id = 0}": "{id = 0} {atomic_type = 1 : i32}"}, "pipe-key", "fix pipe", "set_quant"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "target", "changes", "code", "message", "line"),
    BROKEN,
    ids=[f"{n}-{code}-{m.replace(' ', '_')}" for n, _, _, code, m, _ in BROKEN],
)
def test_rules(
    name: str, target: str, changes: dict[str, str], code: str, message: str, line: str
) -> None:
    text = PROGRAMS[name][0]
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    found = [d for d in loads(text).check(target) if d.severity == "error" and d.code == code]
    told = [d for d in found if message in d.message]
    assert told, [(d.code, d.message) for d in found]
    assert any(line in d.message.partition(":")[0] for d in told)


def test_a_function_has_sixteen_flags() -> None:
    def pipes(count: int) -> str:
        lines = (
            f"  pto.aic_initialize_pipe {{id = {n}, dir_mask = 3, slot_size = 1024}} "
            f"(gm_slot_tensor = %slots : {VIEW})"
            for n in range(count)
        )
        return functions("\n".join(lines), "")

    assert not errors(loads(pipes(4)), "a5")
    assert errors(loads(pipes(5)), "a5") == ["pipe-flags"]


def test_flags_do_not_depend_on_the_ids_of_an_end() -> None:
    """Two ends of a pipe with other ids find the same flags, apart from those of other pipes."""
    text = TILES.replace("aiv_initialize_pipe {id = 2", "aiv_initialize_pipe {id = 7")
    at = text.index("func.func private @vector")
    text = text[:at] + text[at:].replace("{id = 2, split", "{id = 7, split")
    slots = f"(gm_slot_tensor = %slots : {VIEW})"
    more = f"  pto.aic_initialize_pipe {{id = 1, dir_mask = 1, slot_size = 1024}} {slots}\n"
    text = text.replace(
        "  pto.aic_initialize_pipe {id = 2", f"{more}  pto.aic_initialize_pipe {{id = 2"
    )
    made = loads(text)
    assert not errors(made, "a5")
    code = made.cpp("a5")
    assert code.count("TPipe<2, Direction::DIR_BOTH, 1024, 4") == 2
    assert code.count("TPipe<0, Direction::DIR_C2V_GM, 1024, 8") == 1
