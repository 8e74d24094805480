"""What launches of a kernel leave for the next ones."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import Diagnostic
from ptokit.engines import Runnable
from ptokit.engines import engine as find_engine
from ptokit.ir.core import Module
from ptokit.kernels.shortcuts import Shortcuts
from ptokit.machine.arena import Arena

if TYPE_CHECKING:
    from ptokit.engines.compiled.driver import Drivers
    from ptokit.engines.compiled.replay import Replays

_MOST_VERDICTS = 256


@dataclass
class LaunchMemory:
    """Verdicts, prepared programs and memories that are used again."""

    shortcuts: Shortcuts = field(default_factory=Shortcuts)  # to launches that are repeated
    # The arguments and constants of the last launch that was a new one, without their contents.
    last: tuple[tuple[Any, ...], dict[str, Any]] | None = None
    # What checked launches were found to lack, by all that it depends on.
    _verdicts: dict[Hashable, tuple[Diagnostic, ...]] = field(
        default_factory=dict[Hashable, tuple[Diagnostic, ...]]
    )
    _prepared: dict[tuple[str, Module], Runnable] = field(
        default_factory=dict[tuple[str, Module], Runnable]
    )
    _drivers: dict[Module, Drivers] = field(default_factory=dict[Module, "Drivers"])
    # What launches of the program that ran last have left, and which program that was.
    _left: tuple[Any, list[Arena]] = (None, [])

    @cached_property
    def replays(self) -> Replays:
        """Launches that are repeated as they were."""
        from ptokit.engines.compiled.replay import Replays  # a single launch repeats nothing

        return Replays()

    def prepared(self, engine: str, module: Module) -> Runnable:
        """The module ready to run."""
        if (engine, module) not in self._prepared:
            self._prepared[engine, module] = find_engine(engine).prepare(module)
        return self._prepared[engine, module]

    def drivers(self, module: Module) -> Drivers | None:
        """The module as functions of the processor; None without a compiler."""
        from ptokit.engines.compiled.driver import Drivers  # most launches are checked
        from ptokit.engines.compiled.library import library

        if module not in self._drivers and library() is not None:
            self._drivers[module] = Drivers(module)
        return self._drivers.get(module)

    @property
    def interpreted(self) -> dict[str, str]:
        """What Python executes of programs that run as functions of the processor, and why."""
        return {name: why for each in self._drivers.values() for name, why in each.lacks.items()}

    def verdict(self, question: Hashable | None) -> tuple[Diagnostic, ...] | None:
        """What a check has found of launches like this one; None: nobody has checked one."""
        return None if question is None else self._verdicts.get(question)

    def remember(self, question: Hashable, verdict: tuple[Diagnostic, ...]) -> None:
        """Keep the verdict of a launch for others like it; who asks ever anew is not helped."""
        if len(self._verdicts) >= _MOST_VERDICTS:
            self._verdicts.clear()
        self._verdicts[question] = verdict

    def forget_verdicts(self) -> None:
        """Let the next launches be checked again."""
        self._verdicts.clear()
        self.shortcuts.clear()

    def arenas(self, program: Any) -> list[Arena]:
        """What launches of a program have left; only the program that ran last keeps it."""
        if self._left[0] != program:
            self._left = program, []
        return self._left[1]
