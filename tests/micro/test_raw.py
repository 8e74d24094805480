"""Raw transfers with loops in registers, and copies in blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ptokit import PtoError
from ptokit.from_text import Program, loads
from tests.micro.programs import run, scope

CONSTANTS = "\n".join(f"%k{n} = arith.constant {n} : i64" for n in (0, 1, 2, 3, 32, 64, 128, 256))
FLAGS = """pto.set_flag[<PIPE_MTE2>, <PIPE_MTE3>, <EVENT_ID0>]
pto.wait_flag[<PIPE_MTE2>, <PIPE_MTE3>, <EVENT_ID0>]"""
COPY_IN = (
    "pto.copy_gm_to_ubuf %x, %ub, %k0, %k2, %k32, %k0, %k0, %no, %k0, %k64, %k32 : !pto.ptr<u8>, "
    "!pto.ptr<u8, ub>, i64, i64, i64, i64, i64, i1, i64, i64, i64"
)
COPY_OUT = (
    "pto.copy_ubuf_to_gm %ub, %y, %k0, %k1, %k256, %k0, %k0, %k0 : !pto.ptr<u8, ub>, "
    "!pto.ptr<u8>, i64, i64, i64, i64, i64, i64"
)


def program(before: str) -> Program:
    return loads(f"""func.func @f(%x: !pto.ptr<u8>, %y: !pto.ptr<u8>) attributes {{pto.kernel}} {{
%no = arith.constant false
{CONSTANTS}
%ub = pto.castptr %k0 : i64 -> !pto.ptr<u8, ub>
{before}
{COPY_IN}
{FLAGS}
pto.set_loop_size_ubtoout %k1, %k1 : i64, i64
{COPY_OUT}
return
}}""")


def test_loops_come_from_registers() -> None:
    loops = """pto.set_loop_size_outtoub %k2, %k2 : i64, i64
pto.set_loop1_stride_outtoub %k128, %k64 : i64, i64
pto.set_loop2_stride_outtoub %k256, %k128 : i64, i64"""
    x, y = np.arange(512, dtype=np.uint16).astype(np.uint8), np.zeros(256, np.uint8)
    made = program(loops)
    assert loads(made.text).text == made.text
    made["f"][1](x, y, target="a5")
    wanted: Any = [x[s : s + 32] for a in (0, 256) for b in (0, 128) for s in (a + b, a + b + 64)]
    assert np.array_equal(y.reshape(8, 32), wanted)


@pytest.mark.parametrize(
    ("before", "missing"),
    [
        ("", "loop_size_outtoub"),
        ("pto.set_loop_size_outtoub %k2, %k1 : i64, i64", "loop1_stride_outtoub"),
    ],
)
def test_registers_have_no_value_at_first(before: str, missing: str) -> None:
    x, y = np.zeros(512, np.uint8), np.zeros(256, np.uint8)
    with pytest.raises(PtoError, match=missing) as caught:
        program(before)["f"][1](x, y, target="a5")
    assert "hidden-register" in caught.value.codes


def test_blocks_with_gaps() -> None:
    more = "\n".join(f"%k{n} = arith.constant {n} : i64" for n in (2, 3, 4))
    body = '%nothing = pto.pset_b32 "PAT_ALL" : !pto.mask<b32>'
    text = scope(body, "x:f32", "f32", more).text
    copy = (
        "pto.mte_ub_ub %x, %out, %k2 nburst(%k3, %k4, %one) : !pto.ptr<f32, ub>, "
        "!pto.ptr<f32, ub>, i64, i64, i64, i64\n"
    )
    text = text.replace("pto.vecscope", f"{copy}    pto.vecscope", 1)
    x, out = np.arange(160, dtype=np.float32), np.zeros(72, np.float32)
    run(loads(text), x, out=out)
    wanted = np.zeros((3, 24), np.float32)
    wanted[:, :16] = [x[n * 48 : n * 48 + 16] for n in range(3)]
    assert np.array_equal(out, wanted.reshape(-1))
