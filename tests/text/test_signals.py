"""Signals between cores and barriers of all of them, as files of today write them."""

from __future__ import annotations

import numpy as np
import pytest

from ptokit.base.diagnostics import PtoError
from ptokit.from_text import loads

ACC = "!pto.tile_buf<acc, 16x16xf32, blayout=col_major, slayout=row_major, fractal=1024>"
MAT = "!pto.tile_buf<mat, 16x16xf32, blayout=col_major, slayout=row_major>"
LEFT = "!pto.tile_buf<left, 16x16xf32, blayout=<left>, slayout=row_major>"
RIGHT = "!pto.tile_buf<right, 16x16xf32, slayout=col_major>"
HALF = "!pto.tile_buf<vec, 8x16xf32>"
# The cube core writes x x, the vector cores add one to what they find: each to its half.
TEXT = f"""
module attributes {{pto.target_arch = "<arch>"}} {{
  func.func @both(%x: !pto.ptr<f32>, %y: !pto.ptr<f32>, %z: !pto.ptr<f32>)
      attributes {{pto.entry}} {{
    func.call @cube(%x, %y) : (!pto.ptr<f32>, !pto.ptr<f32>) -> ()
    func.call @vector(%y, %z) : (!pto.ptr<f32>, !pto.ptr<f32>) -> ()
    return
  }}
  func.func private @cube(%x: !pto.ptr<f32>, %y: !pto.ptr<f32>)
      attributes {{pto.kernel_kind = #pto.kernel_kind<cube>}} {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %r = arith.constant 16 : index
    %v = pto.make_tensor_view %x, shape = [%r, %r], strides = [%r, %c1]
        : !pto.tensor_view<16x16xf32>
    %w = pto.make_tensor_view %y, shape = [%r, %r], strides = [%r, %c1]
        : !pto.tensor_view<16x16xf32>
    %p = pto.partition_view %v, offsets = [%c0, %c0], sizes = [%r, %r] : !pto.tensor_view<16x16xf32>
    %q = pto.partition_view %w, offsets = [%c0, %c0], sizes = [%r, %r] : !pto.tensor_view<16x16xf32>
    %m = pto.alloc_tile : {MAT}
    %n = pto.alloc_tile : {MAT}
    %l = pto.alloc_tile : {LEFT}
    %rt = pto.alloc_tile : {RIGHT}
    %acc = pto.alloc_tile : {ACC}
    pto.tload ins(%p : !pto.partition_tensor_view<16x16xf32>) outs(%m : {MAT})
    pto.tload ins(%p : !pto.partition_tensor_view<16x16xf32>) outs(%n : {MAT})
    pto.tmov ins(%m : {MAT}) outs(%l : {LEFT})
    pto.tmov ins(%n : {MAT}) outs(%rt : {RIGHT})
    pto.tmatmul ins(%l, %rt : {LEFT}, {RIGHT}) outs(%acc : {ACC})
    pto.tstore ins(%acc : {ACC}) outs(%q : !pto.partition_tensor_view<16x16xf32>)
    <set>
    return
  }}
  func.func private @vector(%y: !pto.ptr<f32>, %z: !pto.ptr<f32>)
      attributes {{pto.kernel_kind = #pto.kernel_kind<vector>}} {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %h = arith.constant 8 : index
    %r = arith.constant 16 : index
    %one = arith.constant 1.0 : f32
    %sub = pto.get_subblock_idx
    %s = arith.index_cast %sub : i64 to index
    %at = arith.muli %s, %h : index
    %v = pto.make_tensor_view %y, shape = [%r, %r], strides = [%r, %c1]
        : !pto.tensor_view<16x16xf32>
    %w = pto.make_tensor_view %z, shape = [%r, %r], strides = [%r, %c1]
        : !pto.tensor_view<16x16xf32>
    %p = pto.partition_view %v, offsets = [%at, %c0], sizes = [%h, %r] : !pto.tensor_view<16x16xf32>
    %q = pto.partition_view %w, offsets = [%at, %c0], sizes = [%h, %r] : !pto.tensor_view<16x16xf32>
    %t = pto.alloc_tile : {HALF}
    <wait>
    pto.tload ins(%p : !pto.partition_tensor_view<8x16xf32>) outs(%t : {HALF})
    pto.tadds ins(%t, %one : {HALF}, f32) outs(%t : {HALF})
    pto.tstore ins(%t : {HALF}) outs(%q : !pto.partition_tensor_view<8x16xf32>)
    return
  }}
}}
"""
INTRA = "pto.set_intra_block <PIPE_FIX>, 3"
PAIRS = {
    "sync a3": ("a3", "pto.sync.set <PIPE_FIX>, 3", "pto.sync.wait <PIPE_MTE2>, 3"),
    "sync a5": ("a5", "pto.sync.set <PIPE_FIX>, %c3", "pto.sync.wait <PIPE_MTE2>, %c3"),
    "mode": ("a3", "pto.sync.set <PIPE_FIX>, 3 {ffts_mode = 2 : i32}", "pto.sync.wait <PIPE_V>, 3"),
    "intra a3": ("a3", INTRA, "pto.wait_intra_block <PIPE_MTE2>, 3"),
    "intra a5": (
        "a5",
        f"{INTRA}\n    pto.set_intra_block <PIPE_FIX>, 19",
        "pto.wait_intra_block <PIPE_MTE2>, %c3",
    ),
}


def program(arch: str, given: str, taken: str) -> str:
    left = "col_major" if arch == "a5" else "row_major"
    text = TEXT.replace("<arch>", arch).replace("<left>", left)
    return text.replace("<set>", given).replace("<wait>", taken)


@pytest.mark.parametrize("name", PAIRS)
def test_a_core_waits_for_another(name: str) -> None:
    made = loads(program(*PAIRS[name]), "k.pto")
    assert not [d for d in made.check() if d.severity == "error"]
    x = np.random.default_rng(0).integers(-4, 4, (16, 16)).astype("f4")
    y, z = np.zeros_like(x), np.zeros_like(x)
    run = made["both"][1](x, y, z)
    assert np.array_equal(z, x @ x + 1)
    assert not run.findings
    assert str(loads(str(made))) == str(made)
    assert ("set_intra_block" if name == "intra a5" else "getFFTSMsg(2, 3)") in made.cpp()


def test_without_the_signal_it_is_a_race() -> None:
    x = np.ones((16, 16), "f4")
    with pytest.raises(PtoError, match="may still be writing"):
        loads(program("a3", "", ""), "k.pto")["both"][1](x, x.copy(), x.copy())


def one(line: str, more: str = "") -> str:
    return f"""
    func.func @k(%p: !pto.ptr<i64>, %q: !pto.ptr<i32>, %n: i32)
        attributes {{pto.entry, pto.kernel_kind = #pto.kernel_kind<vector>}} {{
      %c1 = arith.constant 1 : index
      %c15 = arith.constant 15 : index
      %c16 = arith.constant 16 : index
      %few = pto.make_tensor_view %q, shape = [%c15], strides = [%c1] : !pto.tensor_view<15xi32>
      %ws = pto.make_tensor_view %q, shape = [%c16], strides = [%c1] : !pto.tensor_view<16xi32>
      {line}
      {more}
      return
    }}"""


SOFT = "mode = #pto.sync_all_mode<soft>, core_type = #pto.sync_core_type<aiv_only>"
HARD = SOFT.replace("soft", "hard")
# What is written, and how it is printed.
SPELLINGS = {
    'pto.get_buf "PIPE_MTE2", 3': "pto.get_buf[#pto.pipe<PIPE_MTE2>, 3]",
    'pto.get_buf "PIPE_MTE2", 3, 0': "pto.get_buf[#pto.pipe<PIPE_MTE2>, 3, 0]",
    "pto.rls_buf [#pto.pipe_event_type<TLOAD>, 3, 0]": "pto.rls_buf[<TLOAD>, 3, 0]",
    'pto.get_buf_dyn "PIPE_V", %c1, 0': "pto.get_buf_dyn[#pto.pipe<PIPE_V>, %c1, 0]",
    "pto.rls_buf_dyn [#pto.pipe<PIPE_V>, %c1]": "pto.rls_buf_dyn[#pto.pipe<PIPE_V>, %c1]",
    'pto.set_flag["PIPE_V", "PIPE_MTE3", "EVENT_ID0"]': (
        "pto.set_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID0>]"
    ),
    "pto.set_cross_block <PIPE_MTE3>, 0": "pto.set_cross_block <PIPE_MTE3>, 0",
    "pto.wait_cross_block <PIPE_MTE3>, %c1": "pto.wait_cross_block <PIPE_MTE3>, %c1",
    "pto.set_ffts %p : !pto.ptr<i64>": "pto.set_ffts %p : !pto.ptr<i64>",
    f"pto.syncall() {HARD}": f"pto.syncall() {HARD}",
    f"pto.syncall(%q, %n : !pto.ptr<i32>, i32) {SOFT}": (
        f"pto.syncall(%q, %n : !pto.ptr<i32>, i32) {SOFT}"
    ),
    f"pto.syncall(%ws : !pto.tensor_view<16xi32>) {SOFT}": (
        f"pto.syncall(%ws : !pto.tensor_view<16xi32>) {SOFT}"
    ),
}


@pytest.mark.parametrize("line", SPELLINGS)
@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_spellings(line: str, target: str) -> None:
    made = loads(one(line))
    assert SPELLINGS[line] in str(made)
    assert str(loads(str(made))) == str(made)
    assert not [d for d in made.check(target) if d.severity == "error"]
    assert line.split("pto.")[1].split("(")[0].split(" ")[0].split("_")[0].lower() in (
        made.cpp(target).lower() + "wait set"
    )


REFUSED = {
    'pto.get_buf "PIPE_ALL", 3': "get_buf.pipe",
    'pto.get_buf "PIPE_V", 32': "E4",
    'pto.get_buf "PIPE_V", 3, -1': "get_buf.number",
    "pto.sync.set <PIPE_V>, 16": "E4",
    "pto.sync.set <PIPE_M>, 0": "sync_set.pipe",
    "pto.sync.wait <PIPE_V>, 0 {ffts_mode = 3 : i32}": "sync_wait.mode",
    "pto.set_cross_block <PIPE_S>, 0": "set_cross_block.pipe",
    "pto.wait_cross_block <PIPE_V>, 16": "E4",
    "pto.set_intra_block <PIPE_M>, 1": "signal-pipe",
    "pto.wait_intra_block <PIPE_V>, 32": "E4",
    "pto.set_ffts %q : !pto.ptr<i32>": "ffts-pointer",
    f"pto.syncall(%q : !pto.ptr<i32>) {HARD}": "SYNCALL.hard",
    f"pto.syncall() {SOFT}": "SYNCALL.workspace",
    f"pto.syncall(%p : !pto.ptr<i64>) {SOFT}": "SYNCALL.workspace",
    f"pto.syncall(%few : !pto.tensor_view<15xi32>) {SOFT}": "SYNCALL.workspace-size",
}


@pytest.mark.parametrize("line", REFUSED)
def test_refusals(line: str) -> None:
    assert REFUSED[line] in [d.code for d in loads(one(line)).check("a5")]


def test_flags_of_a_cluster_on_a3_are_sixteen() -> None:
    assert "E4" in [d.code for d in loads(one("pto.set_intra_block <PIPE_V>, 16")).check("a2a3")]


def test_a_soft_barrier_takes_a_workspace_and_a_count() -> None:
    with pytest.raises(PtoError, match="expected ':'"):
        loads(one(f"pto.syncall(%q, %n, %n : !pto.ptr<i32>, i32, i32) {SOFT}"))


def test_cores_meet_at_a_counter_behind_a_pointer() -> None:
    text = """
    func.func @k(%ws: !pto.ptr<i32>, %x: !pto.ptr<f32>, %z: !pto.ptr<f32>) attributes {pto.entry} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %c8 = arith.constant 8 : index
      %block = pto.get_block_idx
      %b = arith.index_cast %block : i64 to index
      %other = arith.subi %c1, %b : index
      %v = pto.make_tensor_view %x, shape = [%c2, %c8], strides = [%c8, %c1]
          : !pto.tensor_view<2x8xf32>
      %w = pto.make_tensor_view %z, shape = [%c2, %c8], strides = [%c8, %c1]
          : !pto.tensor_view<2x8xf32>
      %mine = pto.partition_view %v, offsets = [%b, %c0], sizes = [%c1, %c8]
          : !pto.tensor_view<2x8xf32>
      %theirs = pto.partition_view %v, offsets = [%other, %c0], sizes = [%c1, %c8]
          : !pto.tensor_view<2x8xf32>
      %out = pto.partition_view %w, offsets = [%b, %c0], sizes = [%c1, %c8]
          : !pto.tensor_view<2x8xf32>
      %n = arith.index_cast %b : index to i32
      %f = arith.sitofp %n : i32 to f32
      %t = pto.alloc_tile : !pto.tile_buf<vec, 1x8xf32>
      %u = pto.alloc_tile : !pto.tile_buf<vec, 1x8xf32>
      pto.texpands ins(%f : f32) outs(%t : !pto.tile_buf<vec, 1x8xf32>)
      pto.tstore ins(%t : !pto.tile_buf<vec, 1x8xf32>)
          outs(%mine : !pto.partition_tensor_view<1x8xf32>)
      pto.syncall(%ws : !pto.ptr<i32>) mode = #pto.sync_all_mode<soft>,
          core_type = #pto.sync_core_type<aiv_only>
      pto.tload ins(%theirs : !pto.partition_tensor_view<1x8xf32>)
          outs(%u : !pto.tile_buf<vec, 1x8xf32>)
      pto.tstore ins(%u : !pto.tile_buf<vec, 1x8xf32>)
          outs(%out : !pto.partition_tensor_view<1x8xf32>)
      return
    }"""
    made = loads(text, "k.pto")
    x, z = np.full((2, 8), 9, "f4"), np.zeros((2, 8), "f4")
    run = made["k"][2](np.zeros(16, "i4"), x, z)
    assert np.array_equal(z, [[1] * 8, [0] * 8])
    assert not run.findings
    x, z = np.full((2, 8), 9, "f4"), np.zeros((2, 8), "f4")
    at = text.index("pto.syncall"), text.index("pto.tload")
    with pytest.raises(PtoError, match="between blocks"):
        loads(text[: at[0]] + text[at[1] :])["k"][2](np.zeros(16, "i4"), x, z)
