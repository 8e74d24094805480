"""Words in global memory by which devices tell each other how far they are: their arithmetic."""

from __future__ import annotations

from typing import Any

import numpy as np

from ptokit.base.comm_enums import NotifyOp, WaitCmp
from ptokit.base.layout import Array
from ptokit.isa.effects import Word
from ptokit.isa.services import Refused

COMPARE = {
    WaitCmp.EQ: ("==", np.equal),
    WaitCmp.NE: ("!=", np.not_equal),
    WaitCmp.GT: (">", np.greater),
    WaitCmp.GE: (">=", np.greater_equal),
    WaitCmp.LT: ("<", np.less),
    WaitCmp.LE: ("<=", np.less_equal),
}


def notify(word: Array, token: Word) -> None:
    """Write the one word of an array, or add to it; sums wrap around.

    That it is aligned (TN-2) is so of every array that is global memory.
    """
    number = _wrapped(token.number)
    with np.errstate(over="ignore"):
        word[0] = word[0] + number if NotifyOp(token.how) is NotifyOp.AtomicAdd else number


def holds(words: Array, token: Word) -> Array:
    """Which words satisfy the comparison, a signed one."""
    return COMPARE[WaitCmp(token.how)][1](words, _wrapped(token.number))


def wanted(token: Word) -> str:
    """What a wait looks for, in words."""
    return f"{COMPARE[WaitCmp(token.how)][0]} {_wrapped(token.number)}"


def unsatisfied(words: Array, token: Word) -> list[tuple[str, object]]:
    """The first word that does not satisfy a comparison, for a message."""
    first = tuple(int(i) for i in np.argwhere(~holds(words, token))[0])
    # Leading dimensions of extent 1 need not be named; two dimensions always are.
    named = next((axis for axis, n in enumerate(words.shape[:3]) if n != 1), 3)
    return [(f"signal[{', '.join(map(str, first[named:]))}]", int(words[first]))]


def check_owner(owner: int | None, here: int | None) -> None:
    """Refuse to look at a signal on another device."""
    if owner is not None and owner != here:
        raise Refused(
            "TW-2",
            "a device looks at signals in its own memory",
            got=[("signal", f"on rank {owner}"), ("running on", f"rank {here}")],
            fix="let the other device notify a signal of this one",
        )


def _wrapped(value: Any) -> np.int32:
    return np.int64(int(value) & 0xFFFFFFFF).astype(np.int32)
