"""Kernels in the style of models through both interpreters."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.models import meaning
from tests.models.compare import Verdict, compare
from tests.models.interpreter import Stuck, run
from tests.models.kernels import KERNELS, written


def verdict(folder: Path, name: str, target: str = "a5", seed: int = 0) -> Verdict:
    path = folder / f"{name}.pto"
    path.write_text(written(target, *KERNELS[name]))
    return compare(path, name, seed)


# Cores of A2/A3 pass tiles through global memory, those of A5 from one to the other.
RUNS = [
    (name, target)
    for name, functions in KERNELS.items()
    for target in ("a2a3", "a5")
    if len(functions) == 1 or ("gm_slot_buffer" in functions[0]) == (target == "a2a3")
]


@pytest.mark.parametrize(("name", "target"), RUNS)
@pytest.mark.parametrize("seed", [0, 1])
def test_both_interpreters_agree(name: str, target: str, seed: int, tmp_path: Path) -> None:
    found = verdict(tmp_path, name, target, seed)
    assert found.agrees, found.reasons
    assert found.written


def test_a_difference_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(meaning.MEANINGS, "pto.trecip", meaning.MEANINGS["pto.tneg"])
    found = verdict(tmp_path, "norm")
    assert found.ran
    assert "bfloat16 differ by up to" in found.reasons[0]


def test_what_nobody_has_written_is_not_compared(tmp_path: Path) -> None:
    """Rows behind the valid ones of an accumulator: whatever is stored of them counts as open."""
    text = written("a5", *KERNELS["project"]).replace(
        "%r = pto.alloc_tile addr = %c0i64", "%r = pto.alloc_tile addr = %c32768i64"
    )
    (tmp_path / "k.pto").write_text(text)
    found = compare(tmp_path / "k.pto", "k")
    assert found.agrees, found.reasons
    assert found.remarks == ("%2: 1024 elements are what nobody has written",)


def test_a_wait_for_nothing_ends() -> None:
    cube, vector = KERNELS["halves"]
    text = written(
        "a5", cube.replace("pto.tpush_to_aiv(%c : <acc f32 16x32>) {split = 1}", ""), vector
    )
    with pytest.raises(Stuck):
        run(text, [np.zeros(n, "f4") for n in (1024, 2048, 512)])


@pytest.mark.parametrize(
    ("values", "to", "mode", "wanted", "cut"),
    [
        (
            [0.5, 1.5, -2.5, 3e9, np.nan],
            "i4",
            "ROUND",
            [1, 2, -3, 2**31 - 1, 0],
            [1, 2, -3, 3 * 10**9 - 2**32, 0],
        ),
        ([0.5, 1.5, -2.5], "i4", "RINT", [0, 2, -2], [0, 2, -2]),
        ([1.7, -1.7], "i4", "TRUNC", [1, -1], [1, -1]),
        ([1e6, 2049.0, -2051.0], "f2", "ROUND", [65504, 2050, -2052], [np.inf, 2050, -2052]),
        ([1e6, 2049.0, -2051.0], "f2", "RINT", [65504, 2048, -2052], [np.inf, 2048, -2052]),
    ],
)
def test_conversions(
    values: list[float], to: str, mode: str, wanted: list[float], cut: list[float]
) -> None:
    for saturates, expected in (True, wanted), (False, cut):
        found = meaning.convert(np.array(values, "f4"), np.dtype(to), mode, saturates)
        assert found.astype(float).tolist() == expected
