"""`TensorSpec`: a tensor of torch by its shape, its elements and how it begins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ptokit.base.dataclass import dataclass
from ptokit.compat.torches import torch


@dataclass
class TensorSpec:
    """A tensor that is yet to be made; `init_value` is a number, a tensor, or what makes one."""

    name: str
    shape: Sequence[int]
    dtype: Any
    init_value: Any = None
    is_output: bool = False

    def create_tensor(self) -> Any:
        """A fresh one."""
        known = torch()
        start: Any = 0 if self.init_value is None else self.init_value
        if start in (known.randn, known.rand, known.zeros, known.ones):
            return start(tuple(self.shape), dtype=self.dtype)
        if callable(start):
            start = start()
        if isinstance(start, known.Tensor):
            return start.to(self.dtype)
        return known.full(tuple(self.shape), start, dtype=self.dtype)
