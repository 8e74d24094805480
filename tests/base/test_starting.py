"""Packages that load when they are used, whoever imports them, and however."""

from __future__ import annotations

import functools
import inspect
import math
import operator
import subprocess
import sys
from typing import Any

import pytest

from ptokit.base.starting import parameters_of

BEGIN = """
import sys
from ptokit.base.starting import late
late("numpy")
import numpy as np
import numpy as again
assert np is again is sys.modules["numpy"]
assert "numpy._core" not in sys.modules, "an import statement is no use"
"""


@pytest.mark.parametrize(
    "use",
    [
        "assert np.zeros(3).sum() == 0",
        "from numpy import zeros; zeros(3)",
        "import numpy.linalg; assert numpy.linalg.norm(np.ones(4)) == 2",
        "from numpy.typing import NDArray",
        "import ml_dtypes; np.zeros(3, ml_dtypes.bfloat16)",  # which asks NumPy for its own parts
        "assert not hasattr(np, 'no_such_thing'); np.zeros(3)",
    ],
)
def test_the_first_use_loads(use: str) -> None:
    run(f"{BEGIN}\n{use}\nassert 'numpy._core' in sys.modules\nassert type(np) is type(sys)")


def test_threads_wait_until_all_is_there() -> None:
    run(f"""{BEGIN}
from threading import Barrier, Thread
start, found = Barrier(8), []
def use():
    start.wait()
    found.append(np.zeros(3).sum() + np.linalg.norm(np.ones(4)))
threads = [Thread(target=use) for _ in range(8)]
for each in threads: each.start()
for each in threads: each.join()
assert found == [2.0] * 8, found
""")


def test_what_is_loaded_stays() -> None:
    run("""
import sys, json
from ptokit.base.starting import late
late("json"), late("no_such_package")
assert sys.modules["json"] is json and json.dumps(1) == "1"
assert "no_such_package" not in sys.modules
""")


def test_a_namespace_of_ours_loads_when_it_is_used() -> None:
    run("""
import sys
from ptokit import *
assert "ptokit.frontend.comm_api" not in sys.modules
assert callable(comm.World)
import ptokit.comm
assert ptokit.comm is comm
""")


def run(code: str) -> None:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "function",
    [operator.add, operator.neg, len, divmod, pow, print, sorted, math.gcd, math.hypot, str.split,
     lambda a, *, b: a, lambda *a: a, functools.wraps(len)(lambda x: x)],
    ids=lambda function: function.__name__,
)  # fmt: skip
def test_parameters_are_those_of_the_signature(function: Any) -> None:
    """Of what is written in C they are read from a text, where nothing else is said there."""
    try:
        wanted = tuple(inspect.signature(function).parameters)
    except ValueError:  # nobody knows
        with pytest.raises(ValueError, match="no signature"):
            parameters_of(function)
        return
    assert parameters_of(function) == wanted
