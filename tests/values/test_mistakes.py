"""What is easily written by those who come from NumPy: it works, or the message says what does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ptokit import *
from ptokit.base.diagnostics import ProgramError
from ptokit.values import *

PATHS = ["eager", "lowered"]
X = np.linspace(0.5, 2.5, 16 * 64, dtype=np.float32).reshape(16, 64)


def launched(body: Callable[..., None], path: str, *args: Any) -> Any:
    kernel(mode="auto")(body)[1](*args, path=path)
    return args[-1]


def refused(body: Callable[..., None], path: str, *args: Any) -> str:
    with pytest.raises(ProgramError) as error:
        launched(body, path, *args)
    return str(error.value)


def copied(x, y):
    store(y, load(x))


def copied_across(x, y):
    store(y.T, load(x.T))


@pytest.mark.parametrize("path", PATHS)
class TestArraysByColumns:
    def test_an_array_that_lies_by_columns_is_loaded(self, path):
        x = np.asfortranarray(X)
        assert np.array_equal(launched(copied, path, x, np.zeros_like(X)), X)

    def test_an_array_that_lies_by_columns_is_stored_to(self, path):
        y = np.zeros_like(X, order="F")
        assert np.array_equal(launched(copied, path, X, y), X)

    @pytest.mark.parametrize("order", ["C", "F"])
    def test_a_part_is_transposed_where_it_is_moved(self, path, order):
        x, y = X.copy(order), np.zeros_like(X, order=order)
        assert np.array_equal(launched(copied_across, path, x, y), X)

    def test_a_slice_of_an_array_that_lies_by_columns(self, path):
        def body(x, y):
            store(y, load(x[8:16, 16:48]))

        y = np.zeros((8, 32), np.float32)
        assert np.array_equal(launched(body, path, np.asfortranarray(X), y), X[8:16, 16:48])

    def test_a_product_of_one(self, path):
        def body(x, y, z):
            store(z, dot(x, y))

        a, b = (np.asfortranarray(n) for n in np.ones((2, 32, 32), np.float16))
        a[3, 4] = 2
        product = launched(body, path, a, b, np.zeros((32, 32), np.float32))
        assert np.array_equal(product, a.astype(np.float32) @ b.astype(np.float32))


@pytest.mark.parametrize("path", PATHS)
class TestStore:
    @pytest.mark.parametrize("element", [np.int32, np.float16])
    def test_an_array_of_another_type_is_refused_with_the_conversion(self, path, element):
        said = refused(copied, path, X, np.zeros(X.shape, element))
        assert "error[value-type]" in said
        short = {np.int32: "i32", np.float16: "f16"}[element]
        assert f"store(y, value.to('{short}')) converts it" in said

    def test_the_conversion_that_is_offered_works(self, path):
        def body(x, y):
            store(y, load(x).to("f16"))

        y = np.zeros(X.shape, np.float16)
        assert np.array_equal(launched(body, path, X, y), X.astype(np.float16))

    @pytest.mark.parametrize("shape", [(16, 32), (8, 64), (32, 128)])
    def test_a_part_of_another_size_is_refused(self, path, shape):
        said = refused(copied, path, X, np.zeros(shape, np.float32))
        assert "error[value-shape]" in said
        assert f"value = 16x64, part = {shape[0]}x{shape[1]}" in said


@pytest.mark.parametrize("path", PATHS)
class TestNumPy:
    @pytest.mark.parametrize("function", [np.exp, np.sqrt, np.negative, np.absolute])
    def test_its_functions_of_one_element_are_ours(self, path, function):
        def body(x, y):
            store(y, function(load(x)))

        y = launched(body, path, X, np.zeros_like(X))
        assert np.allclose(y, function(X), rtol=1e-6)

    def test_its_functions_of_two_elements_are_ours(self, path):
        def body(x, y):
            t = load(x)
            store(y, np.maximum(np.float32(2) - t, np.divide(t, 4.0)))

        y = launched(body, path, X, np.zeros_like(X))
        assert np.array_equal(y, np.maximum(2 - X, X / 4))

    @pytest.mark.parametrize("sign", ["<", "<=", ">", ">="])
    def test_one_of_its_numbers_on_the_left_of_a_comparison(self, path, sign):
        compare = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}[sign]

        def body(x, y):
            store(y, where(compare(np.float32(1.5), load(x)), 1.0, 0.0))

        y = launched(body, path, X, np.zeros_like(X))
        assert np.array_equal(y, compare(np.float32(1.5), X).astype(np.float32))

    @pytest.mark.parametrize(
        ("function", "instead"),
        [
            (np.sum, "rowsum(a) or colsum(a)"),
            (lambda a: np.where(a, 1, 0), "where(a)"),
            (np.asarray, "load(x[i:j, :])"),
        ],
    )
    def test_what_there_is_instead(self, path, function, instead):
        def body(x, y):
            store(y, function(load(x)))

        said = refused(body, path, X, np.zeros_like(X))
        assert "error[value-operand]" in said
        assert instead in said


def by_method_exp(x, y):
    store(y, load(x).exp())


def by_method_sum(x, y):
    store(y, load(x).sum())


def by_method_astype(x, y):
    store(y, load(x).astype(float16))


METHODS = {"exp": by_method_exp, "sum": by_method_sum, "astype": by_method_astype}


@pytest.mark.parametrize("path", PATHS)
class TestWords:
    def test_two_element_types(self, path):
        def body(x, h, y):
            store(y, load(x) + load(h))

        said = refused(body, path, X, X.astype(np.float16), np.zeros_like(X))
        assert "bring both to one type: a.to(b.dtype)" in said

    @pytest.mark.parametrize(
        ("name", "instead"),
        [("exp", "exp(a)"), ("sum", "rowsum(a) or colsum(a)"), ("astype", "a.to(float16)")],
    )
    def test_a_method_that_is_a_function(self, path, name, instead):
        said = refused(METHODS[name], path, X, np.zeros_like(X))
        assert f"error[unknown-attribute]: a value has no attribute '{name}'" in said
        assert f"fix: write {instead}" in said
        assert f"{__file__}:" in said

    def test_brackets(self, path):
        def body(x, y):
            store(y, load(x)[0:8, :])

        said = refused(body, path, X, np.zeros_like(X))
        assert "a value has no brackets" in said
        assert "index = 0:8, :" in said

    def test_the_larger_one(self, path):
        def body(x, y):
            store(y, max(load(x), 1.0))

        assert "maximum(a, b)" in refused(body, path, X, np.zeros_like(X))

    def test_an_attribute_that_is_not_there_can_be_asked_for(self, path):
        def body(x, y):
            t = load(x)
            store(y, t if getattr(t, "missing", None) is None else -t)

        assert np.array_equal(launched(body, path, X, np.zeros_like(X)), X)
