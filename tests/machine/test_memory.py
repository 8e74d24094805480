"""Where the bytes of a memory lie in the computer that simulates it."""

from __future__ import annotations

import pytest

from ptokit.engines.compiled.memories import Memories
from ptokit.machine.memory import Storage, zeros


@pytest.mark.parametrize("nbytes", [1, 32, 100, 4096, 192 * 1024, 1 << 20])
def test_memories_begin_with_a_cache_line(nbytes: int) -> None:
    """A vector that lies across two lines is loaded twice: code would be as fast as the place
    lets it be that the computer happens to have free."""
    made = [Storage("UB", nbytes).data, zeros(nbytes)]  # all kept, so that each lies elsewhere
    for data in made:
        assert data.nbytes == nbytes
        assert not data.any()
        assert data.ctypes.data % 64 == 0


def test_threads_have_memories_that_begin_with_a_cache_line() -> None:
    memories = Memories([])
    memories.scratch = 100
    memories._number(Storage("UB", 4096).data)
    for addresses in (memories.addresses(), memories.more_addresses()):
        assert [int(place) % 64 for place in addresses._places] == [0, 0]
