"""What launches of a kernel leave for the next ones."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any

from ptokit.base.dataclass import dataclass
from ptokit.engines import Runnable
from ptokit.engines import engine as find_engine
from ptokit.engines.remembered import Remembered
from ptokit.ir.core import Module
from ptokit.kernels.shortcuts import Shortcuts

if TYPE_CHECKING:
    from ptokit.engines.compiled.driver import Drivers


@dataclass
class LaunchMemory(Remembered):
    """Beside verdicts, notes and memories: short cuts, and programs that are prepared."""

    shortcuts: Shortcuts = field(default_factory=Shortcuts)  # to launches that are repeated
    # The arguments and constants of the last launch that was a new one, without their contents.
    last: tuple[tuple[Any, ...], dict[str, Any]] | None = None
    _prepared: dict[tuple[str, Module], Runnable] = field(
        default_factory=dict[tuple[str, Module], Runnable]
    )
    _drivers: dict[Module, Drivers] = field(default_factory=dict[Module, "Drivers"])

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

    def forget_verdicts(self) -> None:
        """Let the next launches be checked again."""
        super().forget_verdicts()
        self.shortcuts.clear()
