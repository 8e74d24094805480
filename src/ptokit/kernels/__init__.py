"""Kernels: what can be launched, and everything that can be asked of it.

    @kernel(mode="auto")
    def add(x, y, z): ...

    add[1](x, y, z, target="a2a3")     # runs the body as it stands: print and breakpoint() work
    add[1](x, y, z, path="lowered")    # the same through IR, placed and synchronised in auto mode
    add.text(x, y, z)                  # PTO text of this specialisation
    add.check("all", x, y, z)          # the rules of every target, as one table

    load("add.pto")["add"][4](x, y, z) # the same Kernel, from a text

There is one Kernel, one Launch and one Run. What differs between a Python function and a function
of a text is its `Source`. `execution.py` is the walk of a launch, in the order of its steps.
"""

from ptokit.kernels.kernel import Kernel
from ptokit.kernels.launch import LISTENERS, Launch
from ptokit.kernels.run import Run
from ptokit.kernels.source import Asked, Finished, Programs, Source

__all__ = ["LISTENERS", "Asked", "Finished", "Kernel", "Launch", "Programs", "Run", "Source"]
