"""Scatters to global memory that do not say whether they move rows or elements."""

from __future__ import annotations

import numpy as np
import pytest

from tests.text.kernels import kernel, ran, tile

DATA = tile("8x32xf32")


@pytest.mark.parametrize(("indexes", "moves"), [("8x32xi32", "elements"), ("1x8xi32", "rows")])
def test_the_sizes_of_the_indexes_tell(indexes: str, moves: str) -> None:
    table = "!pto.partition_tensor_view<8x32xf32>"
    made = kernel(
        f"pto.mscatter ins(%d, %i : {DATA}, {tile(indexes)}) outs(%t_g : {table})",
        {"d": DATA, "i": tile(indexes), "t": DATA},
        {},
    )
    rng = np.random.default_rng(3)
    data, found = rng.random((8, 32), np.float32), np.zeros((8, 32), np.float32)
    wanted = np.zeros((8, 32), np.float32)
    if moves == "elements":
        places = rng.permutation(256).reshape(8, 32).astype(np.int32)
        wanted.reshape(-1)[places.reshape(-1)] = data.reshape(-1)
    else:
        places = rng.permutation(8).reshape(1, 8).astype(np.int32)
        wanted[places[0]] = data
    ran(made, [data, places, found])
    np.testing.assert_array_equal(found, wanted)
