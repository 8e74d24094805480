"""Faults: the ways in which a legal instruction can still go wrong when it runs."""

from __future__ import annotations

from typing import Any

from ptokit.base.diagnostics import ProgramError, PtoError, fail
from ptokit.base.location import Location, Site
from ptokit.isa.services import Refused
from ptokit.isa.spec import Insn


class PoisonRead(ProgramError):  # noqa: N818 - named after what happened
    """A byte was read that nothing wrote."""

    plan: Any = None  # what read it
    operand: str = ""
    window: Any = None


class OutOfBounds(ProgramError):  # noqa: N818
    """An access left its memory or its array."""


class Unbound(ProgramError):  # noqa: N818
    """A tile without an address, or a tensor without memory, was used."""


class WouldBlock(ProgramError):  # noqa: N818
    """The only thread of execution would wait for something that nobody can provide."""


def read_by(error: PtoError, plan: Any, operand: str, window: Any) -> PtoError:
    """The error, with what was about to read."""
    if isinstance(error, PoisonRead):
        error.plan, error.operand, error.window = plan, operand, window
    return error


def refusal(insn: Insn, error: Refused, site: Site | Location, target: str) -> PtoError:
    """What a body refused, as an error at the instruction's line."""
    known = error.code[:3] in ("SA-", "PA-", "CA-")
    return fail(
        error.code if known else f"{insn.name}.{error.code}",
        f"{insn.name}: {error.message}",
        got=error.got,
        fix=error.fix,
        site=site,
        target=target,
    )
