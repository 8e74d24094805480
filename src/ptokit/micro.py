"""The level below tiles on A5: vector registers in `with vecscope():`, single transfers, the cube.

from ptokit.micro import *

with vecscope():
    mask = pset_b32("PAT_ALL")
    x = vlds(ub, 0)
    vsts(vabs(x, mask), ub, 0, mask)
"""

from __future__ import annotations

from ptokit.frontend import micro_api as _api
from ptokit.frontend import scopes as _scopes
from ptokit.frontend.micro_api import *
from ptokit.frontend.scopes import *

__all__: list[str] = []
__all__ += _api.__all__
__all__ += _scopes.__all__
