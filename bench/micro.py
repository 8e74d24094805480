"""A million operations on vector registers: `python bench/micro.py`.

The scope loads, computes twice and stores, a quarter of a million times, with the order inside the
scope and undefined bytes followed as always. The launch that comes again is compiled.
"""

from __future__ import annotations

import time
import warnings

import numpy as np

from ptokit import PtoWarning, loads

LIMIT = 15.0  # seconds
ROUNDS = 250_000
V, P, M = "!pto.vreg<64xf32>", "!pto.ptr<f32, ub>", "!pto.mask<b32>"


def program(rounds: int) -> str:
    """A scope of four operations, this many times over."""
    return f"""func.func @f(%x: !pto.ptr<f32>, %y: !pto.ptr<f32>) attributes {{pto.kernel}} {{
%c0 = arith.constant 0 : index
%c1 = arith.constant 1 : index
%rounds = arith.constant {rounds} : index
%zero = arith.constant 0 : i64
%one = arith.constant 1 : i64
%bytes = arith.constant 256 : i64
%in = pto.castptr %zero : i64 -> {P}
%out = pto.castptr %bytes : i64 -> {P}
pto.mte_gm_ub %x, %in, %zero, %bytes nburst(%one, %bytes, %bytes)
  : !pto.ptr<f32>, {P}, i64, i64, i64, i64, i64
pto.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]
pto.wait_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]
pto.vecscope {{
  %all = pto.pset_b32 "PAT_ALL" : {M}
  scf.for %i = %c0 to %rounds step %c1 {{
    %v = pto.vlds %in[%c0] : {P} -> {V}
    %w = pto.vadd %v, %v, %all : {V}, {V}, {M} -> {V}
    %u = pto.vmul %w, %v, %all : {V}, {V}, {M} -> {V}
    pto.vsts %u, %out[%c0], %all : {V}, {P}, {M}
  }}
}}
pto.set_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID0>]
pto.wait_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID0>]
pto.mte_ub_gm %out, %y, %bytes nburst(%one, %bytes, %bytes)
  : {P}, !pto.ptr<f32>, i64, i64, i64, i64
return
}}"""


def main() -> None:
    """Run it, and once more, and say how long both took."""
    kernel = loads(program(ROUNDS))["f"]
    for what in ("executed", "compiled and repeated", "repeated"):
        x, y = np.random.default_rng().random(64, np.float32), np.zeros(64, np.float32)
        started = time.perf_counter()
        with warnings.catch_warnings(action="ignore", category=PtoWarning):
            kernel[1](x, y, target="a5")
        seconds = time.perf_counter() - started
        assert np.array_equal(y, 2 * x * x)
        verdict = "within" if seconds <= LIMIT else "beyond"
        print(
            f"{4 * ROUNDS:,} operations on registers, {what}: {seconds:.3g} s, "
            f"{verdict} {LIMIT:.0f} s"
        )


if __name__ == "__main__":
    main()
