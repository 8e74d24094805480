"""Several pipes of a function, told apart by their ids."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ptokit.base.diagnostics import PtoError
from ptokit.from_text import loads

TEXT = (Path(__file__).parent / "run" / "two_pipes.pto.in").read_text("utf-8")


def two_pipes(first: int, second: int, more: str = "") -> str:
    """The program with these ids, and more keys for both pipes."""
    text = TEXT.replace("<first>", str(first)).replace("<second>", str(second))
    return text.replace("<more>", more)


@pytest.mark.parametrize("ids", [(0, 1), (5, 2)])
@pytest.mark.parametrize("more", ["", ", slot_num = 2"])
def test_pipes_do_not_mix_their_entries(ids: tuple[int, int], more: str) -> None:
    made = loads(two_pipes(*ids, more), "k.pto")
    assert not [d for d in made.check() if d.severity == "error"]
    x = np.random.default_rng(0).integers(-4, 4, (16, 16)).astype("f4")
    z, y = np.zeros_like(x), np.zeros_like(x)
    made["both"][1](x, z, y)
    assert np.array_equal(z, x @ x)
    assert np.array_equal(y, 2 * (x @ x))
    assert str(loads(str(made))) == str(made)


def test_a_transfer_names_a_pipe_that_was_opened() -> None:
    text = two_pipes(0, 1).replace("%acc : !acc) {id = 1", "%acc : !acc) {id = 7")
    x = np.zeros((16, 16), "f4")
    with pytest.raises(PtoError, match="pipe 7"):
        loads(text, "k.pto")["both"][1](x, x.copy(), x.copy())


def test_a_pipe_has_a_buffer_for_each_direction() -> None:
    text = two_pipes(0, 1).replace("(c2v_consumer_buf = %near1 : i32)", "()")
    found = [d for d in loads(text, "k.pto").check() if d.code == "pipe-address"]
    assert len(found) == 1
    assert "aiv_initialize_pipe" in found[0].location.text
