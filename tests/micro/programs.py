"""Texts of scopes for tests: what is loaded, what is done, what is stored."""

from __future__ import annotations

from typing import Any

import numpy as np

from ptokit.base.dtypes import DType, dtype
from ptokit.from_text import Program, loads

UB = 16384  # bytes between the buffers of a test


def scope(body: str, arrays: str, result: str, more: str = "") -> Program:
    """A kernel that copies arrays ("x:f32 y:i16") to the unified buffer, runs a scope, and stores.

    In the body %x is the pointer of array x there, %out that of the result, %c0 an index. Each
    array, and the result, has up to 16 KiB.
    """
    given = [one.split(":") for one in [*arrays.split(), f"out:{result}"]]
    params = ", ".join(f"%g_{name}: !pto.ptr<{kind}>, %n_{name}: i64" for name, kind in given)
    lines = ["%c0 = arith.constant 0 : index", "%zero = arith.constant 0 : i64"]
    lines += ["%one = arith.constant 1 : i64", more]
    for place, (name, kind) in enumerate(given):
        lines += [
            f"%a_{name} = arith.constant {place * UB} : i64",
            f"%{name} = pto.castptr %a_{name} : i64 -> !pto.ptr<{kind}, ub>",
        ]
    for name, kind in given:
        lines.append(
            f"pto.mte_gm_ub %g_{name}, %{name}, %zero, %n_{name} "
            f"nburst(%one, %n_{name}, %n_{name}) : !pto.ptr<{kind}>, !pto.ptr<{kind}, ub>, "
            "i64, i64, i64, i64, i64"
        )
    lines += [
        "pto.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]",
        "pto.wait_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]",
        f"pto.vecscope {{\n{body}\n}}",
        "pto.set_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID0>]",
        "pto.wait_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID0>]",
        f"pto.mte_ub_gm %out, %g_out, %n_out nburst(%one, %n_out, %n_out) : "
        f"!pto.ptr<{result}, ub>, !pto.ptr<{result}>, i64, i64, i64, i64",
        "return",
    ]
    text = f"func.func @f({params}) attributes {{pto.kernel}} {{\n" + "\n".join(lines) + "\n}"
    return loads(text)


def run(program: Program, *arrays: Any, out: Any, **options: Any) -> Any:
    """Run it on a5; the last array is the result, which is returned."""
    given = [each for array in (*arrays, out) for each in (array, array.nbytes)]
    return program["f"][1](*given, target="a5", **options)


def register(kind: str | DType) -> str:
    """The text of a register of this element type."""
    found = dtype(kind)
    return f"!pto.vreg<{256 // found.itemsize}x{found.mlir}>"


def mask(kind: str | DType) -> str:
    """The text of its mask."""
    return f"!pto.mask<b{8 * min(dtype(kind).itemsize, 4)}>"


def numbers(kind: str, seed: int = 0, count: int = 0) -> Any:
    """Random elements of a register: every bit pattern of integers, finite floats."""
    found, rng = dtype(kind), np.random.default_rng(seed)
    count = count or 256 // found.itemsize
    if found.is_integer:
        raw = rng.integers(0, 256, count * found.itemsize, dtype=np.uint8)
        return raw.view(found.np)
    return (rng.standard_normal(count) * 8).astype(found.np)
