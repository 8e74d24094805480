"""What a kernel reads beside its arguments may change between launches: both paths must see it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import ptokit
from ptokit import *

V = Tile[TileType.Vec, float32, 16, 16]


@dataclass
class Settings:
    scale: float = 1.0
    table: list[float] = field(default_factory=lambda: [1.0, 2.0])

    def twice(self) -> float:
        return 2 * self.scale


class Constants:
    SCALE = 1.0


settings = Settings()
module = ModuleType("users_module")
scale = 1.0
scales = [1.0, 2.0]
by_name = {"scale": 1.0}
array = np.ones(3, np.float32)
pair = (1.0, [1.0])


def helper() -> float:
    return scale


def one() -> float:
    return 1.0


def three() -> float:
    return 3.0


chosen: Callable[[], float] = one


def _set(name: str, value: Any) -> None:
    globals()[name] = value


# How a kernel finds a number, and what changes it; each from 1.0 to 3.0.
CHANGES: dict[str, tuple[Callable[[], float], Callable[[float], Any]]] = {
    "a global": (lambda: scale, partial(_set, "scale")),
    "a global of a helper": (lambda: helper(), partial(_set, "scale")),
    "a helper": (
        lambda: chosen(),
        lambda v: _set("chosen", three if v == 3.0 else one),
    ),
    "an element of a list": (lambda: scales[0], lambda v: scales.__setitem__(0, v)),
    "an entry of a dict": (lambda: by_name["scale"], lambda v: by_name.update(scale=v)),
    "an attribute": (lambda: settings.scale, lambda v: setattr(settings, "scale", v)),
    "a list of an object": (
        lambda: settings.table[0],
        lambda v: settings.table.__setitem__(0, v),
    ),
    "what a method reads": (
        lambda: settings.twice() / 2,
        lambda v: setattr(settings, "scale", v),
    ),
    "an attribute of a class": (
        lambda: Constants.SCALE,
        lambda v: setattr(Constants, "SCALE", v),
    ),
    "an attribute of a module": (
        lambda: module.scale,
        lambda v: setattr(module, "scale", v),
    ),
    "an element of an array": (lambda: float(array[1]), lambda v: array.__setitem__(1, v)),
    "a list in a tuple": (lambda: pair[1][0], lambda v: pair[1].__setitem__(0, v)),
}


@pytest.mark.parametrize("path", ["eager", "lowered"])
@pytest.mark.parametrize("what", CHANGES)
def test_a_launch_sees_what_has_changed(what: str, path: str) -> None:
    number, change = CHANGES[what]

    @kernel(mode="auto")
    def fill(y: Any) -> None:
        t = V()
        TEXPANDS(t, number())
        TSTORE(GlobalTensor(y), t)

    y = np.zeros((16, 16), np.float32)
    for value in (1.0, 3.0, 1.0):
        change(value)
        fill[1](y, path=path)
        assert (y == value).all()


@pytest.mark.parametrize("path", ["eager", "lowered"])
def test_a_variable_around_the_kernel(path: str) -> None:
    value = 1.0

    @kernel(mode="auto")
    def fill(y: Any) -> None:
        t = V()
        TEXPANDS(t, value)
        TSTORE(GlobalTensor(y), t)

    y = np.zeros((16, 16), np.float32)
    for value in (1.0, -0.0, 0.0, 3.0):
        fill[1](y, path=path)
        assert (y.view(np.uint32) == np.float32(value).view(np.uint32)).all()


@pytest.mark.parametrize("path", ["eager", "lowered"])
def test_the_verdict_is_of_the_tiles_that_are_there_now(path: str) -> None:
    size = 16

    @kernel(mode="auto")
    def fill(y: Any) -> None:
        t = Tile[TileType.Vec, float32, size, 256]()
        TEXPANDS(t, 1.0)
        TSTORE(GlobalTensor(y)[:16, :], t)

    y = np.zeros((16, 256), np.float32)
    fill[1](y, path=path)
    size = 256  # 256 KB, where 192 are
    with pytest.raises(ptokit.ProgramError, match=r"place\.overflow"):
        fill[1](y, path=path)


def test_equal_values_are_lowered_once() -> None:
    """A launch finds the program of an earlier one, also after a value has been there and back."""
    value = [1.0]

    @kernel(mode="auto")
    def fill(y: Any) -> None:
        t = V()
        TEXPANDS(t, value[0])
        TSTORE(GlobalTensor(y), t)

    y = np.zeros((16, 16), np.float32)
    first = fill.lower(y)
    assert fill.lower(y) is first
    value[0] = 2.0
    assert fill.lower(y) is not first
    value = [1.0]
    assert fill.lower(y) is first
