"""Programs of ranks on their way to other machines, which have neither their files nor memory."""

from __future__ import annotations

import linecache
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ptokit import *
from ptokit.comm import World
from ptokit.frontend.rank_sending import received, sent

pytest.importorskip("ray.cloudpickle")

FILE = """
import numpy as np
from ptokit import *

times = 2

@kernel(mode="auto")
def scaled(x, y):
    t = Tile[TileType.Vec, float32, 16, 64]()
    TLOAD(t, GlobalTensor(x))
    TMULS(t, t, float(times))
    TSTORE(GlobalTensor(y), t)

def helper(n): return program if n < 0 else n + times

both = (lambda n: helper(n)), (lambda n: -helper(n))

def program(rank, data):
    scaled[1](data.local, data.local, path="lowered")
    return [float(data.local[0, 0]), *(each(rank) for each in both)]
"""
THERE = """
import sys
from pathlib import Path
from ptokit.comm import World
from ptokit.frontend.rank_sending import received
world = World(2)
world.window((16, 64), fill=3)
program, args = received(world, Path(sys.argv[1]).read_bytes())
print(world.run(program, *args))
"""


def loaded(path: Path) -> Any:
    """A file as Python runs it: what it defines is found under no name of a module."""
    path.write_text(FILE)
    spec = spec_from_file_location("nowhere", path)
    assert spec is not None
    assert spec.loader is not None
    made = module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def elsewhere(data: bytes, folder: Path) -> str:
    """What the ranks of another process return."""
    (folder / "data").write_bytes(data)
    words = [sys.executable, "-c", THERE, str(folder / "data")]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()


def test_a_program_goes_as_its_source(tmp_path: Path) -> None:
    """Its kernels can be lowered there, though nobody has the file."""
    path, world = tmp_path / "ranks.py", World(2)
    window = world.window((16, 64), fill=3)
    program = loaded(path).program
    data = sent(world, program, (window,))
    assert b"TMULS(t, t, float(times))" in data
    assert b"CodeType" not in data, "nothing that was compiled"
    path.unlink()
    assert elsewhere(data, tmp_path) == "[[6.0, 2, -2], [6.0, 3, -3]]"


def test_what_a_file_does_not_say_any_more_goes_as_it_was_compiled(tmp_path: Path) -> None:
    path, world = tmp_path / "ranks.py", World(2)
    window, program = world.window((16, 64), fill=3), loaded(tmp_path / "ranks.py").program
    path.write_text(FILE.replace("n + times", "n - times"))
    linecache.checkcache(str(path))
    data = sent(world, program, (window,))
    assert b"CodeType" in data
    assert elsewhere(data, tmp_path) == "[[6.0, 2, -2], [6.0, 3, -3]]"


def test_a_module_that_is_not_there_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "module_of_ranks.py").write_text("def program(rank): return rank\n")
    monkeypatch.syspath_prepend(tmp_path)
    import module_of_ranks  # type: ignore[import-not-found]  # pyright: ignore

    world = World(2)
    data = sent(world, module_of_ranks.program, ())
    monkeypatch.undo()
    monkeypatch.delitem(sys.modules, "module_of_ranks")
    with pytest.raises(PtoError, match="cannot be read on its machine: No module named"):
        received(world, data)


@pytest.mark.parametrize("rows", [slice(2, 5), slice(None, None, -2), slice(7, None, 3)])
def test_a_part_of_a_window_is_that_part_there(rows: slice) -> None:
    here, there = World(2), World(2)
    for each in (here, there):
        each.window((8, 4))
    data = sent(here, max, (here.windows[0][1][rows, 1:], np.ones(2)))
    part, other = received(there, data)[1]
    part[...] = 5
    expected = np.zeros((8, 4), np.float32)
    expected[rows, 1:] = 5
    assert np.array_equal(there.windows[0][1], expected)
    assert not other.flags.writeable
