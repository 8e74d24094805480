"""The options that say how far a program is finished, for whichever command takes them.

Each has the name under which users of the public assembler know it; some have one of ours beside
it. A command that is decorated with `finishing` takes them all, as one argument.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from functools import wraps
from inspect import signature
from typing import TYPE_CHECKING, Annotated, Any

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import usage_error
from ptokit.cli.declared import Option
from ptokit.passes import steps
from ptokit.passes.steps import MODES, Steps

if TYPE_CHECKING:
    from ptokit.isa.targets import Target


class Level(StrEnum):
    """The levels of the public assembler; a number alone is one too."""

    level1 = "level1"
    level2 = "level2"
    level3 = "level3"

    @property
    def number(self) -> int:
        return int(self[-1])


class Planner(StrEnum):
    """Its planners of memory. Ours is one: whatever the order, the tightest result is taken."""

    legacy = "legacy"
    modern = "modern"


class BackEnd(StrEnum):
    """Its back ends; C++ is the first."""

    emitc = "emitc"
    vpto = "vpto"


@dataclass(frozen=True)
class Asked:
    """What the command line asks for, in whichever words."""

    steps: Steps
    level: int = 0  # 1 to 3; 0: the one that a program is written for
    mode: str = ""  # the option that chose how the pipes are ordered
    backend: str = BackEnd.emitc
    prints_text: bool = False  # instead of C++
    only_a5: tuple[str, ...] = ()  # the options given that other devices have not

    def on(self, target: Target) -> Target:
        """The target, if it has all that is asked for."""
        lacking = [word for word in self.only_a5 if not _ONLY_A5[word](target)]
        if lacking:
            raise usage_error(
                "steps",
                f"{lacking[0]} requires --pto-arch=a5",
                got=[("target", target.name)],
                fix=f"leave it out, or ask for the A5: {lacking[0]} --pto-arch=a5",
            )
        return target


# The options that order the pipes, of which at most one is given, and one that rewrites.
INSERT_SYNC = "--enable-insert-sync"
BUFID_SYNC = "--enable-bufid_sync"
BARRIER_ALL = "--enable-inject-barrier-all-sync"
GRAPH_SOLVER = "--enable-graph-sync-solver"
CANONICAL = "--enable-canonical-sync"
OP_FUSION = "--enable-op-fusion"
_ONLY_A5: dict[str, Callable[[Target], bool]] = {  # and what of the device they ask for
    BUFID_SYNC: lambda target: target.has_buffer_ids,
    OP_FUSION: lambda target: target.has_vector_registers,
}


def _flag(name: str, help: str) -> Any:
    return Option(name, help=help, rich_help_panel="As the public assembler has it")


def read(
    place: Annotated[
        bool | None,
        Option(
            "--place/--no-place", help="Give tiles their addresses. Default: those that have none."
        ),
    ] = None,
    sync: Annotated[
        str,
        Option(
            "--sync",
            help=f"Order the pipes, or not: {', '.join(MODES)}. Default: where the program does "
            "not.",
        ),
    ] = "",
    pto_level: Annotated[
        str,
        _flag("--pto-level", "level1, level2: no tile has an address; level3: all have."),
    ] = "",
    insert_sync: Annotated[bool, _flag(INSERT_SYNC, "The same as --sync=insert.")] = False,
    bufid_sync: Annotated[bool, _flag(BUFID_SYNC, "Order the pipes with buffer ids (A5).")] = False,
    barrier_all: Annotated[bool, _flag(BARRIER_ALL, "Order the pipes, whatever it costs.")] = False,
    graph_solver: Annotated[bool, _flag(GRAPH_SOLVER, "The same as --sync=graph-solver.")] = False,
    graph_ids: Annotated[
        int,
        Option("--graph-sync-solver-event-id-max", min=1, max=8, help="Event ids to use."),
    ] = 8,
    canonical: Annotated[bool, _flag(CANONICAL, "The same as --sync=canonical.")] = False,
    canonical_ids: Annotated[
        int,
        Option("--canonical-sync-event-id-max", min=1, max=8, help="Event ids to use."),
    ] = 8,
    planner: Annotated[
        Planner | None, _flag("--plan-memory-impl", "Accepted: there is one planner.")
    ] = None,
    by_size: Annotated[
        bool, _flag("--plan-memory-order-by-size", "Accepted: all orders are tried.")
    ] = False,
    op_fusion: Annotated[bool, _flag(OP_FUSION, "Accepted on A5: results are the same.")] = False,
    backend: Annotated[
        BackEnd, _flag("--pto-backend", "What is emitted; only emitc, which is C++.")
    ] = BackEnd.emitc,
    prints_text: Annotated[
        bool, _flag("--emit-pto-ir", "Print the finished program as text.")
    ] = False,
    keeps_layout: Annotated[
        bool, _flag("--disable-infer-layout", "Accepted: views are never rewritten.")
    ] = False,
) -> Asked:
    """What the command line asks for."""
    level = _level(pto_level)
    modes = {
        INSERT_SYNC: (insert_sync, steps.INSERT),
        BUFID_SYNC: (bufid_sync, steps.BUFID),
        BARRIER_ALL: (barrier_all, steps.BARRIER_ALL),
        GRAPH_SOLVER: (graph_solver, f"{steps.GRAPH_SOLVER}:{graph_ids}"),
        CANONICAL: (canonical, f"{steps.CANONICAL}:{canonical_ids}"),
    }
    given = [word for word, (is_given, _) in modes.items() if is_given]
    if len(given) > 1:
        raise usage_error("steps", f"{' and '.join(given)} are mutually exclusive", fix="keep one")
    if given and sync not in ("", modes[given[0]][1]):
        raise usage_error("steps", f"{given[0]} and --sync={sync} contradict each other")
    by_level = None if level is None else level is not Level.level3
    if place is not None and by_level not in (None, place):
        word = "--place" if place else "--no-place"
        raise usage_error("steps", f"--pto-level={level} and {word} contradict each other")
    order = modes[given[0]][1] if given else sync
    return Asked(
        Steps(by_level if place is None else place, order or None),
        0 if level is None else level.number,
        given[0] if given else "",
        backend,
        prints_text,
        tuple(w for w in _ONLY_A5 if w in given or (w == OP_FUSION and op_fusion)),
    )


def _level(word: str) -> Level | None:
    named = f"level{word}" if word.isdigit() else word
    if word and named not in Level.__members__:
        fix = "one of " + ", ".join(Level.__members__)
        raise usage_error("steps", f"there is no --pto-level={word}", fix=fix)
    return Level[named] if word else None


def finishing(command: Callable[..., None]) -> Callable[..., None]:
    """A command that takes the options above and is given them as `asked`."""
    options = signature(read, eval_str=True).parameters
    own = signature(command, eval_str=True)

    @wraps(command)
    def run(**given: Any) -> None:
        asked = read(**{name: given.pop(name) for name in options})
        command(**given, asked=asked)

    rest = [each for name, each in own.parameters.items() if name != "asked"]
    run.__signature__ = own.replace(parameters=[*rest, *options.values()])  # type: ignore[attr-defined]
    return run
