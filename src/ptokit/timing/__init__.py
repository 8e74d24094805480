"""How long a launch takes on a device, and why.

A launch is walked once, with or without data, and leaves what each core issued (`streams.py`). The
model (`model.py`) lets the pipes of all cores work it off as discrete events, with the numbers of
the target's parameter file (`params.py`, `params/*.toml`). `report.py` says what came of it.
"""

from ptokit.timing.report import Timing, compare

__all__ = ["Timing", "compare"]
