"""The ways to order the pipes of a program, under the names that users know.

| `sync=` | what is inserted |
|---|---|
| `insert`, `graph-solver` | flags between pipes, barriers inside them |
| `canonical` | the same, and no promise is taken that nobody gave (`canonical.py`) |
| `bufid` | buffer ids around what shares on-chip memory (A5), flags for the rest |
| `barrier-all` | a barrier of all pipes before every access |
| `keep` | nothing: the order is the author's |

Functions that set or wait for flags stay as they are, and a warning says so; canonical refuses
them. Behind a colon may stand how many event ids of each pair of pipes are used: `canonical:4`.
"""

from __future__ import annotations

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import Diagnostic, ProgramError, usage_error
from ptokit.ir.core import Function, Module
from ptokit.ir.ordering import effects_of, orders_pipes
from ptokit.isa.effects import Buffer, Flag, Signal, Wait
from ptokit.isa.targets import Target
from ptokit.passes.barrier_all import BarrierAll
from ptokit.passes.canonical import refusals, taken
from ptokit.passes.insert_sync import InsertSync

INSERT, KEEP = "insert", "keep"
GRAPH_SOLVER, CANONICAL, BUFID, BARRIER_ALL = "graph-solver", "canonical", "bufid", "barrier-all"
MODES = (INSERT, KEEP, GRAPH_SOLVER, CANONICAL, BUFID, BARRIER_ALL)
_MOST_IDS = 8  # of a pair of pipes


@dataclass(frozen=True)
class Mode:
    """A way to order the pipes."""

    name: str
    event_ids: int = _MOST_IDS
    is_reduced: bool = True  # without the flags that others imply

    @classmethod
    def of(cls, text: str) -> Mode:
        """Read one as it is written, `canonical` or `canonical:4`."""
        name, colon, ids = text.partition(":")
        number = int(ids) if ids.isdecimal() else 0
        if name not in MODES or (colon and not 1 <= number <= _MOST_IDS):
            raise usage_error(
                "steps",
                "there is no such way to order the pipes",
                got=[("sync", text)],
                fix=f"one of {', '.join(MODES)}; with 1 to {_MOST_IDS} event ids: {GRAPH_SOLVER}:4",
            )
        return cls(name, number if colon else _MOST_IDS)

    def order(
        self,
        module: Module,
        target: Target,
        functions: frozenset[str],
        is_one_core: bool,
        told: list[Diagnostic],
    ) -> Module:
        """Order the pipes of some functions; `told` hears of those that are left as they are."""
        if self.name == BARRIER_ALL:
            return BarrierAll(functions).run(module, target)
        if self.name == BUFID and not target.has_buffer_ids:
            raise usage_error(
                "steps",
                "buffer ids order the pipes of A5: bufid requires --pto-arch=a5",
                got=[("target", target.name)],
                fix='sync="insert"',
            )
        if self.name == CANONICAL:
            functions = taken(module, functions)
            found = refusals(module, functions)
            if found:
                raise ProgramError(found)
        else:
            kept = self.kept(module, functions)
            told += map(_kept, kept)
            functions -= {f.name for f in kept}
        return InsertSync(
            is_one_core,
            functions,
            self.is_reduced,
            event_ids=self.event_ids,
            with_buffers=self.name == BUFID,
            is_canonical=self.name == CANONICAL,
        ).run(module, target)

    def kept(self, module: Module, functions: frozenset[str]) -> list[Function]:
        """Those of some functions that are left as they are: their author orders them already."""
        if self.name in (BARRIER_ALL, CANONICAL):
            return []
        return [f for f in module.functions if f.name in functions and self._is_ordered(f)]

    def _is_ordered(self, function: Function) -> bool:
        """Whether the author orders it already; barriers alone do not say so."""
        kinds = (Flag, Buffer) if self.name == BUFID else (Flag,)
        return any(
            isinstance(effect, Signal | Wait) and isinstance(effect.token, kinds)
            for op in function.walk()
            if orders_pipes(op)
            for effect in effects_of(op)
        )


def _kept(function: Function) -> Diagnostic:
    return Diagnostic(
        "sync.kept",
        f"@{function.name} orders its pipes itself: nothing is inserted into it",
        function.location,
        fix='take its flags out, or say sync="keep"',
        severity="warning",
    )
