"""Sessions: which target and mode the instructions you call run under, and on which machine.

`with device("a5", mode="auto"):` makes a fresh machine for the block. Outside any block a default
session (a2a3, manual) serves the REPL; it is made when first needed.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import contextmanager
from contextvars import ContextVar, Token
from typing import TYPE_CHECKING, Any

from ptokit.base.diagnostics import ProgramError, Warnings, tell, usage_error
from ptokit.base.entry import public
from ptokit.base.location import user_frame
from ptokit.base.policy import Policy
from ptokit.frontend.policies import policy_for
from ptokit.isa.targets import Target, target
from ptokit.isa.targets.defines import Defines
from ptokit.machine.machine import Machine
from ptokit.machine.ranks import here
from ptokit.machine.watch import Watch

if TYPE_CHECKING:
    pass

MODES = ("manual", "auto")

_current: ContextVar[Machine | None] = ContextVar("ptokit_machine", default=None)
_default: list[Machine] = []


@public
class device:  # noqa: N801 - used as a function in a with statement
    """Select target and mode for a block of code; the machine is fresh and ends with the block.

    `defines` overrides memory sizes and alignments under their macro names, as `-D` does for a
    compiler: `device("a2a3", defines={"PTO_UBUF_SIZE_BYTES": 262144})`. `rules` ("default",
    "strict" or "release") says which broken rules are errors, `allow` silences findings one by
    one; what remains is shown through Python's `warnings` and kept in `machine.warnings`.

    In manual mode the block is a program: accesses that nothing orders and flags left over are
    raised at its end, as in a launch. `check=False` is for trying things out: instructions take
    effect one after another in any case.
    """

    def __init__(
        self,
        target_name: str | Target = "a2a3",
        mode: str = "manual",
        *,
        defines: Defines | None = None,
        rules: str | None = None,
        allow: Iterable[str] = (),
        check: bool = True,
    ) -> None:
        chosen = target(target_name, defines)
        if mode not in MODES:
            raise usage_error("unknown-mode", f"mode is one of {MODES}, not {mode!r}")
        policy = policy_for(user_frame().f_code.co_filename, rules, allow)
        self.machine = Machine(chosen, mode, policy=policy, warnings=Warnings(tell))
        self._watch = None
        # In auto mode the compiler orders what a device does, and nobody what several of them do.
        if check and chosen.is_device and (mode == "manual" or here() is not None):
            self._watch = Watch(self.machine)
        self._tokens: list[Token[Machine | None]] = []

    def use(self, policy: Policy) -> None:
        """Judge by a policy that was chosen elsewhere."""
        self.machine.policy = policy
        if self._watch is not None:
            self._watch.findings.policy = policy

    def __enter__(self) -> Machine:
        self._tokens.append(_current.set(self.machine))
        return self.machine

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        from ptokit.repair.advice import advised

        _current.reset(self._tokens.pop())
        if kind is None and self._watch is not None and not self._tokens:
            try:
                self._watch.raise_found()
            except ProgramError as error:
                raise ProgramError(advised(error.diagnostics)) from None


def current() -> Machine:
    """The machine in force."""
    machine = _current.get()
    if machine is None:
        if not _default:
            policy, told = policy_for(""), Warnings(tell)
            _default.append(Machine(target("a2a3"), "manual", policy=policy, warnings=told))
        machine = _default[0]
    return machine


def is_active() -> bool:
    """Whether a machine was put in force: in `with device(...)`, a launch, or while lowering."""
    return _current.get() is not None


def reset() -> None:
    """Replace the default session by a fresh one (in a REPL: start over)."""
    _default.clear()


@contextmanager
def running(machine: Any) -> Generator[None, None, None]:
    """Put a machine in force, or a tracer that writes instructions instead of executing them."""
    token = _current.set(machine)
    try:
        yield
    finally:
        _current.reset(token)
