"""Every operation on logical vectors, of every type, with and without a mask, beside a formula."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ptokit.base.dtypes import DType
from ptokit.isa.micro import MICRO, Micro
from ptokit.isa.micro.samples import examples, kinds
from tests.micro.logical_formulas import FORMULAS

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
from micro_examples import Array, Kernel, kernel, run

LOGICAL = [record for record in MICRO.values() if record.is_logical]
NUMBERS = {"offset": 24, "row_stride": 16, "block_stride": 2, "repeat_stride": 1, "n": 37}
_UNKNOWN = ("f8e8m0", "hif8")  # whose numbers no formula here has


def variants(record: Micro) -> Iterator[tuple[tuple[str, ...], dict[str, str]]]:
    """Operands that may be left out, and words: none, a mask, and each choice beside the first."""
    mask = tuple(s.name for s in record.operands if s.is_optional and s.kind == "M")
    yield (), {}
    if mask:
        yield mask, {}
    for word in record.words:
        if word.name in ("pmode", "cmp", "predicate", "order", "rounding"):
            for choice in word.choices[1:]:
                yield mask, {word.name: choice}


def is_legal(T: DType, U: DType, said: dict[str, str]) -> bool:
    """Whether words go together with types, as the rules of the language have it."""
    if said.get("pmode") == "merge" and T is not U:
        return False
    if len(said.get("cmp", "")) == 3:
        return T.is_float
    how = said.get("rounding")
    if how is None:
        return True
    if T.is_float and U.is_integer:
        return how in "RAFCZ"
    # Narrower floats are rounded by `fitted`, to nearest.
    return how == "R" and T.is_float and U.is_float and U.itemsize <= T.itemsize


def cases() -> Iterator[Any]:
    """Every type with a mask, where there may be one; the words with one or two of them."""
    for record in LOGICAL:
        known = [pair for pair in kinds(record) if not {k.name for k in pair} & {*_UNKNOWN}]
        for T, U in known:
            legal = [each for each in variants(record) if is_legal(T, U, each[1])]
            tried = legal if (T, U) in (known[0], known[-1]) else legal[:2][-1:]
            for more, said in tried:
                name = "-".join([record.name, T.name, U.name, *more, *said.values()])
                yield pytest.param(record, T, U, more, said, id=name)


def filled(array: Array, made: Kernel, U: DType, rng: np.random.Generator) -> Any:
    """Random elements: every pattern of integers, floats that all types of results hold."""
    kind = array.kind
    if array.is_index:
        chosen = rng.permutation(64)[: array.count]
        is_byte = made.record.name.endswith("gatherb")
        return (chosen * (kind.itemsize if is_byte else 1)).astype(kind.np)
    if kind.is_integer:
        raw = rng.integers(0, 256, array.count * kind.itemsize, dtype=np.uint8).view(kind.np)
        return raw
    values = rng.integers(1, 9, array.count) / 4
    if kind.itemsize > 1 and not (U.is_integer and not U.is_signed):
        values = values * rng.choice([-1, 1], array.count)
    return values.astype(np.float32).astype(kind.np)


def bare(name: str) -> str:
    """The name of the operand or result that an array is for."""
    return name.removeprefix("seen_").removesuffix("_out").removesuffix("_")


class Given:
    """What a formula is handed."""

    def __init__(self, T: DType, U: DType, words: dict[str, str], **values: Any) -> None:
        self.T, self.U, self.words = T, U, words
        self.__dict__.update(values)


def listed(array: Any) -> list[Any]:
    return array.tolist() if array.dtype.kind in "iub" else [float(x) for x in array]


@pytest.mark.parametrize(("record", "T", "U", "more", "said"), list(cases()))
def test_it_makes_what_its_formula_says(
    record: Micro, T: DType, U: DType, more: tuple[str, ...], said: dict[str, str]
) -> None:
    rng = np.random.default_rng(sum(map(ord, record.name)))
    masks: dict[str, list[bool]] = {}

    def bits(name: str, lanes: int) -> list[bool]:
        masks[name] = (rng.integers(0, 4, lanes) > 0).tolist()
        return masks[name]

    numbers = dict.fromkeys((s.name for s in record.operands), 3) | NUMBERS
    written = {name: f'"{choice}"' for name, choice in said.items()}
    made = kernel(record, T, U, bits, numbers, more, written)
    contents = {a.name: filled(a, made, U, rng) for a in made.arrays}
    for slot in record.operands:  # counts of bits, and logarithms of what has one
        if slot.kind == "W" and f"{slot.name}_" in contents:
            contents[f"{slot.name}_"] %= T.bits
    if record.freedom and record.is_lanewise and len(record.operands) == 2 and T.is_float:
        contents["a_"] = abs(contents["a_"])
    found = run(made, contents)

    words = {
        name: text.strip('"').partition(" ")[0] for name, text in examples(record, T, U).items()
    }
    words |= {w.name: w.choices[0] for w in record.words if w.default is None and w.choices} | said
    lanes = next(a.count for a in made.arrays if a.is_result)
    if record.footprint is not None and record.footprint.writes:
        lanes = next(a.count for a in made.arrays if not a.is_result)
    values = {bare(a.name): listed(contents[a.name]) for a in made.arrays} | masks
    counted = {s.name: numbers[s.name] for s in record.operands if s.name not in values}
    own = values.get("a") or values.get("values") or [0] * lanes
    values.setdefault("mask", [True] * (lanes if record.footprint else len(own)))
    first = next((values[s.name] for s in record.operands if s.kind in "VE"), [])
    made_of = Given(T, U, words, lanes=lanes, first=first, **(counted | values))
    wanted = FORMULAS[record.name.removeprefix("vmi.")](made_of)
    results = wanted if isinstance(wanted, tuple) else (wanted,)
    assert len(results) == len(found)
    for expected, array in zip(results, found.values(), strict=True):
        np.testing.assert_array_equal(np.array(listed(array)), np.array(expected, np.float64))


def test_every_operation_has_a_formula() -> None:
    names = {record.name.removeprefix("vmi.") for record in LOGICAL}
    assert names == set(FORMULAS)
