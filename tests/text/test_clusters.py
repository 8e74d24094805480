"""Kernels of a module: what says it is one, and two halves that are launched together."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ptokit.from_text import loads

TEXT = (Path(__file__).parent / "run" / "pipe.pto").read_text("utf-8")


def halves(second: str = "") -> str:
    """The two halves of a product without the function that calls them."""
    start, end = TEXT.index("  func.func @both"), TEXT.index("  func.func private @cube")
    text = TEXT[:start] + TEXT[end:]
    text = text.replace(
        "private @cube(%x: !pto.ptr<f32>)", "@mul_aic(%x: !pto.ptr<f32>, %z: !pto.ptr<f32>)"
    )
    given = second or "%x: !pto.ptr<f32>, %z: !pto.ptr<f32>"
    text = text.replace("private @vector(%z: !pto.ptr<f32>)", f"@mul_aiv({given})")
    return text.replace("peer_func = @vector", "peer_func = @mul_aiv")


def test_halves_of_a_cluster_are_one_kernel() -> None:
    made = loads(halves(), "k.pto")
    assert made.kernels == ["mul"]
    x = np.random.default_rng(0).integers(-4, 4, (16, 16)).astype("f4")
    z = np.zeros_like(x)
    made.entry()[1](x, z)
    assert np.array_equal(z, x @ x)
    assert "@mul(" not in str(made)  # the text stays what it was
    assert 'extern "C" __global__ AICORE void mul(' in made.cpp()


def test_the_vector_half_may_ask_for_the_number_of_its_core() -> None:
    own = "    %core = pto.get_subblock_idx\n"
    text = halves("%x: !pto.ptr<f32>, %z: !pto.ptr<f32>, %core: i32")
    made = loads(text.replace(own, "").replace("%core : i64", "%core : i32"), "k.pto")
    assert own in text
    assert made.kernels == ["mul"]
    assert [p.name for p in made.entry().function.params] == ["x", "z"]
    x = np.random.default_rng(0).integers(-4, 4, (16, 16)).astype("f4")
    z = np.zeros_like(x)
    made.entry()[1](x, z)
    assert np.array_equal(z, x @ x)
    assert loads(str(made), "k.pto").kernels == ["mul"]


def test_halves_have_the_same_parameters() -> None:
    for other in ("%z: !pto.ptr<f32>", "%x: !pto.ptr<f32>, %z: !pto.ptr<f32>, %n: i64"):
        assert loads(halves(other), "k.pto").kernels == []


@pytest.mark.parametrize("mark", ["pto.entry", "pto.kernel", "pto.aicore", "hacc.entry"])
def test_a_kernel_says_that_it_is_one(mark: str) -> None:
    text = f"""func.func @helper() {{
      return
    }}
    func.func @k() attributes {{{mark}}} {{
      return
    }}"""
    assert loads(text).kernels == ["k"]


def test_the_only_function_that_others_see_is_a_kernel() -> None:
    text = "func.func @k() {\n  return\n}\nfunc.func private @h() {\n  return\n}"
    assert loads(text).kernels == ["k"]
    assert loads(text.replace("private ", "")).kernels == []
