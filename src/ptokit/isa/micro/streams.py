"""Unaligned streams: bytes that have not filled a block of 32 travel in a state.

Hidden registers go with them: AR counts the bytes that vstur has stored, SQZN those that the last
vsqz has kept.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ptokit.isa.freedom import unspecified
from ptokit.isa.micro import footprints as fp
from ptokit.isa.micro.footprints import Footprint
from ptokit.isa.micro.spec import Masking, Word, micro

_REGISTER = Word("register", ("AR",))


@micro("base:ub -> dst:align", called="{name}({dst}, {base})")
def vldas(base: Any, unit: Any) -> Any:
    """Start an unaligned load: what follows reads from the pointer on."""
    return unit.begin_load(base)


@micro(
    "base:ub state:align step?:index -> dst:V state2:align next?:ub",
    syntax="%base, %state[?, %step?] {} : T(base), T(state)[?, T(step)?] -> "
    "T(dst), T(state2)[?, T(next)?]",
    called="{name}({dst}, {state}, {base}, {step})",
)
def vldus(base: Any, state: Any, step: Any, unit: Any) -> Any:
    """Load the next register of an unaligned stream; the pointer moves by `step` elements."""
    (found,) = unit.load(base, base.offset, fp.loaded_plain("", base.dtype.itemsize, 1))
    return found, unit.begin_load(base), base.moved(step or 0)


@micro("-> dst:align")
def init_align(unit: Any) -> Any:
    """Begin an unaligned store: nothing is on its way."""
    return unit.begin_store()


@micro(
    "state:align n:int src:V base:ub -> state2:align next?:ub",
    syntax="%state, %n, %src, %base {} : T(state), T(n), T(src), T(base) -> T(state2)[?, T(next)?]",
    called="{name}({state}, {n}, {src}, {base})",
    freedom=unspecified(
        "bytes that fill no block",
        "They wait for the end of the stream here; recorded runs do not tell when they land.",
    ),
)
def vstus(state: Any, n: int, src: Any, base: Any, unit: Any) -> Any:
    """Append the first n lanes of a register to a stream; whole blocks go to memory."""
    nbytes = n * base.dtype.itemsize
    return unit.append(state, src, nbytes, base, base.offset), base.moved(n)


@micro(
    "state:align base:ub n:int -> next?:ub",
    syntax="%state, %base, %n {} : T(state), T(base), T(n)[? -> T(next)?]",
    called="{name}({state}, {base}, {n})",
)
def vstas(state: Any, base: Any, n: int, unit: Any) -> Any:
    """Store what is left of a stream that ends n elements behind the pointer."""
    behind = base.moved(n)
    unit.flush(state, base, behind.offset)
    return behind


@micro(
    "state:align src:V base:ub -> state2:align",
    words=[Word("mode", ("POST_UPDATE", "NO_POST_UPDATE"))],
    sets="AR",
    uses="AR SQZN",
)
def vstur(state: Any, src: Any, base: Any, mode: str, unit: Any) -> Any:
    """Append what the last vsqz has kept to a stream, AR bytes past the pointer.

    With POST_UPDATE AR then counts these bytes too.
    """
    kept, done = unit.hidden("SQZN"), unit.hidden("AR")
    found = unit.append(state, src, kept, base, base.offset + done)
    if mode == "POST_UPDATE":
        unit.set_hidden("AR", done + kept)
    return found


@micro("state:align base:ub", uses="AR", called="{name}({state}, {base})")
def vstar(state: Any, base: Any, unit: Any) -> None:
    """Store what is left of a stream that ends AR bytes past the pointer."""
    unit.flush(state, base, base.offset + unit.hidden("AR"))


@micro("", words=[_REGISTER], sets="AR")
def sprclr(register: str, unit: Any) -> None:
    """Clear a hidden register."""
    unit.set_hidden(register, 0)


@micro(
    "state:align mask:N base:ub -> state2:align next:ub",
    masking=Masking.SELECT,
    syntax="%state, %mask, %base {} : T(state), T(mask), T(base) -> T(state2), T(next)",
)
def pstu(state: Any, mask: Any, base: Any, unit: Any) -> Any:
    """Append a mask to a stream, one bit per lane of its width."""
    data = np.packbits(mask.bits[:: base.dtype.itemsize], bitorder="little")
    return unit.append(state, unit.made_of(data, mask), data.size, base, base.offset), (
        base.moved(data.size // base.dtype.itemsize)
    )


def _store_word(unit: Any, at: Any, start: int, image: Any, register: str) -> None:
    word = np.array([unit.hidden(register)], np.uint32)
    unit.raw(at, start, image, True)[:] = word.view(np.uint8)


for _letter, _unit, _words in (("i", "word", "words"), ("s", "byte", "bytes")):
    micro(
        "base:ub offset:int -> next?:ub",
        name=f"sprst{_letter}",
        words=[_REGISTER],
        uses="AR",
        footprint=Footprint(writes=True, offset="offset", unit=_unit, image=fp.word_image),
        syntax="@register, %base[%offset] {} : T(base), T(offset)[? -> T(next)?]",
        doc=f"Store a hidden register as a word; the offset counts {_words}.",
    )(_store_word)
