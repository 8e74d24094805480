"""E14: the data cache of a scalar unit stands between it and everybody else."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from ptokit import *
from tests.hazards.support import *

Line = Tile[TileType.Vec, int32, 1, 16]
View = GlobalTensor[int32, Shape[1, 1, 1, 1, 16], Stride[16, 16, 16, 16, 1]]


def aligned() -> Any:
    """A line of 64 bytes."""
    words = np.zeros(64, np.int32)
    first = (-words.ctypes.data // 4) % 16
    return words[first : first + 16]


def writes(how: str, line: Any, cleans: bool, fences: bool) -> None:
    if how == "scalar":
        store_scalar(ptr(line), 0, 7)
        if cleans:
            dcci(ptr(line), SINGLE_CACHE_LINE)
        if fences:
            dsb(DSB_DDR)
    else:
        tile = at(Line(), 0)
        TEXPANDS(tile, 7)
        PtoSetWaitFlag[PIPE_V, PIPE_MTE3]()
        TSTORE(View(line), tile)


def reads(how: str, line: Any, cleans: bool) -> None:
    if how == "scalar":
        if cleans:
            dcci(ptr(line), SINGLE_CACHE_LINE)
        load_scalar(ptr(line), 0)
    else:
        TLOAD(at(Line(), 0x400), View(line))


CASES = [
    (writer, reader, held, cleans, fences, looks)
    for writer, reader in product(("scalar", "dma"), repeat=2)
    for held in (False, True)  # whether the reader had looked at the line before
    for cleans, fences in ((True, True), (True, False), (False, True), (False, False))
    for looks in (False, True)  # whether the reader forgets the line before it looks
    if writer == "scalar" or (cleans and fences)
    if reader == "scalar" or not (held or looks)
]


@pytest.mark.parametrize("seed", [None, 0])
@pytest.mark.parametrize(("writer", "reader", "held", "cleans", "fences", "looks"), CASES)
def test_what_another_core_sees(
    writer: str,
    reader: str,
    held: bool,
    cleans: bool,
    fences: bool,
    looks: bool,
    seed: int | None,
) -> None:
    """Block 0 writes, all meet, block 1 reads."""
    line = aligned()

    def program() -> None:
        if get_block_idx() and held:
            load_scalar(ptr(line), 1)
        SYNCALL()
        if not get_block_idx():
            writes(writer, line, cleans, fences)
        SYNCALL()
        if get_block_idx():
            reads(reader, line, looks)

    is_lost = writer == "scalar" and not (cleans and fences)
    is_stale = reader == "scalar" and held and not looks
    assert set(codes(program, grid=2, seed=seed)) == ({"E14"} if is_lost or is_stale else set())


@pytest.mark.parametrize(("cleans", "fences"), [(True, True), (True, False), (False, True)])
def test_a_core_that_loads_what_its_scalar_unit_stored(cleans: bool, fences: bool) -> None:
    line = aligned()

    def program() -> None:
        writes("scalar", line, cleans, fences)
        PtoSetWaitFlag[PIPE_S, PIPE_MTE2]()
        reads("dma", line, False)

    assert codes(program) == ([] if cleans and fences else ["E14"])


def test_the_cube_core_and_a_vector_core_have_caches_of_their_own() -> None:
    line, ready = aligned(), aligned()

    def program(cleans: bool) -> Any:
        def cube() -> None:
            writes("scalar", line, cleans, cleans)
            comm.TNOTIFY(comm.Signal(ready), 1, comm.NotifyOp.Set)

        def vector() -> None:
            comm.TWAIT(comm.Signal(ready), 1, comm.WaitCmp.EQ)
            if get_subblockid() == 0:
                load_scalar(ptr(line), 0)

        return {"cube": cube, "vector": vector}

    assert codes(program(True)) == []
    ready[...] = 0
    assert codes(program(False)) == ["E14"]


@pytest.mark.parametrize("apart", [True, False])
def test_two_cores_that_share_a_line(apart: bool) -> None:
    """Each writes back the whole of it: a warning, as nobody reads the other's word here."""
    lines = np.zeros(64, np.int32)
    first = (-lines.ctypes.data // 4) % 16

    def program() -> None:
        word = ptr(lines, first + get_block_idx() * (16 if apart else 1))
        store_scalar(word, 0, 7)
        SYNCALL()
        dcci(word, SINGLE_CACHE_LINE)
        dsb(DSB_DDR)

    told = [(d.code, d.severity) for d in check(program, grid=2)]
    assert told == ([] if apart else [("E14", "warning")])


def test_caches_and_fences_are_named_in_texts() -> None:
    """Strings are read as words; on-chip memory has no line that could be written back."""
    program = loads("""func.func @f(%x: !pto.ptr<i32>) attributes {
        pto.kernel, pto.kernel_kind = #pto.kernel_kind<vector>, pto.target_arch = "a5"} {
      %c0 = arith.constant 0 : index
      %k0 = arith.constant 0 : i64
      %one = arith.constant 1 : i32
      %u = pto.castptr %k0 : i64 -> !pto.ptr<i32, ub>
      pto.store_scalar %one, %x[%c0] : !pto.ptr<i32>, i32
      pto.dcci %x "ENTIRE_DATA_CACHE", "CACHELINE_OUT" : !pto.ptr<i32>
      pto.dcci %u #pto.dcci_cache_line<SINGLE_CACHE_LINE>, "CACHELINE_UB" : !pto.ptr<i32, ub>
      pto.dsb "ALL"
      return
    }""")
    assert str(loads(str(program))) == str(program)
    assert "pto.dcci %x <ENTIRE_DATA_CACHE>, <CACHELINE_OUT> : " in str(program)
    assert "pto.dsb <ALL>" in str(program)
    cpp = program.cpp("a5")
    assert "dcci(x, (cache_line_t)1, (dcci_dst_t)2);" in cpp
    assert "dsb((mem_dsb_t)0);" in cpp
    x = np.zeros(16, np.int32)
    assert not program["f"][1](x, target="a5").warnings
    assert x[0] == 1
