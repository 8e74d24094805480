"""Logical vectors of A5, of any number of lanes, in `with vecscope():`.

from ptokit import vmi
from ptokit.micro import *

with vecscope():
    x = vmi.vload[128](ub, 0)
    vmi.vstore(vmi.vabs(x), ub, 0)
"""

from __future__ import annotations

from ptokit.frontend import vmi_api as _api
from ptokit.frontend.vmi_api import *

__all__: list[str] = []
__all__ += _api.__all__
