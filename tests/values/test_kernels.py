"""Values in kernels: loops, branches, helpers, tails, instructions between, and what is refused."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ptokit import *
from ptokit.values import *
from ptokit.values.value import reduce

PATHS = ["eager", "lowered"]
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def random(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


# ---- the examples ------------------------------------------------------------------------------


@pytest.fixture
def pairs(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    import value_style

    yield value_style.HERE
    for name in [
        n for n, m in sys.modules.items() if str(EXAMPLES) in str(m.__dict__.get("__file__"))
    ]:
        del sys.modules[name]


NAMES = re.findall(r"^    (\w+): ", (EXAMPLES / "value_style.py").read_text(), re.M)


def test_every_example_is_there_in_values(pairs: Any) -> None:
    """The same by hand, or with addresses and flags found for you, is one kernel of values."""
    files = {f.stem for f in EXAMPLES.glob("*.py") if "@kernel" in f.read_text()} - {"value_style"}
    cases = [c for found in pairs.values() for c in (found if isinstance(found, list) else [found])]
    there = {Path(case.kernel.function.__code__.co_filename).stem for case in cases}
    assert {re.sub("_(manual|auto)$", "", name) for name in files} == there


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("name", NAMES)
def test_both_styles_leave_the_same_bytes(pairs: Any, name: str, path: str) -> None:
    ours, cases = next((k, c) for k, c in pairs.items() if k.name == name)
    for case in (cases if isinstance(cases, list) else [cases])[:2]:
        results = []
        for one in (case.kernel, ours):
            arguments = list(case.inputs(np.random.default_rng(3)))
            one[case.blocks](*arguments, **case.consts, path=path, target=case.targets[-1])
            results.append([a.tobytes() for a in arguments[-case.outputs :]])
        assert results[0] == results[1]


def test_softmax_is_the_instructions_that_one_would_write(pairs: Any) -> None:
    softmax = next(k for k in pairs if k.name == "softmax")
    x = random(96, 128)
    text = softmax.text(x, x.copy(), form="l2")
    written = [line.split()[0] for line in text.splitlines() if line.split()[0].startswith("pto.t")]
    assert written == [
        "pto.tload", "pto.trowmax", "pto.trowexpandsub", "pto.texp", "pto.trowsum",
        "pto.trowexpanddiv", "pto.tstore",
    ]  # fmt: skip
    assert "%t = pto.alloc_tile" in text  # under the names of the variables
    assert "%e = pto.alloc_tile" in text


# ---- control flow ------------------------------------------------------------------------------


@kernel(mode="auto")
def running(x: Any, y: Any) -> None:
    top = full((16, 64), -100.0)
    for i in range(0, x.shape[0], 16):
        top = maximum(top, load(x[i : i + 16, :]))
    store(y, top)


@kernel(mode="auto")
def branching(x: Any, y: Any, flag: Any) -> None:
    t = load(x)
    if flag > 0:
        t = t * 2.0
    else:
        t = t + 100.0
    store(y, t)


def normalised(t: Any) -> Any:
    return t / rowsum(t), rowmax(t)


@kernel(mode="auto")
def with_helper(x: Any, y: Any) -> None:
    shares, top = normalised(load(x))
    store(y, shares * top)


@kernel(mode="auto")
def with_instructions(x: Any, y: Any) -> None:
    tile = Tile[TileType.Vec, float32, 16, 64]()
    TLOAD(tile, GlobalTensor(x))
    t = Value(tile) + 1.0
    TMULS(t.tile, t.tile, 3.0)
    store(y, t)


@kernel(mode="auto")
def tail(x: Any, y: Any, rows: Any) -> None:
    for i in range(0, rows, 16):
        end = min(i + 16, rows)
        t = load(x[i:end, :], shape=(16, 64))
        store(y[i:end, :], exp(t - rowmax(t)))


def softened(x: Any) -> Any:
    return np.exp(x - x.max(1, keepdims=True))


@kernel(mode="auto")
def by_columns(x: Any, y: Any) -> None:
    t = load(x)
    top = rowmax(t)
    store(y, t * where(top > 2.0, 1.0, top) + where(top <= rowmin(t), top, 0.5))


@kernel(mode="auto")
def from_the_end(x: Any, y: Any) -> None:
    store(y[-16:, :], load(x[-16:, :]) + load(x[-1, :]))


def limited(x: Any) -> Any:
    top = x.max(1, keepdims=True)
    return x * np.where(top > 2, np.float32(1), top) + np.float32(0.5)


CASES = {
    "columns compared": (by_columns, lambda: (random(16, 64),), limited),
    "from the end": (from_the_end, lambda: (random(48, 64),), lambda x: x[-16:] + x[-1]),
    "carried": (running, lambda: (random(64, 64),), lambda x: x.reshape(4, 16, 64).max(0)),
    "branch, taken": (branching, lambda: (random(16, 64),), lambda x: x * 2, 1),
    "branch, not taken": (branching, lambda: (random(16, 64),), lambda x: x + np.float32(100), 0),
    "helper": (with_helper, lambda: (abs(random(16, 64)),),
               lambda x: x / x.sum(1, keepdims=True) * x.max(1, keepdims=True)),
    "instructions": (with_instructions, lambda: (random(16, 64),), lambda x: (x + 1) * 3),
}  # fmt: skip


@pytest.mark.parametrize("target", ["a2a3", "a5"])
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("case", CASES)
def test_control_flow(case: str, path: str, target: str) -> None:
    kernel, make, numpys, *more = CASES[case]
    (x,) = make()
    y = np.zeros((16, 64), np.float32)
    kernel[1](x, y, *more, path=path, target=target)
    np.testing.assert_allclose(y, numpys(x), rtol=1e-6)


@pytest.mark.parametrize("target", ["a2a3", "a5"])
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("rows", [16, 20, 31, 48])
def test_the_last_rows(rows: int, path: str, target: str) -> None:
    x, y = random(48, 64), np.zeros((48, 64), np.float32)
    tail[1](x, y, rows, path=path, target=target)
    np.testing.assert_allclose(y[:rows], softened(x[:rows]), rtol=1e-6)
    assert not y[rows:].any()


# ---- products ----------------------------------------------------------------------------------


@kernel(mode="auto")
def product(a: Any, b: Any, c: Any, *, turned: Any) -> None:
    store(c, dot(a[0:32, :], b[:, :].T if turned else b[:, :]))


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("turned", [False, True])
def test_transposed_arrays_are_multiplied(turned: bool, path: str) -> None:
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-4, 5, (64, 64)).astype(np.float16) for _ in range(2))
    c = np.zeros((32, 64), np.float32)
    product[1](a, b, c, turned=turned, path=path)
    assert np.array_equal(c, a[:32].astype("f4") @ (b.T if turned else b).astype("f4"))


@kernel(mode="auto")
def scaled_product(a: Any, b: Any, c: Any) -> None:
    store(c, dot(a, b) * 2.0)


def test_a_product_reaches_the_vector_unit_where_there_is_a_way() -> None:
    a, b = np.ones((2, 32, 32), np.float16)
    c = np.zeros((32, 32), np.float32)
    scaled_product[1](a, b, c, target="a5")
    assert np.all(c == 64)
    with pytest.raises(ProgramError) as caught:
        scaled_product[1](a, b, c, target="a2a3")
    assert caught.value.codes == ("value-memory",)


@kernel(mode="auto")
def ragged(a: Any, b: Any, c: Any) -> None:
    right = stage(b, side="right")
    store(c, dot(a[0:31, :], right))


@pytest.mark.parametrize("element", [np.float16, np.int8, np.float32])
@pytest.mark.parametrize("target", ["a2a3", "a5"])
@pytest.mark.parametrize("path", PATHS)
def test_sizes_of_products_need_not_be_whole_boxes(path: str, target: str, element: Any) -> None:
    rng = np.random.default_rng(2)
    a, b = rng.integers(-4, 5, (32, 40)).astype(element), rng.integers(-4, 5, (40, 23))
    c = np.zeros((31, 23), np.int32 if element is np.int8 else np.float32)
    ragged[1](a, b.astype(element), c, path=path, target=target)
    assert np.array_equal(c, a[:31].astype("i4") @ b)


@kernel(mode="auto")
def two_maps(x: Any, other: Any, w: Any, y: Any) -> None:
    one, two = im2col(x, 3, padding=1), im2col(other, (1, 3), 2, (1, 1, 0, 0), pad_value=2.0)
    store(y[0:16, :], dot(one[16:32, 0:48], w[0:48, :]))
    store(y[16:32, :], dot(two[0:16, 0:48], w[0:48, :]))


@pytest.mark.parametrize("target", ["a2a3", "a5"])
@pytest.mark.parametrize("path", PATHS)
def test_two_feature_maps_keep_their_own_parameters(path: str, target: str) -> None:
    rng = np.random.default_rng(3)
    x, other = rng.integers(-3, 4, (2, 1, 1, 8, 8, 16)).astype(np.float16)
    w = rng.integers(-3, 4, (144, 16)).astype(np.float16)
    y = np.zeros((32, 16), np.float32)
    two_maps[1](x, other, w, y, path=path, target=target)
    first = np.pad(x[0, 0], ((1, 1), (1, 1), (0, 0)))
    rows = [np.concatenate([first[p // 8, p % 8 + j] for j in range(3)]) for p in range(16, 32)]
    second = np.pad(other[0, 0], ((0, 0), (1, 1), (0, 0)), constant_values=2)
    rows += [
        np.concatenate([second[p // 4 * 2, p % 4 * 2 + j] for j in range(3)]) for p in range(16)
    ]
    assert np.array_equal(y, np.array(rows, np.float32) @ w[:48].astype(np.float32))


@kernel(mode="auto")
def scales_beyond(a: Any, sa: Any, b: Any, sb: Any, c: Any, n: Any) -> None:
    for s in range(0, n, 2):
        left = scaled(a[:, 0:64], sa[:, s : s + 2])
        store(c, dot(left, scaled(b[0:64, :], sb[:, 0:2].T)))


@pytest.mark.parametrize("path", PATHS)
def test_scales_lie_inside_their_array(path: str) -> None:
    import ml_dtypes

    a, b = np.ones((2, 64, 64), ml_dtypes.float8_e4m3fn)
    sa, sb = np.ones((2, 64, 4), ml_dtypes.float8_e8m0fnu)
    sa[:, 2:] = 2
    c = np.zeros((64, 64), np.float32)
    scales_beyond[1](a, sa, b, sb, c, 4, path=path, target="a5")
    assert np.all(c == 128)
    with pytest.raises(ProgramError) as caught:
        scales_beyond[1](a, sa, b, sb, c, 6, path=path, target="a5")
    assert (
        caught.value.diagnostics[0].location.line
        == scales_beyond.function.__code__.co_firstlineno + 3
    )


# ---- what is refused ---------------------------------------------------------------------------


def refused(body: Any) -> Any:
    @kernel(mode="auto")
    def wrong(x: Any, y: Any, n: Any) -> None:
        body(x, y, n)

    return wrong


def truth(x: Any, y: Any, n: Any) -> None:
    if load(x) > 0.0:
        store(y, load(x))


WRONG = {
    "value-truth": truth,
    "value-shape": lambda x, y, n: store(y, load(x[0:8, :]) + load(x)),
    "value-operand": lambda x, y, n: store(y, maximum(load(x), "a")),
    "value-mask": lambda x, y, n: store(y, where(load(x), 1.0, 0.0)),
    "value-memory": lambda x, y, n: store(y, dot(load(x), load(x))),
    "value-instruction": lambda x, y, n: store(y, load(x) & load(x)),
    "slice-range": lambda x, y, n: store(y[0:16, :], load(x[8:24, :])),
    "value-shape ": lambda x, y, n: store(y, dot(scaled(x, x), scaled(x, x))),
    "value-shape  ": lambda x, y, n: store(y, dot(im2col(x, 3)[0:16, 0:64], x)),
    "value-operand   ": lambda x, y, n: im2col(x, 3, stride=0),
    "value-memory ": lambda x, y, n: store(y, dot(x[:, 0:16], stage(x, side="left"))),
    "value-operand ": lambda x, y, n: push(x, load(x)),
    "value-operand  ": lambda x, y, n: stage(x, side="up"),
    "value-axis": lambda x, y, n: store(y, reduce("sum", load(x), 2)),
}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("code", WRONG)
def test_what_is_refused_says_why(code: str, path: str) -> None:
    with pytest.raises(ProgramError) as caught:
        refused(WRONG[code])[1](random(16, 64), np.zeros((16, 64), np.float32), 3, path=path)
    (found,) = caught.value.diagnostics
    assert found.code.removeprefix("lower.") == code.strip()
    assert found.fix
    assert found.location is not None
    assert found.location.file == __file__


def test_sizes_of_run_time_need_a_bound() -> None:
    wrong = refused(lambda x, y, n: store(y[0:n, :], load(x[0:n, :])))
    with pytest.raises(ProgramError) as caught:
        wrong[1](random(16, 64), np.zeros((16, 64), np.float32), 3, path="lowered")
    assert caught.value.codes == ("value-shape",)


def test_the_load_of_texts_points_at_the_one_of_values() -> None:
    import ptokit

    @kernel(mode="auto")
    def wrong(x: Any) -> None:
        ptokit.load(x[0:4, :])

    with pytest.raises(PtoError) as caught:
        wrong[1](random(8, 64))
    assert "ptokit.values" in caught.value.diagnostics[0].fix


@kernel(mode="auto")
def columns_in(x, column, y):
    store(y[:, :], load(x[:, :]) * load(column[:, :]))


@pytest.mark.parametrize("path", ["eager", "lowered"])
def test_a_column_is_loaded_from_an_array_of_one_column(path: str) -> None:
    x, column = np.ones((32, 64), np.float32), np.arange(32, dtype=np.float32)[:, None]
    y = np.zeros_like(x)
    columns_in[1](x, column, y, path=path)
    np.testing.assert_array_equal(y, x * column)
