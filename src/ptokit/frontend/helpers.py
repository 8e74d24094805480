"""Words a kernel may use that are neither instructions nor types."""

from __future__ import annotations

from collections.abc import Iterator

from ptokit.base.entry import public
from ptokit.frontend.arguments import template


@public
class static_range:  # noqa: N801 - used like `range`
    """A range whose loop is always unrolled, so that its variable is known at compile time."""

    def __init__(self, *bounds: int) -> None:
        with template("static_range", "static_range(start, stop, step)", bounds, "arguments"):
            self._range = range(*bounds)

    def __iter__(self) -> Iterator[int]:
        return iter(self._range)

    def __len__(self) -> int:
        return len(self._range)
