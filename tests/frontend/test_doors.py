"""Findings that are no errors: every door has the same, at the same line."""

from __future__ import annotations

import linecache
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ptokit
from ptokit import *
from ptokit.base.diagnostics import Diagnostic, PtoWarning

X = np.ones((16, 64), np.float32)
T = Tile[TileType.Vec, float32, 16, 64]


@kernel
def overwrites(x: Any, n: Any) -> None:
    a, b, c = T(), T(), T()
    TASSIGN[0x0000](a)
    TASSIGN[0x0800](b)
    TASSIGN[0x2000](c)
    TLOAD(a, GlobalTensor(x))
    pipe_barrier(PIPE_ALL)
    TEXPANDS(b, 1.0)  # here
    pipe_barrier(PIPE_ALL)
    TADD(c, a, a)


@kernel(mode="auto")
def flags_in_auto(x: Any, n: Any) -> None:
    a = T()
    TLOAD(a, GlobalTensor(x))
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0)  # here
    for _ in range(n):
        wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0)  # here
    TSTORE(GlobalTensor(x), a)


@kernel(mode="auto")
def on_another_path(x: Any, n: Any) -> None:
    a, b = T(), Tile[TileType.Vec, float32, 8, 64]()
    TLOAD(a, GlobalTensor(x))
    TLOAD(b, GlobalTensor(x)[0:8, :])
    if n > 5:
        TADD(b, a, b)  # here
    TSTORE(GlobalTensor(x), a)


def told(ask: Callable[[], Any]) -> list[Diagnostic]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ask()
    return [w.message.diagnostic for w in caught if isinstance(w.message, PtoWarning)]


DOORS: dict[str, Callable[[Kernel], list[Diagnostic]]] = {
    "eager": lambda k: list(k[1](X.copy(), 2).warnings),
    "eager again": lambda k: [k[1](X.copy(), 2), *k[1](X.copy(), 2).warnings][1:],
    "lowered": lambda k: list(k[1](X.copy(), 2, path="lowered").warnings),
    "reference": lambda k: list(
        k[1](X.copy(), 2, path="lowered", engine="reference", check="full").warnings
    ),
    "check": lambda k: list(k.check("a2a3", X, 2).diagnostics),
    "cpp": lambda k: told(lambda: k.cpp(X, 2)),
    "text": lambda k: told(lambda: k.text(X, 2)),
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(
    ("kernel", "code"),
    [(overwrites, "tile-overlap"), (flags_in_auto, "E15"), (on_another_path, "PA-0020")],
    ids=lambda v: getattr(v, "name", v),
)
def test_every_door_warns_of_the_same_lines(door: str, kernel: Kernel, code: str) -> None:
    found = DOORS[door](Kernel(kernel.source))  # one that has said nothing yet
    lines = [linecache.getline(d.location.file, d.location.line) for d in found if d.location]
    assert {d.code for d in found} == {code}
    assert all(line.endswith("# here\n") for line in lines)
    source = linecache.getlines(__file__)
    first = kernel.function.__code__.co_firstlineno
    marked = [n for n, line in enumerate(source, 1) if line.endswith("# here\n")]
    last = min((n for n, line in enumerate(source, 1) if n > first and not line.strip()))
    assert [d.location.line for d in found if d.location] == [n for n in marked if first < n < last]


@pytest.mark.parametrize("path", ["eager", "lowered"])
def test_what_is_allowed_is_not_told(path: str) -> None:
    for allow, codes in (((), ["tile-overlap"]), (("tile-overlap",), []), ((), ["tile-overlap"])):
        found = overwrites[1](X.copy(), 2, path=path, allow=allow).warnings
        assert [d.code for d in found] == codes


@kernel
def reshaped(x: Any, n: Any) -> None:
    """The tile that TRESHAPE binds has no address of its own; the others are placed by hand."""
    a, wide = T(), Tile[TileType.Vec, float32, 16, 128]()
    TASSIGN(a, 0)
    TLOAD(a, GlobalTensor(x))
    pipe_barrier(PIPE_ALL)
    if n > 5:
        TRESHAPE(wide, a)  # here
        TADDS(wide, wide, 1.0)
        pipe_barrier(PIPE_ALL)
    TSTORE(GlobalTensor(x), a)


@pytest.mark.parametrize("door", DOORS)
def test_every_door_refuses_what_another_path_breaks(door: str) -> None:
    if door == "check":
        found = reshaped.check("a2a3", X, 2).diagnostics
    else:
        with pytest.raises(ProgramError) as caught:
            DOORS[door](reshaped)
        found = caught.value.diagnostics
    assert [d.code for d in found] == ["SA-0305"]
    lines = [linecache.getline(d.location.file, d.location.line) for d in found if d.location]
    assert all(line.endswith("# here\n") for line in lines)


# ---- slices --------------------------------------------------------------------------------------

Row = Tile[TileType.Vec, float32, 4, 64]
Loose = Tile[TileType.Vec, float32, 16, 64, BLayout.RowMajor, DYNAMIC, DYNAMIC]


@kernel(mode="auto")
def part_of_a_part(x: Any, y: Any, n: Any) -> None:
    t = Row()
    part = GlobalTensor(x)[4:12, :]
    TLOAD(t, part[n : n + 4, :])  # here
    TSTORE(GlobalTensor(y)[0:4, :], t)


@kernel(mode="auto")
def part_of_a_moving_part(x: Any, y: Any, n: Any) -> None:
    t = Row()
    part = GlobalTensor(x)[n : n + 6, :]  # here
    for i in range(2):
        TLOAD(t, part[i : i + 4, :])
    TSTORE(GlobalTensor(y)[0:4, :], t)


@kernel(mode="auto")
def all_of_a_growing_part(x: Any, y: Any, n: Any) -> None:
    t = Row()
    part = GlobalTensor(x)[2 : 3 + n, :]  # here
    TLOAD(t, part[0:4, :])  # here
    TSTORE(GlobalTensor(y)[0:4, :], t)


@kernel(mode="auto")
def as_much_as_there_is(x: Any, y: Any, n: Any) -> None:
    t = Loose(16 - n, 64)  # here
    part = GlobalTensor(x)[n:16, :]  # here
    TLOAD(t, part[0 : 16 - n, :])  # here
    TSTORE(GlobalTensor(y)[n:, :], t)


@kernel(mode="auto")
def part_of_a_part_of_a_part(x: Any, y: Any, n: Any) -> None:
    t = Tile[TileType.Vec, float32, 4, 16]()
    first = GlobalTensor(x)[1:15, 16:64]
    second = first[n : n + 8, 0:32]  # here
    TLOAD(t, second[4:8, n : n + 16])  # here
    TSTORE(GlobalTensor(y)[0:4, 0:16], t)


@kernel(mode="auto")
def part_that_nobody_moves(x: Any, y: Any, n: Any) -> None:
    part = GlobalTensor(x)[8:12, :]
    part[n : n + 2, :]  # here
    t = T()
    TLOAD(t, GlobalTensor(x))
    TSTORE(GlobalTensor(y), t)


SLICED = (
    *(part_of_a_part, part_of_a_moving_part, all_of_a_growing_part, as_much_as_there_is),
    *(part_of_a_part_of_a_part, part_that_nobody_moves),
)


def verdict(run: Callable[[Any, Any], Any]) -> tuple[str, int, bytes]:
    """The code and line of what is wrong, or the bytes."""
    x = np.arange(16 * 64, dtype=np.float32).reshape(16, 64)
    y = np.zeros_like(x)
    try:
        run(x, y)
    except ProgramError as error:
        found = error.diagnostics[0]
        return found.code, found.location.line if found.location else 0, b""
    return "", 0, y.tobytes()


@pytest.mark.parametrize("n", range(-2, 19, 2))
@pytest.mark.parametrize("kernel", SLICED, ids=lambda k: k.name)
def test_a_slice_lies_in_what_it_is_a_slice_of(kernel: Kernel, n: int) -> None:
    eager = verdict(lambda x, y: kernel[1](x, y, n))
    assert eager == verdict(lambda x, y: kernel[1](x, y, n, path="lowered"))
    assert eager == verdict(lambda x, y: kernel[1](x, y, n, path="lowered", engine="reference"))
    for form in ("l2", "l3"):
        text = kernel.text(X, X, n, form=form)
        code, _, left = verdict(lambda x, y, text=text: ptokit.loads(text)[kernel.name][1](x, y, n))
        assert (code, left) == (eager[0], eager[2])
    if eager[1]:
        assert linecache.getline(__file__, eager[1]).endswith("# here\n")
