"""`supports`: yes, or no with the reason, for an instruction, a target and an element type."""

from __future__ import annotations

import pytest

from ptokit import supports


@pytest.mark.parametrize(
    ("name", "target", "dtype"),
    [
        ("TADD", "a5", "bf16"),
        ("tadd", "a2a3", None),
        ("TCMP", "a2a3", "f32"),  # the sources; the mask has a type of its own
        ("TSEL", "a5", "i8"),
        ("TADDDEQRELU", "a2a3", "f16"),
        ("TPOW", "a5", "bf16"),  # with HIGH_PRECISION
        ("TEXPANDS", "a2a3", "i8"),  # of a Mat tile
        ("TFILLPAD", "kirinx90", "u16"),
        ("TMOV_FP", "a5", "hif8"),
        ("TPUSH", "a5", "f32"),
        ("TSYNC", "a5", "f32"),
        ("TROWSUM", "cpu", "bf16"),
        ("MGATHER", "cpu", "f32"),
    ],
)
def test_yes(name: str, target: str, dtype: str | None) -> None:
    assert supports(name, target=target, dtype=dtype), supports(name, target=target, dtype=dtype)


@pytest.mark.parametrize(
    ("name", "target", "dtype", "reason"),
    [
        ("TROWSUM", "a5", "bf16", "takes only i16 i32 i64 u64 f16 f32 as src"),
        ("TSEL", "a2a3", "u8", "takes only i16 u16 i32 u32 f16 bf16 f32 as dst"),
        ("TADD", "kirin9030", "bf16", "kirin9030 has no element type bf16"),
        ("TREM", "kirinx90", "f32", "it exists on a2a3, a5, kirin9030"),
        ("TMATMUL_MX_HIF4", "a5", None, "no supported device has it"),
        ("TPOW", "a5", "i64", "integers of 8, 16 or 32 bits"),
        ("TFILLPAD", "a5", "i64", "elements have 1, 2 or 4 bytes"),
        ("TSTORE_FP", "a2a3", "i64", "an accumulator converts"),
    ],
)
def test_no(name: str, target: str, dtype: str | None, reason: str) -> None:
    answer = supports(name, target=target, dtype=dtype)
    assert not answer
    assert reason in answer.reason
