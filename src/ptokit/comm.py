"""Communication between devices: the instructions of namespace `comm`, and worlds to run them in.

`comm.TGATHER` and `comm.TSCATTER` are collectives; the tile instructions of these names live in
`ptokit` itself, which is why this is a namespace of its own.
"""

from __future__ import annotations

from ptokit.base import comm_enums as _enums
from ptokit.base.comm_enums import *
from ptokit.frontend import asynchronous as _asynchronous
from ptokit.frontend import comm_api as _api
from ptokit.frontend import comm_types as _types
from ptokit.frontend.asynchronous import *
from ptokit.frontend.comm_api import *
from ptokit.frontend.comm_types import *

__all__: list[str] = []
__all__ += _enums.__all__
__all__ += _api.__all__
__all__ += _asynchronous.__all__
__all__ += _types.__all__
