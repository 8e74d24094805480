"""What every operation on logical vectors makes, in plain Python.

Nothing here is shared with the definitions. A formula is handed the operands by their names -
lanes and memory as lists of Python numbers, masks as lists of bits - with the words and the types,
and returns the lanes of the results, or what is in memory afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from tests.micro.formulas import FORMULAS as OF_REGISTERS
from tests.micro.formulas import Formula, Lanes, fitted, wrapped

# ---- lane by lane ------------------------------------------------------------------------------

_SISTERS = """vabs vneg vexp vln vsqrt vrec vrelu vadd vsub vmul vdiv vmax vmin vshl vshr vshls
vshrs vadds vmuls vmaxs vmins vlrelu vprelu vmula vmadd vaxpy vmull vaddc vaddcs vsubc vsubcs"""
_OLDER = {
    **{f"{n}{k}": f"v{n}" for n in ("add", "sub", "mul", "min", "max", "neg", "abs") for k in "fi"},
    "divf": "vdiv",
    "sqrt": "vsqrt",
    "exp": "vexp",
    "ln": "vln",
    "relu": "vrelu",
    "shli": "vshl",
    "shrui": "vshr",
    "shrsi": "vshr",
    "fma": "vmula",
}


def merged(formula: Formula) -> Formula:
    """With the lanes of the first operand where the mask is not set, where that is asked for."""

    def kept(g: Any) -> Any:
        found = formula(g)
        if g.words.get("pmode") != "merge":
            return found
        results = found if isinstance(found, tuple) else (found,)
        made = tuple(
            [r if on else f for r, f, on in zip(lanes, g.first, g.mask, strict=True)]
            for lanes in results
        )
        return made if isinstance(found, tuple) else made[0]

    return kept


def _bitwise(combine: Callable[[int, int], int]) -> Formula:
    def formula(g: Any) -> Lanes:
        others = getattr(g, "b", g.a)
        if isinstance(g.a[0], bool):
            pairs = zip(g.a, others, g.mask, strict=True)
            return [bool(combine(a, b) & 1) and on for a, b, on in pairs]
        return [
            wrapped(combine(a, b), g.T) if on else 0
            for a, b, on in zip(g.a, others, g.mask, strict=True)
        ]

    return formula


_BITWISE = {
    "and": _bitwise(lambda a, b: a & b),
    "or": _bitwise(lambda a, b: a | b),
    "xor": _bitwise(lambda a, b: a ^ b),
    "not": _bitwise(lambda a, b: ~int(a)),
}


def _compared(word: str, is_number: bool = False) -> Formula:
    tests: dict[str, Callable[[Any, Any], bool]] = {
        "eq": lambda a, b: a == b,
        "ne": lambda a, b: a != b,
        "lt": lambda a, b: a < b,
        "le": lambda a, b: a <= b,
        "gt": lambda a, b: a > b,
        "ge": lambda a, b: a >= b,
    }

    def formula(g: Any) -> Lanes:
        said = g.words[word]
        others = [g.b] * len(g.a) if is_number else g.b
        are = [not (math.isnan(a) or math.isnan(b)) for a, b in zip(g.a, others, strict=True)]
        found = [tests[said[-2:]](a, b) for a, b in zip(g.a, others, strict=True)]
        if len(said) == 3:
            found = [f and ordered for f, ordered in zip(found, are, strict=True)]
        return [bool(f and on) for f, on in zip(found, g.mask, strict=True)]

    return formula


def _chosen(g: Any) -> Lanes:
    return [a if on else b for a, b, on in zip(g.a, g.b, g.select, strict=True)]


def _differences(g: Any) -> Lanes:
    return [
        fitted(math.exp(a - b), g.U) if on else 0.0
        for a, b, on in zip(g.a, g.b, g.mask, strict=True)
    ]


# ---- masks, numbers, places --------------------------------------------------------------------


def _before(bits: Lanes) -> Lanes:
    return [sum(bits[:n]) for n in range(len(bits))]


def _squeezed(g: Any) -> Lanes:
    kept = [a for a, on in zip(g.a, g.mask, strict=True) if on]
    return kept + [fitted(0, g.T)] * (len(g.a) - len(kept))


def _counted(g: Any) -> Lanes:
    sign = -1 if g.words.get("order") == "DESC" else 1
    own = g.lanes // int(g.words.get("group") or 1)
    return [fitted(g.s + sign * (n % own), g.T) for n in range(g.lanes)]


def _repeated(g: Any) -> Lanes:
    if not isinstance(g.a, list):
        return [fitted(g.a, g.T)] * g.lanes
    return [a for a in g.a for _ in range(g.lanes // len(g.a))]


def _in_turn(g: Any) -> Lanes:
    found = [x for pair in zip(g.a, g.b, strict=True) for x in pair]
    halves = found[: len(g.a)], found[len(g.a) :]
    return tuple(_zeroed(half, g.mask) for half in halves)  # type: ignore[return-value]


def _even_and_odd(g: Any) -> Lanes:
    both = g.a + g.b
    return _zeroed(both[::2], g.mask), _zeroed(both[1::2], g.mask)  # type: ignore[return-value]


def _zeroed(lanes: Lanes, mask: Lanes) -> Lanes:
    return [x if on else 0 for x, on in zip(lanes, mask, strict=True)]


# ---- reductions --------------------------------------------------------------------------------


def _reduced(fold: str) -> Formula:
    def formula(g: Any) -> Lanes:
        own, found = len(g.a) // g.lanes, []
        for start in range(0, len(g.a), own):
            some = [g.a[n] for n in range(start, start + own) if g.mask[n]]
            if fold == "add":
                exact = sum(map(Fraction, some))
                found.append(fitted(float(exact) if g.T.is_float else int(exact), g.T))
            else:
                worst = -math.inf if fold == "max" else math.inf
                if not g.T.is_float:
                    worst = g.T.min_value if fold == "max" else g.T.max_value
                found.append((max if fold == "max" else min)([worst, *some]))
        return found

    return formula


def _histogram(is_sum: bool) -> Formula:
    def formula(g: Any) -> Lanes:
        active = [v for v, on in zip(g.values, g.mask, strict=True) if on]
        return [
            (a + sum(v <= n if is_sum else v == n for v in active)) % (1 << 16)
            for n, a in enumerate(g.a)
        ]

    return formula


# ---- conversions -------------------------------------------------------------------------------


def _rounded(value: float, how: str) -> int:
    down = math.floor(value)
    return {
        "F": down,
        "C": math.ceil(value),
        "Z": math.trunc(value),
        "A": int(math.copysign(math.floor(abs(value) + 0.5), value)),
        "H": int(math.copysign(math.floor(abs(value) + 0.5), value)),
        "R": round(value),
    }[how]


def _converted(g: Any) -> Lanes:
    """Of values that every type of result holds: what is beyond its range is not tried here."""
    if g.T.is_float and g.U.is_integer:
        found = [_rounded(a, g.words.get("rounding") or "R") for a in g.a]
    elif g.T.is_integer and g.U.is_integer:
        found = [wrapped(int(a), g.U) for a in g.a]
    else:
        found = [fitted(a, g.U) for a in g.a]
    return _zeroed(found, g.mask)


# ---- memory ------------------------------------------------------------------------------------


def _rows(g: Any, lane: int, groups: int, stride: int) -> int:
    own = g.lanes // groups
    return g.offset + lane // own * stride + lane % own


def _blocks(g: Any, lane: int) -> int:
    own = 32 // g.T.itemsize
    moved = getattr(g, "repeat_stride", 0) * own
    return g.offset + lane // own * g.block_stride * own + lane % own + moved


def _place(g: Any, lane: int) -> int:
    return g.offset + lane


def _row(g: Any, lane: int) -> int:
    return _rows(g, lane, int(g.words["num_groups"]), g.row_stride)


def _group(g: Any, lane: int) -> int:
    own = g.lanes // int(g.words["num_groups"])
    return g.offset + lane // own * g.row_stride


def _squeezed_place(g: Any, lane: int) -> int:
    return g.offset + sum(g.mask[:lane])


def _index(g: Any, lane: int) -> int:
    return int(g.index[lane])


def _byte(g: Any, lane: int) -> int:
    return int(g.index[lane]) // g.T.itemsize


def _loaded(where: Callable[[Any, int], int]) -> Formula:
    def formula(g: Any) -> Lanes:
        rest = getattr(g, "passthru", [0] * g.lanes)
        return [g.base[where(g, n)] if g.mask[n] else rest[n] for n in range(g.lanes)]

    return formula


def _stored(where: Callable[[Any, int], int]) -> Formula:
    def formula(g: Any) -> Lanes:
        memory = list(g.base)
        for lane in range(g.lanes):
            if g.mask[lane]:
                memory[where(g, lane)] = g.src[lane]
        return memory

    return formula


def _loaded_in_turn(g: Any) -> Any:
    piece = g.base[g.offset : g.offset + 2 * g.lanes]
    return piece[::2], piece[1::2]


def _stored_in_turn(g: Any) -> Lanes:
    memory = list(g.base)
    memory[g.offset : g.offset + 2 * g.lanes] = [
        x for pair in zip(g.src, g.high, strict=True) for x in pair
    ]
    return memory


def _same(g: Any) -> Any:
    return g.a


def _registers(g: Any) -> Any:
    return g.a[:64], g.a[64:128], g.a[128:]


def _bytes_as(g: Any) -> Lanes:
    raw = np.array(g.a, g.T.np).tobytes()
    return np.frombuffer(raw, g.U.np).tolist()


FORMULAS: dict[str, Formula] = {
    **{name: merged(OF_REGISTERS[name]) for name in _SISTERS.split()},
    **{name: OF_REGISTERS[of] for name, of in _OLDER.items()},
    **{f"v{name}": merged(formula) for name, formula in _BITWISE.items()},
    **{f"mask_{name}": formula for name, formula in _BITWISE.items()},
    "andi": _BITWISE["and"],
    "ori": _BITWISE["or"],
    "xori": _BITWISE["xor"],
    "not": _BITWISE["not"],
    "vexpdif": merged(_differences),
    "vcmp": _compared("cmp"),
    "vcmps": _compared("cmp", is_number=True),
    "cmpf": _compared("predicate"),
    "cmpi": _compared("predicate"),
    "vsel": _chosen,
    "select": _chosen,
    "create_mask": lambda g: [n < g.n for n in range(g.lanes)],
    "create_group_mask": lambda g: [n % 8 < g.n for n in range(g.lanes)],
    "pset": lambda g: [True] * g.lanes,
    "pge": lambda g: [n < 16 for n in range(g.lanes)],
    "plt": lambda g: ([n < g.n for n in range(g.lanes)], [max(g.n - g.lanes, 0)] * 64),
    "constant_mask": lambda g: [True] * g.lanes,
    "active_prefix_index": lambda g: _before(g.mask),
    "compress": _squeezed,
    "vbrc": _repeated,
    "broadcast": _repeated,
    "group_broadcast": _repeated,
    "constant": lambda g: [1.5] * g.lanes,
    "vci": _counted,
    "iota": _counted,
    "group_iota": _counted,
    "vinterpret_cast": _bytes_as,
    "bitcast": _bytes_as,
    "vintlv": merged(_in_turn),
    "vdintlv": merged(_even_and_odd),
    "vselr": lambda g: [g.a[int(n) % len(g.a)] for n in g.index],
    "shuffle": lambda g: g.a[::-1],
    "channel_split": lambda g: tuple(g.a[n::3] for n in range(3)),
    "channel_merge": lambda g: [
        x
        for triple in zip(g.channels0, g.channels1, g.channels2, strict=True)
        for x in triple
    ],
    **{f"vc{fold}": _reduced(fold) for fold in ("add", "max", "min")},
    **{f"{front}reduce_{fold}{k}": _reduced(fold) for front in ("", "group_")
       for fold in ("add", "max", "min") for k in "fi"},
    "vdhist": _histogram(False),
    "vchist": _histogram(True),
    **dict.fromkeys(
        ("vcvt", "extf", "truncf", "fptosi", "fptoui", "sitofp", "extsi", "extui", "trunci"),
        _converted,
    ),
    "vload": _loaded(_place),
    "load": _loaded(_place),
    "deinterleave_load": _loaded_in_turn,
    "group_load": _loaded(_row),
    "group_slot_load": _loaded(_row),
    "group_broadcast_load": _loaded(_group),
    "stride_load": _loaded(_blocks),
    "masked_load": _loaded(_place),
    "expand_load": _loaded(_squeezed_place),
    "vgather": _loaded(_index),
    "vgatherb": _loaded(_byte),
    "gather": _loaded(_index),
    "vstore": _stored(_place),
    "store": _stored(_place),
    "interleave_store": _stored_in_turn,
    "group_store": _stored(_row),
    "masked_store": _stored(_place),
    "compress_store": _stored(_squeezed_place),
    "stride_store": _stored(_blocks),
    "vsstb": _stored(_blocks),
    "vscatter": _stored(_index),
    "scatter": _stored(_index),
    "ensure_layout": _same,
    "ensure_mask_layout": _same,
    "ensure_mask_granularity": _same,
    "unpack": _registers,
    "pack": lambda g: g.parts0 + g.parts1 + g.parts2,
}  # fmt: skip
