"""What every pass is: a frozen dataclass whose fields are its options."""

from __future__ import annotations

from typing import ClassVar

from ptokit.base.dataclass import dataclass
from ptokit.ir.core import Module
from ptokit.isa.targets import Target


@dataclass(frozen=True)
class Pass:
    """Takes a valid module and returns a valid module; never changes the one it was given."""

    name: ClassVar[str] = ""

    def run(self, module: Module, target: Target) -> Module:
        """Return the module after the pass; raises ProgramError when it cannot be."""
        raise NotImplementedError
