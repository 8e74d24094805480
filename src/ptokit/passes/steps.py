"""What may be done between what was written and what can run, under the names that users know.

| `sync=` | what is inserted |
|---|---|
| `insert`, `graph-solver` | flags between pipes, barriers inside them |
| `canonical` | the same, and no promise is taken that nobody gave (`canonical.py`) |
| `bufid` | buffer ids around what shares on-chip memory (A5), flags for the rest |
| `barrier-all` | a barrier of all pipes before every access |
| `keep` | nothing: the order is the author's |

Behind a colon may stand how many event ids of each pair of pipes are used: `canonical:4`.
"""

from __future__ import annotations

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import usage_error

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


@dataclass(frozen=True)
class Steps:
    """Which steps are asked for; None: those that the program leaves open."""

    place: bool | None = None
    sync: str | None = None
    is_verdict: bool = False  # only what is wrong is asked for: ordering the pipes adds nothing
    is_reduced: bool = True  # without the flags that others imply

    def __post_init__(self) -> None:
        if self.place not in (None, True, False):
            raise usage_error("steps", "place is True or False", got=[("place", self.place)])
        if self.sync is not None:
            Mode.of(self.sync)

    def over(self, usual: Steps) -> Steps:
        """These steps, and the usual ones where nothing was asked for."""
        return Steps(
            usual.place if self.place is None else self.place,
            usual.sync if self.sync is None else self.sync,
            self.is_verdict,
            self.is_reduced,
        )


OPEN = Steps()
VERDICT = Steps(is_verdict=True)
FINISHED = Steps(place=True, sync=INSERT)
AS_WRITTEN = Steps(place=False, sync=KEEP)
