"""Products of bytes, with and without scales, leave what their bodies leave."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from ptokit import *
from ptokit.engines.compiled.library import library
from ptokit.engines.compiled.replay import Replay, Tape
from ptokit.frontend.session import running
from ptokit.isa import INSTRUCTIONS
from ptokit.isa.samples import Sample
from ptokit.machine.machine import Machine
from ptokit.machine.scheduler import Outcome
from tests.engines.test_instructions import of
from tests.engines.test_replay import HERE
from tests.support import sample_operands

pytestmark = pytest.mark.skipif(library() is None, reason="llvmlite is not installed")

NAMES = ("TMATMUL", "TMATMUL_ACC", "TMATMUL_BIAS", "TMATMUL_MX", "TGEMV_MX")


def bytes_of(sample: Sample) -> bool:
    kinds = [getattr(each, "dtype", None) for each in sample.operands.values()]
    return any(k is not None and k.is_float and k.bits == 8 and not k.is_packed for k in kinds)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", range(3))
def test_any_bytes_are_multiplied_alike(name: str, seed: int) -> None:
    """All bits of factors, and now and then a scale that is NaN; the order of sums is open."""
    rng, met = np.random.default_rng(seed), 0
    for sample in of(INSTRUCTIONS[name]):
        if not sample.target.is_device or not bytes_of(sample):
            continue
        machine = Machine(sample.target, "auto")
        with running(machine):
            operands = sample_operands(sample, seed)
            for label, tile in operands.items():
                if tile is None:
                    continue
                data = tile.storage.data
                if "Scale" in label:
                    data[:] = rng.integers(122, 132, data.size)
                    data[rng.random(data.size) < 0.002] = 255
                elif label[0] in "ab" and label.endswith("Matrix"):
                    data[:] = rng.integers(0, 256, data.size)
            before = [(t.storage.data, t.storage.data.copy()) for t in operands.values() if t]
            tape = Tape([])
            tape.follow(machine)
            attrs = tuple(sample.attrs[a.name] for a in sample.insn.attrs)
            with np.errstate(all="ignore"):
                machine.execute(sample.insn, tuple(operands.values()), attrs, HERE)
            result: Any = next(iter(operands.values()))
            wanted = result.storage.data.view(np.float32).copy()
            for data, held in before:
                data[:] = held
            replay = Replay(tape, Outcome(machine, ()), threading.Lock())
            assert replay.play([])
            if not replay.bodies:
                met += 1
                found = result.storage.data.view(np.float32)
                np.testing.assert_allclose(found, wanted, rtol=1e-5, err_msg=str(sample))
    assert met
