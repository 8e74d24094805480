"""Kernels: both paths give the same bytes, and what cannot be lowered is named at its line."""

from __future__ import annotations

import linecache

import numpy as np
import pytest

from ptokit import Kernel, PtoError, Tile, TileType, float16, float32
from ptokit.ir.parser import parse
from ptokit.ir.printer import print_module
from ptokit.ir.rewrite import same_module
from tests.frontend import kernels as k

X = np.arange(16 * 64, dtype=np.float32).reshape(16, 64) / 64

RUNS = [
    (k.carried_number, (7,), lambda x: x + (0 + 2 + 4 + 6 + 3 * 0.5)),
    (k.carried_number, (0,), lambda x: x),
    (k.swapped_tiles, (0,), lambda x: x),
    (k.swapped_tiles, (3,), None),
    (k.while_loop, (9,), lambda x: x * 16),
    (k.early_return, (4,), lambda x: x),
    (k.early_return, (3,), lambda x: x * 2),
    (k.scalar_arithmetic, (5, 2.5), None),
    (k.scalar_arithmetic, (12, 9.5), None),
    (k.dynamic_valid, (5,), None),
    (k.tiles_from_a_list, (), lambda x: x * 6),
    (k.with_events, (), lambda x: x + 1),
    (k.hidden_scratch, (), lambda x: np.rint(x * 4) * 4),
]


@pytest.mark.parametrize(("kernel", "numbers", "expected"), RUNS, ids=lambda v: str(v)[:24])
@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_both_paths_give_the_same_bytes(
    kernel: Kernel, numbers: tuple[float, ...], expected: object, target: str
) -> None:
    results = []
    for path in ("eager", "lowered"):
        y = np.full_like(X, -1)
        kernel[1](X, y, *numbers, target=target, path=path)
        results.append(y)
    assert np.array_equal(*results)
    if expected is not None:
        assert np.array_equal(results[0], expected(X))  # type: ignore[operator]


@pytest.mark.parametrize(("kernel", "numbers", "expected"), RUNS, ids=lambda v: str(v)[:24])
def test_the_text_of_a_kernel_reads_back(
    kernel: Kernel, numbers: tuple[float, ...], expected: object
) -> None:
    module = kernel.lower(X, np.zeros_like(X), *numbers)
    text = print_module(module)
    assert same_module(parse(text, "kernel.pto"), module)


@pytest.mark.parametrize("kernel", k.CANNOT, ids=lambda kernel: kernel.name)
def test_what_cannot_be_lowered_is_named_at_its_line(kernel: Kernel) -> None:
    code, sentence = k.CANNOT[kernel]
    with pytest.raises(PtoError) as caught:
        kernel.lower(X, 2)
    (found,) = caught.value.diagnostics
    assert (found.code, sentence in found.message) == (code, True)
    assert found.location is not None
    assert found.location.file == k.__file__
    line = linecache.getline(k.__file__, found.location.line)
    assert found.location.text == line.rstrip("\n") != ""


def test_constants_specialise_and_lowering_is_cached() -> None:
    y = np.zeros_like(X)
    assert k.dynamic_valid.lower(X, y, 3) is k.dynamic_valid.lower(X, y, 9)
    assert k.dynamic_valid.lower(X, y, 3) is not k.dynamic_valid.lower(X[:8], y, 3)


def test_a_kernel_is_launched_with_brackets() -> None:
    with pytest.raises(PtoError, match=r"with_events\[1\]"):
        k.with_events(X, X)
    with pytest.raises(PtoError, match="missing a required argument: 'y'"):
        k.with_events[1](X)
    with pytest.raises(PtoError, match="positive number of blocks"):
        k.with_events[0]


def test_check_reports_every_target() -> None:
    y = np.zeros_like(X)
    report = k.with_events.check("all", X, y)
    assert report
    assert [line.split()[:2] for line in str(report).splitlines()[1:]] == [
        ["a2a3", "ok"], ["a5", "ok"], ["kirin9030", "ok"], ["kirinx90", "ok"],
    ]  # fmt: skip


def test_the_memory_map_shows_and_draws() -> None:
    y = np.zeros_like(X)
    found = k.tiles_from_a_list.memory_map(X, y)
    assert "UB  12288 of 196608 bytes used" in str(found)
    assert found.svg().startswith("<svg")
    assert found.svg().count("<title>") == 3


def test_cpp_of_a_kernel() -> None:
    source = k.with_events.cpp(X, np.zeros_like(X))
    lines = [line.strip() for line in source.splitlines()]
    for expected in (
        "#include <pto/pto-inst.hpp>",
        'extern "C" __global__ AICORE void with_events(__gm__ float *x, __gm__ float *y)',
        "using Block = Tile<TileType::Vec, float, 16, 64>;",
        "TASSIGN(b, 0x1000);",
        "set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);",
        "wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);",
        "TADDS(b, a, 1.0f);",
    ):
        assert expected in lines


@pytest.mark.parametrize("form", ["sync", "l1", "l2", "l3"])
def test_text_in_every_form(form: str) -> None:
    y = np.zeros_like(X)
    text = k.straight.text(X, y, form=form)
    marks = {"sync": "tadds %", "l1": "pto.tadds %", "l2": "outs(", "l3": "addr ="}
    assert marks[form] in text
    assert ("pto.set_flag" in text) == (form == "l3")


def test_tiles_that_overlap_while_live_are_a_warning() -> None:
    report = k.overlapping.check("a2a3,a5", X, np.zeros_like(X))
    assert report
    assert "a2a3       ok, 1 warnings" in str(report)
    (first, _) = report.diagnostics
    assert first.code == "tile-overlap"
    assert "%b overwrites bytes of %a" in first.message


@pytest.mark.parametrize(
    ("kernel", "code"), [(k.beyond_the_end, "memory-bounds"), (k.misaligned, "SA-0354")]
)
def test_addresses_of_manual_kernels_are_checked_statically(kernel: Kernel, code: str) -> None:
    report = kernel.check("a2a3", X)
    assert not report
    assert code in [d.code for d in report.diagnostics]


@pytest.mark.parametrize("path", ["eager", "lowered"])
def test_a_tile_without_an_address_is_refused_on_both_paths(path: str) -> None:
    """At the first use of the tile; one that TRESHAPE places is fine."""
    with pytest.raises(PtoError) as refused:
        k.one_tile_unbound[1](X, np.zeros_like(X), 1, path=path, target="a5")
    (problem,) = refused.value.diagnostics
    assert problem.code == "unbound-tile"
    assert problem.message == "TADDS: dst has no address"
    assert "third" in linecache.getline(problem.location.file, problem.location.line)


def test_check_names_tiles_without_an_address() -> None:
    report = k.one_tile_unbound.check("all", X, np.zeros_like(X), 1)
    assert {d.code for d in report.diagnostics} == {"unbound-tile"}
    assert len(report.diagnostics) == 4


@pytest.mark.parametrize(
    "kind",
    [
        Tile[TileType.Vec, float32, 16, 32],
        Tile[TileType.Vec, float16, 16, 64],
        Tile[TileType.Vec, float32, 32, 32],
    ],
    ids=str,
)
@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_auto_mode_reshapes_alike_on_both_paths(kind: type[Tile], target: str) -> None:
    """Auto mode does not check TRESHAPE; what fits into the old tile is placed over it."""
    results = []
    for path in ("eager", "lowered"):
        z = np.zeros_like(X)
        k.smaller_name[1](X, z, path=path, target=target, kind=kind)
        results.append(z)
    assert results[0].tobytes() == results[1].tobytes()
    assert results[0].tobytes() != X.tobytes()
