"""How functions for the device are dispatched: the target, the number of blocks, the devices.

What is in force is set by whoever runs a program, and by the scopes of its orchestration.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field, replace
from types import SimpleNamespace
from typing import Any

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import fail
from ptokit.frontend.comm_types import World
from ptokit.frontend.launch import Options
from ptokit.frontend.launch import run as run_blocks
from ptokit.frontend.policies import policy_for
from ptokit.frontend.session import device, is_active
from ptokit.ir.core import Module
from ptokit.isa.targets import target as find_target

DEFAULT = "a2a3"


class Settings(SimpleNamespace):
    """How a program is to be run: of all that can be said, platform and devices count here."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)

    @property
    def target(self) -> str:
        """The target of a platform: that of its simulator is the same."""
        return str(getattr(self, "platform", DEFAULT)).removesuffix("sim")

    @property
    def devices(self) -> int:
        """How many of them take part."""
        wanted = getattr(self, "distributed_config", None)
        return len(getattr(wanted, "device_ids", None) or (0,))


@dataclass
class Dispatch:
    """What is in force."""

    target: str = DEFAULT
    grid: int = 1
    lowered: list[Module] | None = None  # where launched functions are written down as well
    world: World | None = None
    # What was dispatched to devices: they run it together when the host's function has ended.
    waiting: list[tuple[int, Callable[[], Any]]] = field(
        default_factory=list[tuple[int, Callable[[], Any]]]
    )


_in_force: ContextVar[Dispatch | None] = ContextVar("pypto_dispatch", default=None)


def in_force() -> Dispatch | None:
    """None outside of a program."""
    return _in_force.get()


@contextmanager
def dispatching(**changed: Any) -> Generator[Dispatch]:
    """Change what is in force."""
    now = replace(_in_force.get() or Dispatch(), **changed)
    token = _in_force.set(now)
    try:
        yield now
    finally:
        _in_force.reset(token)


class Blocks:
    """`with pl.spmd(core_num=4)`: what is called in it runs on so many blocks."""

    def __init__(self, core_num: Any = None, **_: object) -> None:
        if is_active():
            raise fail(
                "pypto.dispatch",
                "pl.spmd inside a function for the device: blocks are dispatched from outside",
                fix="write it in a function of pl.FunctionType.Orchestration or pl.jit.host",
            )
        self._scope = dispatching(grid=int(core_num))

    def __enter__(self) -> Blocks:
        self._scope.__enter__()
        return self

    def __exit__(self, *told: Any) -> None:
        self._scope.__exit__(*told)

    def __iter__(self) -> Any:
        raise fail(
            "pypto.dispatch",
            "a loop over pl.spmd is outlined by PyPTO's compiler",
            fix="with pl.spmd(core_num=n): kernel(...), where the kernel asks pl.get_block_idx()",
        )


def launched(body: Callable[[], Any], file: str) -> Any:
    """Run code for the device on as many blocks as are in force; what the last one returns."""
    now = in_force() or Dispatch()
    if now.grid == 1:
        with device(now.target, mode="auto"):
            return body()
    results: list[Any] = []
    options = Options(grid=now.grid, policy=policy_for(file))
    cores = {"mix": lambda: results.append(body())}
    run_blocks(cores, find_target(now.target), "auto", options)
    return results[-1]


def run_together(now: Dispatch) -> None:
    """Run what waits for the devices, each of which does its own in order."""
    waiting, now.waiting = now.waiting, []
    if waiting:
        assert now.world is not None

        def own(rank: int) -> None:
            for number, work in waiting:
                if number == rank:
                    work()

        now.world.run(own)
