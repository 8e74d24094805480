"""The programs of a kernel, by all that they are specialised for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from typing import Any

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import Diagnostic, PtoError, tell
from ptokit.base.policy import Policy
from ptokit.frontend.policies import policy_for
from ptokit.ir.core import Module
from ptokit.isa.targets import Target
from ptokit.isa.targets import target as find_target
from ptokit.isa.targets.defines import Defines, parse_defines
from ptokit.isa.verify import offers_values
from ptokit.kernels.memory import LaunchMemory
from ptokit.kernels.source import Asked, Finished, Source
from ptokit.passes.steps import VERDICT, Steps
from ptokit.passes.verify import Verify


@dataclass(eq=False)
class ProgramCache:
    """What launches and questions share: each program is lowered, checked and finished once."""

    source: Source
    defines: Mapping[str, int]
    rules: str | None
    allow: tuple[str, ...]
    _sources: dict[tuple[Any, ...], Module] = field(default_factory=dict[tuple[Any, ...], Module])
    _finished: dict[tuple[Any, ...], Finished] = field(
        default_factory=dict[tuple[Any, ...], "Finished"]
    )
    _told: set[tuple[Any, ...]] = field(default_factory=set[tuple[Any, ...]])  # of their doubts
    _advice: dict[tuple[Any, ...], dict[Any, str]] = field(
        default_factory=dict[tuple[Any, ...], dict[Any, str]]
    )
    _unlowered: set[tuple[Any, ...]] = field(default_factory=set[tuple[Any, ...]])
    memory: LaunchMemory = field(default_factory=LaunchMemory)  # of launches of these programs

    def target(self, given: str | Target | None, defines: Defines | None = None) -> Target:
        """The target in force. Defines of a call come first, then those of its target."""
        chosen = self.source.target if given is None else find_target(given)
        return chosen.override({**self.defines, **chosen.overrides, **parse_defines(defines)})

    def _policy(self, rules: str | None, allow: Iterable[str]) -> Policy:
        """What is an error here: the call says, then the kernel, then its project."""
        own = policy_for(self.source.file, self.rules, self.allow)
        return policy_for(self.source.file, rules, allow, own)

    def asked(
        self,
        target: str | Target | None,
        defines: Defines | None,
        rules: str | None,
        allow: Iterable[str],
        place: bool | None,
        sync: str | None,
        grid: int = 1,
    ) -> Asked:
        policy = self._policy(rules, allow)
        return Asked(self.target(target, defines), policy, Steps(place, sync), grid)

    def written(self, target: Target, arguments: Mapping[str, Any], blocks: int = 1) -> Module:
        """The program before any pass; they all start from this one, and leave it as it is."""
        key = (target, blocks, *self.source.cache_key(arguments))
        if key not in self._sources:
            self.source.fits(target)
            self._sources[key] = self.source.written(target, arguments, blocks)
        return self._sources[key]

    @property
    def is_lowered(self) -> bool:
        """Whether it has a program that can be asked for without running it."""
        return "lowered" in self.source.paths

    def _key(self, asked: Asked, arguments: Mapping[str, Any]) -> tuple[Any, ...]:
        return (asked, *self.source.cache_key(arguments))

    def ready(self, asked: Asked, arguments: Mapping[str, Any]) -> Finished:
        key = self._key(asked, arguments)
        if key not in self._finished:
            written = self.written(asked.target, arguments, asked.blocks)
            told: list[Diagnostic] = []
            module = self.source.finished(written, asked, told)
            self._finished[key] = Finished(module, tuple(told))
        return self._finished[key]

    def shown(self, asked: Asked, arguments: Mapping[str, Any]) -> Module:
        """The finished program, after its warnings were shown."""
        module, doubts = self.ready(asked, arguments)
        key = self._key(asked, arguments)
        if key not in self._told:
            self._told.add(key)
            for each in doubts:
                tell(each)
        return module

    def advised(
        self, found: tuple[Diagnostic, ...], asked: Asked, arguments: Mapping[str, Any]
    ) -> tuple[Diagnostic, ...]:
        """Warnings of a running function with advice that was tried on all of it: a run has seen
        only the instructions before the one it speaks of."""
        if not self.is_lowered or not any(offers_values(each.fix) for each in found):
            return found
        target, policy = asked.target, asked.policy
        key = (target, policy, *self.source.cache_key(arguments))
        if key not in self._advice:
            try:
                module = self.written(target, arguments)
            except Exception:  # it runs, but is not written in what can be lowered
                known = []
            else:
                known = Verify(policy=policy).check(module, target)
            self._advice[key] = {(d.code, d.location): d.fix for d in known}
        advice = self._advice[key]
        return tuple(replace(d, fix=advice.get((d.code, d.location), d.fix)) for d in found)

    def judged(self, asked: Asked, arguments: Mapping[str, Any]) -> Finished | None:
        """What would run on a device of a kernel that is about to run as it stands.

        A run sees only the path it takes, and in auto mode gives every tile a storage of its own;
        whether they all fit, which operands share bytes, and what the other paths break is decided
        by the program that a device would be given: its errors are raised here. What cannot be
        lowered has no such program, and is judged call by call as it runs.
        """
        if not self.is_lowered:
            return None
        key = (asked.target, *self.source.cache_key(arguments))
        if key in self._unlowered:
            return None
        try:
            self.written(asked.target, arguments)
        except PtoError as error:
            if not all(code.startswith("lower.") for code in error.codes):
                raise
            self._unlowered.add(key)
            return None
        return self.ready(asked._replace(steps=VERDICT), arguments)
