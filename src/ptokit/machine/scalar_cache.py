"""The scalar data cache: 64-byte lines of global memory, coherent with nobody.

What a core stores lies in its cache until dcci writes the line back and dsb waits for it; what it
loads may be a line it has held since before others wrote. Only accesses that this can spoil are
looked at: a program without scalar accesses pays nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ptokit.machine.core import Core

if TYPE_CHECKING:
    from ptokit.machine.findings import Findings

LINE = 64


class ScalarCaches:
    """The data caches of all cores of a launch."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        # (core, line): bytes stored, where, and whether the line is on its way to memory.
        self._dirty: dict[tuple[int, int], list[Any]] = {}
        self._held: dict[tuple[int, int], Any] = {}  # (core, line): None, or who wrote since
        self.busy = False

    def access(
        self,
        core: Core,
        scalar: bool,
        ranges: Iterable[tuple[int, int]],
        writes: bool,
        site: Any,
    ) -> None:
        """Any access to global memory, through the cache or past it."""
        for start, stop in ranges:
            for line in range(start // LINE, (stop - 1) // LINE + 1):
                self._line(core, scalar, line, (start, stop), writes, site)

    def _line(
        self, core: Core, scalar: bool, line: int, span: tuple[int, int], writes: bool, site: Any
    ) -> None:
        for (owner, at), (low, high, where, _) in self._dirty.items():
            if at != line or (scalar and owner == core.number):
                continue
            if low < span[1] and span[0] < high:
                self._findings.stale(
                    "what a scalar store wrote still lies in the data cache of its core",
                    site,
                    where,
                    "after the store: dcci(ptr, SINGLE_CACHE_LINE), then dsb(DSB_DDR)",
                )
            elif scalar and writes:
                self._findings.stale(
                    "two cores store to one 64-byte line through their data caches, which write "
                    "back whole lines",
                    site,
                    where,
                    "give each core a line of its own",
                    self._findings.doubtful,
                )
        key = (core.number, line)
        if writes:
            for (owner, at), _ in list(self._held.items()):
                if at == line and not (scalar and owner == core.number):
                    self._held[owner, at] = site
        if not scalar:
            return
        self.busy = True
        if writes:
            low, high, *_ = self._dirty.get(key, span)
            self._dirty[key] = [min(low, span[0]), max(high, span[1]), site, False]
        else:
            written = self._held.get(key)
            if written is not None:
                self._findings.stale(
                    "a scalar load reads a line its data cache has held since before it was "
                    "written",
                    site,
                    written,
                    "before the load: dcci(ptr, SINGLE_CACHE_LINE)",
                )
            self._held.setdefault(key, None)

    def clean(self, core: Core, address: int | None) -> None:
        """dcci: write back and forget one line, or all."""
        line = None if address is None else address // LINE
        for table in (self._dirty, self._held):
            for key in [k for k in table if k[0] == core.number and line in (None, k[1])]:
                if table is self._dirty:
                    self._dirty[key][3] = True
                else:
                    del table[key]

    def fence(self, core: Core) -> None:
        """dsb: what was written back has arrived."""
        for key in [k for k, v in self._dirty.items() if k[0] == core.number and v[3]]:
            del self._dirty[key]
