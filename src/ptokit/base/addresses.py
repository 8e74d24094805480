"""Where arrays lie. NumPy tells in a dictionary made for the purpose, which takes longer than a
launch has time for; the pointer itself is the first word of an array behind the head of all Python
objects, which is part of NumPy's binary interface."""

from __future__ import annotations

import ctypes
import sys
from typing import Any

import numpy as np

_HEAD = object.__basicsize__
_word = ctypes.c_size_t.from_address


def _told(array: np.ndarray[Any, Any]) -> int:
    return array.__array_interface__["data"][0]


def _read(array: np.ndarray[Any, Any]) -> int:
    return _word(id(array) + _HEAD).value


def _is_readable() -> bool:
    if sys.implementation.name != "cpython":
        return False
    whole = np.zeros(8)
    return all(_read(each) == _told(each) for each in (whole, whole[3:], whole[::-1]))


address_of = _read if _is_readable() else _told  # of the first element


def first_byte(array: np.ndarray[Any, Any]) -> int:
    """Where the bytes of an array begin, whichever way it goes."""
    if array.flags.c_contiguous:
        return address_of(array)
    return np.lib.array_utils.byte_bounds(array)[0]
