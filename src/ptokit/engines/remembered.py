"""What launches of a program leave for the next ones: verdicts, notes of a run, memories."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import Diagnostic
from ptokit.machine.arena import Arena

if TYPE_CHECKING:
    from ptokit.engines.compiled.replay import Replays

_MOST_VERDICTS = 256


@dataclass
class Remembered:
    """What is used again, whoever launches."""

    # What checked launches were found to lack, by all that it depends on.
    _verdicts: dict[Hashable, tuple[Diagnostic, ...]] = field(
        default_factory=dict[Hashable, tuple[Diagnostic, ...]]
    )
    # What launches of the program that ran last have left, and which program that was.
    _left: tuple[Any, list[Arena]] = (None, [])

    @cached_property
    def replays(self) -> Replays:
        """Launches that are repeated as they were."""
        from ptokit.engines.compiled.replay import Replays  # a single launch repeats nothing

        return Replays()

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

    def arenas(self, program: Any) -> list[Arena]:
        """What launches of a program have left; only the program that ran last keeps it."""
        if self._left[0] != program:
            self._left = program, []
        return self._left[1]
