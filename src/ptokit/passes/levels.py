"""Converting between the forms of a program: assembly lines, Level 1, Level 2 and Level 3.

| level | tiles | addresses | order of pipes |
|---|---|---|---|
| sync | results of lines | none | line by line |
| l1 | results of operations | none | implied |
| l2 | buffers | may be given | may be given |
| l3 | buffers | all given | flags and barriers |
"""

from __future__ import annotations

from typing import ClassVar

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import UsageError, fail
from ptokit.base.policy import DEFAULT, Policy
from ptokit.ir.core import Module
from ptokit.ir.rewrite import clone
from ptokit.ir.types import BufferType, ViewType
from ptokit.isa.targets import Target
from ptokit.passes.base import Pass
from ptokit.passes.blocks import refuse_jumps
from ptokit.passes.finish import finish
from ptokit.passes.steps import OPEN, Steps
from ptokit.passes.to_asm import to_asm
from ptokit.passes.to_level1 import to_level1
from ptokit.passes.to_level2 import from_asm, to_level2, without_addresses
from ptokit.passes.verify import has_addresses

LEVELS = ("sync", "l1", "l2", "l3")


def level_of(module: Module) -> str:
    """The level a module is written in."""
    for function in module.functions:
        kinds = [t for t in function.input_types if isinstance(t, ViewType)]
        if any(t.kind == "memref" for t in kinds):
            return "sync"
    for op in module.walk():
        types = [v.type for v in (*op.operands, *op.results)]
        if op.insn is not None and any(isinstance(t, BufferType) and t.is_value for t in types):
            return "l1"
    return "l3" if has_addresses(module) else "l2"


@dataclass(frozen=True)
class ConvertLevel(Pass):
    """Rewrites a module into another level, or says which operation stands in the way.

    Level 3 is the finished program; `steps` says how far it is placed and ordered.
    """

    name: ClassVar[str] = "convert-level"
    to: str = "l2"
    steps: Steps = OPEN
    policy: Policy = DEFAULT

    def run(self, module: Module, target: Target) -> Module:
        """Return the module at the level asked for."""
        if self.to not in LEVELS:
            raise fail(
                "level", f"there is no level {self.to!r}", fix=f"one of {LEVELS}", kind=UsageError
            )
        found = level_of(module)
        module = clone(module)
        if found == self.to != "l3":
            return module
        if found != self.to:
            refuse_jumps(module, f"conversion to {self.to}")
        if found == "sync":
            module, found = from_asm(module), "l1"
        if found == "l1" and self.to in ("l2", "l3"):
            module, found = to_level2(module, target), "l2"
        if found == "l3" and self.to != "l3":
            module, found = without_addresses(module, target), "l2"
        if found == "l2" and self.to in ("l1", "sync"):
            module, found = to_level1(module), "l1"
        if found == "l1" and self.to == "sync":
            return to_asm(module, target)
        return finish(module, target, self.steps, self.policy) if self.to == "l3" else module
