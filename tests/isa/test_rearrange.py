"""Joining, interleaving and pairing, against loops over rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptokit import *
from ptokit.base.dtypes import dtype
from ptokit.base.layout import Array
from tests.isa.tiles import blank, call, defined, tile, whole

small = settings(max_examples=40, deadline=None)
sizes = st.integers(1, 40)


def numbers(rows: int, cols: int, start: int = 0) -> Array:
    return np.arange(start, start + rows * cols).reshape(rows, cols) % 2048


@small
@given(st.sampled_from(["a2a3", "a5", "cpu"]), st.integers(1, 9), sizes, sizes)
def test_join(target: str, rows: int, left: int, right: int) -> None:
    a, b = numbers(rows, left), numbers(rows, right, 1000)
    with device(target, mode="auto"):
        dst = blank("f32", (rows, left + right))
        whole(dst).mark_defined()
        call("TCONCAT", dst, tile("f32", a), tile("f32", b))
        assert np.array_equal(dst.numpy(), np.hstack([a, b]))
        # A2A3 writes whole blocks of 32 bytes.
        lost = (-(left + right) % 8 if target == "a2a3" else 0) * rows
        assert (~defined(dst)).sum() == lost


@small
@given(st.sampled_from(["a2a3", "a5", "cpu"]), st.integers(1, 9), sizes, sizes, st.data())
def test_join_with_lengths(
    target: str, rows: int, left: int, right: int, data: st.DataObject
) -> None:
    a, b = numbers(rows, left), numbers(rows, right, 1000)
    counts = [
        (data.draw(st.integers(1, left)), data.draw(st.integers(1, right))) for _ in range(rows)
    ]
    width = left + right if target == "cpu" else data.draw(st.integers(1, left + right))
    n0, n1 = (np.array(column)[:, None] for column in zip(*counts, strict=True))
    old = numbers(rows, width, 500)
    with device(target, mode="auto"):
        dst, total = tile("f16", old), blank("i16", (rows, 1))
        sources = tile("f16", a), tile("f16", b)
        call("TCONCAT", dst, *sources, total, tile("i16", 2 * n0), tile("i16", 2 * n1))
        expected = old.copy()
        for r, (x, y) in enumerate(counts):
            line = np.concatenate([a[r, :x], b[r, :y]])[:width]
            expected[r, : line.size] = line
        assert np.array_equal(dst.numpy(), expected)
        assert np.array_equal(total.numpy(), 2 * np.minimum(n0 + n1, width))


def test_columns_behind_the_lengths_stay_undefined() -> None:
    with device("a5", mode="auto"):
        dst, ones = blank("f32", (2, 8)), tile("i32", [[4], [4]])
        call("TCONCAT", dst, tile("f32", numbers(2, 4)), tile("f32", numbers(2, 4)), ones, ones)
        assert defined(dst)[:2].sum(axis=1).tolist() == [2, 2]


@pytest.mark.parametrize(("target", "length"), [("a2a3", 0), ("a5", 400)])
def test_impossible_lengths(target: str, length: int) -> None:
    with device(target, mode="auto"):
        sources = tile("f32", numbers(1, 20)), tile("f32", numbers(1, 20))
        lengths = tile("i32", [[4 * length]]), tile("i32", [[4]])
        with pytest.raises(PtoError, match=r"TCONCAT\.length"):
            call("TCONCAT", blank("f32", (1, 200)), *sources, *lengths)


@small
@given(st.sampled_from(["a5", "cpu"]), st.integers(1, 9), st.integers(1, 20))
def test_interleave_and_back(target: str, rows: int, half: int) -> None:
    cols = 2 * half
    even, odd = numbers(rows, cols), numbers(rows, cols, 1000)
    with device(target, mode="auto"):
        first, second = blank("i32", (rows, cols)), blank("i32", (rows, cols))
        call("TINTERLEAVE", second, first, tile("i32", odd), tile("i32", even))
        stream = np.hstack([first.numpy(), second.numpy()])
        assert np.array_equal(stream[:, 0::2], even)
        assert np.array_equal(stream[:, 1::2], odd)
        back0, back1 = blank("i32", (rows, cols)), blank("i32", (rows, cols))
        call("TDEINTERLEAVE", back1, back0, second, first)
        assert np.array_equal(back0.numpy(), even)
        assert np.array_equal(back1.numpy(), odd)


def test_deinterleave_one_source() -> None:
    stream = numbers(4, 140)
    with device("a5", mode="auto"):
        even, odd = blank("f32", (4, 70)), blank("f32", (4, 70))
        call("TDEINTERLEAVE", odd, even, tile("f32", stream))
        assert np.array_equal(even.numpy(), stream[:, 0::2])
        assert np.array_equal(odd.numpy(), stream[:, 1::2])


def test_halves_of_an_odd_width_share_a_pair() -> None:
    """dst0 has the first elements of the stream, dst1 starts with the pair that dst0 ends with."""
    a, b = numbers(2, 7).astype(np.float32), -numbers(2, 7).astype(np.float32)
    stream = np.stack([a, b], axis=-1).reshape(2, 14)
    with device("a5", mode="auto"):
        first, second = blank("f32", (2, 7)), blank("f32", (2, 7))
        call("TINTERLEAVE", second, first, tile("f32", b), tile("f32", a))
        assert (first.numpy() == stream[:, :7]).all()
        assert (second.numpy() == stream[:, 6:13]).all()
    with device("a5", mode="auto", rules="strict"), pytest.raises(ProgramError, match="even"):
        call("TINTERLEAVE", *(blank("f32", (1, 3)) for _ in range(4)))


@pytest.mark.parametrize("kind", ["f16", "f32"])
@pytest.mark.parametrize("width", [1, 2, 9, 20])
def test_pairs_are_added(kind: str, width: int) -> None:
    values = (numbers(3, width) / 3).astype(dtype(kind).np)
    sums = values[:, 0 : width // 2 * 2 : 2] + values[:, 1::2]
    with device("a2a3", mode="auto"):
        dst = tile(kind, np.full((3, width), 7))
        call("TPAIRREDUCESUM", dst, tile(kind, values))
        assert np.array_equal(dst.numpy()[:, : width // 2], sums)
        assert (dst.numpy()[:, width // 2 :] == 7).all()  # untouched
    with device("cpu", mode="auto"):
        dst = blank(kind, (3, width))
        call("TPAIRREDUCESUM", dst, tile(kind, values))
        lone = values[:, width // 2 * 2 :]
        expected = np.zeros((dst.spec.rows, dst.spec.cols), values.dtype)
        expected[:3, : sums.shape[1] + lone.shape[1]] = np.hstack([sums, lone])
        assert np.array_equal(whole(dst).read(), expected)


@pytest.mark.parametrize("target", ["a5", "cpu"])
def test_pack_is_only_a_name(target: str) -> None:
    with device(target, mode="auto"), pytest.raises(ProgramError, match="TPACK does not exist on"):
        call("TPACK", blank("i32", (2, 3)), tile("i16", numbers(2, 3)))
