"""A micro-operation over operands of known types, as it is handed to the machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ptokit.base.dtypes import DType
from ptokit.base.namedtuple import NamedTuple
from ptokit.isa.micro.spec import Micro, Vector


class Typed(NamedTuple):
    """A record, with what is known of its operands and results by their names."""

    record: Micro
    kinds: Mapping[str, DType]  # of registers and pointers
    sizes: Mapping[str, int]  # the bytes of a lane of each mask
    vectors: Mapping[str, Vector]  # of an operation on logical vectors, whatever is known
    words: Mapping[str, Any]  # those that are written
    results: int  # how many are wanted
