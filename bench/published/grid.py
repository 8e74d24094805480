"""How a matrix is divided between cores, and what a launch is made of."""

from __future__ import annotations

from typing import Any, NamedTuple


class Case(NamedTuple):
    """A kernel with its blocks, arguments and constants."""

    kernel: Any
    blocks: int
    args: tuple[Any, ...]
    consts: dict[str, Any]


def across(cores: int, m: int, n: int, tile: tuple[int, int]) -> tuple[int, int]:
    """Cores along M and N: whole tiles for each, the busiest with the fewest and least to load."""
    ways = [(i, cores // i) for i in range(1, cores + 1) if cores % i == 0]

    def work(way: tuple[int, int]) -> tuple[int, float]:
        rows, columns = (up(size, t * w) for size, t, w in zip((m, n), tile, way, strict=True))
        return rows * columns, rows * tile[0] + columns * tile[1]

    return min(ways, key=work)


def up(size: int, step: int) -> int:
    """How many steps cover a size."""
    return -(-size // step)
