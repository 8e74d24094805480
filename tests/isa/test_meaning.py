"""Every meaning twice: the NumPy code made of it, and one element at a time in Python numbers."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from enum import IntEnum
from functools import reduce
from typing import Any, TypeVar

import numpy as np
import pytest

from ptokit.base.convert import number
from ptokit.base.dtypes import DType, dtype, f32
from ptokit.base.enums import TileType
from ptokit.base.layout import Array
from ptokit.base.tiles import TileSpec
from ptokit.isa import INSTRUCTIONS
from ptokit.isa.arrays import pack_mask
from ptokit.isa.expr import OPERATORS, Apply, Arg, Convert, Expr, Given, walk
from ptokit.isa.facts import Ops, TileFacts
from ptokit.isa.folds import BLOCKS, REGISTERS, ROW_BY_ROW, TWO_ROWS_AT_A_TIME, Order, tree
from ptokit.isa.freedom import Openness, freedoms, ulp
from ptokit.isa.idioms import Elementwise
from ptokit.isa.masks import Packed
from ptokit.isa.meaning import ArgReduce, Each, Meaning, Partial, Reduce, kinds_of
from ptokit.isa.samples import Sample, samples
from ptokit.isa.spec import Insn
from ptokit.isa.targets import TARGETS
from tests.isa.scalars import evaluate, nearest, taken
from tests.isa.tiles import same_bits

F = TypeVar("F")
STATED = [insn for insn in INSTRUCTIONS.values() if insn.means is not None]
_FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, np.inf, -np.inf, np.nan, 6e-8, 1e-42, 65504, -3e38)


def with_attributes(sample: Sample) -> Iterator[Sample]:
    """The sample with every value of every template argument."""
    yield sample
    for attr in sample.insn.attrs:
        values: Any = attr.type if issubclass(attr.type, IntEnum) else (False, True)
        for value in values:
            if value != sample.attrs[attr.name]:
                yield replace(sample, attrs=sample.attrs | {attr.name: value})


def calls(insn: Insn) -> Iterator[Ops]:
    """Calls that differ in what is computed: by types, targets and template arguments."""
    assert insn.means is not None
    seen: set[Any] = set()
    for target in TARGETS.values():
        if target.name not in insn.targets:
            continue
        for sample in (s for each in samples(insn, target) for s in with_attributes(each)):
            ops = sample.facts()
            form = insn.means.form
            key = (insn.means.expressions(ops), *kinds_of(ops).items(), form.key(ops))
            if key not in seen:
                seen.add(key)
                yield ops


def numbers_of(kind: DType, count: int, rng: np.random.Generator) -> Array:
    """Special values and random ones, of all magnitudes."""
    if kind.is_integer:
        low, high = int(kind.min_value), int(kind.max_value)
        special = [0, 1, 2, 3, 7, 8, kind.bits - 1, kind.bits, high, high // 2, low, low + 1]
        special += [-1, -2, -7] if low < 0 else []
        chosen = [special[k] for k in rng.integers(0, len(special), count)]
        mixed = np.array(chosen, object).astype(kind.np)
    else:
        with np.errstate(over="ignore"):
            mixed = np.array(_FLOATS)[rng.integers(0, len(_FLOATS), count)].astype(kind.np)
    noise = rng.integers(0, 256, count * kind.itemsize, np.uint8).view(kind.np)
    small = rng.integers(-9 if kind.is_signed else 0, 10, count).astype(kind.np)
    with np.errstate(invalid="ignore"):
        pieces = small if kind.is_integer else small + rng.random(count).astype(kind.np)
    pick = rng.integers(0, 4, count)
    return np.where(pick < 2, mixed, np.where(pick == 2, noise, pieces))


class Noted:
    """Stands in for the machine and notes which elements are declared undefined."""

    def __init__(self) -> None:
        self.where: Array | None = None

    def poison_where(self, name: str, where: Array) -> None:
        self.where = where

    def undefined(self, name: str) -> None:
        """Every element of the samples is defined."""

    def demand(self, name: str, part: Any) -> None:
        """So whatever is asked for is there."""


def as_numbers(array: Array, kind: DType) -> list[Any]:
    return [number(each, kind) for each in array.reshape(-1)]


def as_array(values: list[Any], kind: DType, shape: tuple[int, ...]) -> Array:
    return np.array(values, object).astype(kind.np).reshape(shape)


def run(insn: Insn, ops: Ops, arrays: dict[str, Any], noted: Noted | None = None) -> None:
    """The NumPy code over these arrays; operands that are not named are left out."""
    assert insn.means is not None
    services = {"poison": noted, "ops": ops}
    more = {name: services[name] for name in insn.services}
    insn.body_for(ops)(*(arrays.get(o.name) for o in insn.operands), **more)


# ---- the four forms ----------------------------------------------------------------------------


def stated(insn: Insn, form: type[F]) -> tuple[Meaning, F]:
    """The meaning of an instruction that has this form."""
    assert insn.means is not None
    assert isinstance(insn.means.form, form)
    return insn.means, insn.means.form


def check_packed(insn: Insn, ops: Ops, rng: np.random.Generator) -> None:
    meaning, form = stated(insn, Packed)
    (expr,) = meaning.expressions(ops)
    rows, cols = 3, 64
    arrays: dict[str, Any] = {"dst": np.zeros((rows, cols // 8 + form.inverts(ops)), np.uint8)}
    given: dict[str, list[Any]] = {}
    for arg in {node.name: node for node in walk(expr) if isinstance(node, Arg)}.values():
        if arg.is_number:
            arrays[arg.name] = float(rng.choice([-2.5, 0.0, 1.0, 3.0, 7.0]))
            given[arg.name] = [taken(arrays[arg.name], arg.kind)] * (rows * cols)
        else:
            arrays[arg.name] = numbers_of(arg.kind, rows * cols, rng).reshape(rows, cols)
            given[arg.name] = as_numbers(arrays[arg.name], arg.kind)
    points = [{n: v[k] for n, v in given.items()} for k in range(rows * cols)]
    wanted = np.full_like(arrays["dst"], 0xFF)  # what is only inverted
    pack_mask(
        np.array([evaluate(expr, p) for p in points]).reshape(rows, cols), wanted[:, : cols // 8]
    )
    run(insn, ops, arrays, Noted())
    assert same_bits(arrays["dst"], wanted)


def is_pattern(node: Expr) -> bool:
    """Whether the bits of an element are read as another type."""
    return isinstance(node, Convert) and node.rounding is None


def check_each(insn: Insn, ops: Ops, rng: np.random.Generator) -> None:
    meaning, form = stated(insn, Each)
    (expr,), (dst,) = meaning.expressions(ops), meaning.outs
    rows, cols = 3, 64
    arrays: dict[str, Any] = {}
    given: dict[str, list[Any]] = {}
    for arg in {node.name: node for node in walk(expr) if isinstance(node, Arg)}.values():
        if arg.is_number:
            arrays[arg.name] = float(rng.choice([-2.5, 0.0, 1.0, 3.0, 7.0]))
            given[arg.name] = [taken(arrays[arg.name], arg.kind)] * (rows * cols)
        elif arg.name in form.masks:
            bits = rng.integers(0, 2, (rows, cols)).astype(bool)
            arrays[arg.name] = np.zeros((rows, cols // 8), np.uint8)
            pack_mask(bits, arrays[arg.name])
            given[arg.name] = bits.reshape(-1).tolist()
        else:
            width = 8 if form.repeats and arg.name == "src1" else cols
            narrow = numbers_of(arg.kind, rows * width, rng).reshape(rows, width)
            if arg.kind.is_float and any(is_pattern(node) for node in walk(expr)):
                narrow[np.isnan(narrow)] = 1  # a number of Python forgets the bits of NaN
            arrays[arg.name] = narrow
            given[arg.name] = as_numbers(np.tile(narrow, cols // width), arg.kind)
    kind = ops[dst].dtype
    if dst not in arrays:
        arrays[dst] = np.zeros((rows, cols), kind.np)
    test = None
    if isinstance(expr, Apply) and expr.name == "undefined":
        test, expr = expr.operands
    points = [{n: v[k] for n, v in given.items()} for k in range(rows * cols)]
    open_ = np.array([bool(test and evaluate(test, p)) for p in points]).reshape(rows, cols)
    found = [evaluate(expr, p) for p in points]
    noted = Noted()
    run(insn, ops, arrays, noted)
    assert np.array_equal(open_, np.zeros_like(open_) if noted.where is None else noted.where)
    assert expr.kind is kind
    wanted = np.where(open_, arrays[dst], as_array(found, kind, (rows, cols)))
    assert same_bits(arrays[dst], wanted), mismatch(arrays[dst], wanted, points, expr)


def mismatch(got: Array, wanted: Array, points: list[dict[str, Any]], expr: Expr) -> str:
    at = [k for k, (a, b) in enumerate(zip(got.flat, wanted.flat, strict=True)) if a != b]
    shown = [(points[k], got.flat[k], wanted.flat[k]) for k in at[:3] if got.flat[k] == got.flat[k]]
    return f"{expr}: {shown}"


def check_partial(insn: Insn, ops: Ops, rng: np.random.Generator) -> None:
    meaning, form = stated(insn, Partial)
    shape = (4, 24)
    for small in ((2, 10), (0, 0), shape):
        arrays: dict[str, Any] = {}
        for names in form.sources.values():
            for name, size in zip(names, (shape, small), strict=True):
                kind = ops[name].dtype
                arrays[name] = numbers_of(kind, size[0] * size[1], rng).reshape(size)
        wanted = {out: arrays[first].copy() for out, (first, _) in form.sources.items()}
        for row in range(small[0]):
            for col in range(small[1]):
                point = {
                    name: number(arrays[name][row, col], ops[name].dtype)
                    for name in meaning.parameters
                }
                exprs = meaning.expressions(ops)
                for out, expr in zip(meaning.outs, exprs, strict=True):
                    value = as_array([evaluate(expr, point)], expr.kind, (1,))
                    wanted[out][row, col] = value[0]
        arrays |= {out: np.zeros(shape, ops[out].dtype.np) for out in meaning.outs}
        run(insn, ops, arrays)
        for out in meaning.outs:
            assert same_bits(arrays[out], wanted[out])


def along(axis: int, values: Array) -> Array:
    return values if axis else values.T


def check_reduce(insn: Insn, ops: Ops, rng: np.random.Generator) -> None:
    meaning, form = stated(insn, Reduce)
    source, result = ops.src.dtype, ops.dst.dtype
    order, kind = form.order(ops), form.accumulates(ops)
    for length in (ops.src.vc,) if order is BLOCKS else (1, 2, 5, 16, 67, 128, 130):
        values = numbers_of(source, 3 * length, rng).reshape(3, length)
        if source.is_float and order is not None:  # tame enough that not everything is NaN
            values[:2] = rng.standard_normal((2, length)).astype(source.np)
        wanted: list[Any] = []
        for row in values:
            wide = [evaluate(Arg(source, "x").to(kind), {"x": number(v, source)}) for v in row]
            total = folded(meaning, kind, wide, order, form.identity)
            wanted.append(evaluate(Arg(kind, "x").to(result), {"x": total}))
        dst = np.zeros((3, 1), result.np)
        run(insn, ops, {"dst": along(form.axis, dst), "src": along(form.axis, values)})
        assert same_bits(dst, as_array(wanted, result, (3, 1))), (order, length)


def folded(
    meaning: Meaning, kind: DType, values: list[Any], order: Order | None, identity: int
) -> Any:
    """Combine in the order that the tree shows; without one from the first element on."""

    def join(held: Any, element: Any, kind: DType = kind) -> Any:
        (step,) = meaning.traced({"src": kind}, {})
        return evaluate(step, {"held": held, "element": element})

    def meet(node: Any, now: DType) -> Any:
        if node is None:
            return taken(identity, now)
        if isinstance(node, int):
            return values[node]
        if isinstance(node[0], str):  # a change of type, to f32 or back
            return nearest(meet(node[1], kind if now is f32 else f32), now)
        return join(meet(node[0], now), meet(node[1], now), now)

    if order is None or kind.is_integer:  # integers wrap: every order gives the same
        return reduce(join, values)
    return meet(tree(order, kind, len(values)), kind)


def check_arg_reduce(insn: Insn, ops: Ops, rng: np.random.Generator) -> None:
    meaning, form = stated(insn, ArgReduce)
    axis, kind = form.axis, ops.src.dtype
    takes = meaning.expressions(ops)
    for length in (1, 2, 9, 40):
        values = numbers_of(kind, 5 * length, rng).reshape(5, length)
        if kind.is_integer and ops.target.name == "a2a3":
            values &= 0x3FF  # no patterns of infinities
        best: list[int] = []
        places: list[int] = []
        for row in values.tolist():
            held, at, place = row[0], 0, 0
            for k, element in enumerate(row[1:], 1):
                given = {"held": held, "element": element}
                moved = evaluate(takes[-1], given)
                if evaluate(takes[0], given):
                    held, at = element, k
                place = k if moved else place
            best.append(at)
            places.append(place)
        index = np.zeros((5, 1), ops.dstIdx.dtype.np)
        value = np.zeros((5, 1), kind.np)
        arrays = {"dstIdx": index, "dstVal": value, "src": values}
        run(insn, ops, {name: along(axis, array) for name, array in arrays.items()})
        assert index[:, 0].tolist() == places
        assert same_bits(value[:, 0], values[np.arange(5), best])


CHECKS: dict[type, Callable[[Insn, Ops, np.random.Generator], None]] = {
    Each: check_each,
    Partial: check_partial,
    Reduce: check_reduce,
    ArgReduce: check_arg_reduce,
    Packed: check_packed,
}


@pytest.mark.parametrize("insn", STATED, ids=str)
def test_code_and_expression_agree(insn: Insn) -> None:
    assert insn.means is not None
    rng = np.random.default_rng(zlib.crc32(insn.name.encode()))
    with np.errstate(all="ignore"):
        for ops in calls(insn):
            CHECKS[type(insn.means.form)](insn, ops, rng)


# ---- what every meaning has --------------------------------------------------------------------


def test_simple_instructions_state_their_meaning() -> None:
    """A vector instruction whose body goes element by element is written as an expression."""
    assert len(STATED) >= 90
    assert {type(insn.means.form) for insn in STATED if insn.means} == set(CHECKS)


@pytest.mark.parametrize("insn", STATED, ids=str)
def test_types_are_explicit(insn: Insn) -> None:
    """The operands of an operator have one type, which changes at conversions only."""
    assert insn.means is not None
    for ops in calls(insn):
        for expr in insn.means.expressions(ops):
            for node in walk(expr):
                assert not isinstance(node, Given)
                if isinstance(node, Apply) and node.name != "scale":
                    first = 1 if node.name in ("select", "undefined") else 0
                    assert len({part.kind for part in node.operands[first:]}) == 1, node
                    assert node.kind is (OPERATORS[node.name].result or node.operands[-1].kind)


def test_every_operator_is_used() -> None:
    """The algebra holds what the instruction set needs, and no more."""
    stated = (
        expr
        for insn in STATED
        if insn.means is not None
        for ops in calls(insn)
        for expr in insn.means.expressions(ops)
    )
    loops = (
        insn.idiom(sample.facts())
        for insn in INSTRUCTIONS.values()
        if insn.idiom is not None
        for target in TARGETS.values()
        if target.name in insn.targets
        for sample in samples(insn, target)
    )
    amounts = (loop.expr for loop in loops if isinstance(loop, Elementwise))
    nodes = (node for expr in (*stated, *amounts) for node in walk(expr))
    assert {node.name for node in nodes if isinstance(node, Apply)} == set(OPERATORS)


@pytest.mark.parametrize(
    ("name", "kind", "line"),
    [
        ("TADD", "f32", "dst[i, j] = src0[i, j] + src1[i, j]"),
        ("TADDS", "i16", "dst[i, j] = src[i, j] + scalar"),
        ("TEXP", "f16", "dst[i, j] = T(exp(f64(src[i, j])))"),
        ("TDIV", "i32", "dst[i, j] = src0[i, j] // src1[i, j]"),
        (
            "TROWEXPANDEXPDIF",
            "f32",
            "dst[i, j] = (T(exp(f64(src0[i, j]) - f64(src1[i, j]))) on a5, "
            "else T(exp(f64(src0[i, j] - src1[i, j]))))",
        ),
        (
            "TROWMAX",
            "f32",
            "dst[i, 0] = src[i, :] combined by "
            "(element if held < element else held), from the first on",
        ),
        (
            "TPARTADD",
            "f32",
            "dst[i, j] = src0[i, j] + src1[i, j] where both sources are valid, "
            "elsewhere the one that is",
        ),
    ],
)
def test_a_meaning_can_be_read(name: str, kind: str, line: str) -> None:
    insn = INSTRUCTIONS[name]
    assert insn.means is not None
    kinds = {o.name: None if "scalar" in o.kinds else dtype(kind) for o in insn.operands}
    attrs = {a.name: a.default for a in insn.attrs}
    assert insn.means.line(kinds, attrs) == line


def test_code_is_made_once() -> None:
    """Calls that differ in sizes and addresses only share their code."""
    insn = INSTRUCTIONS["TADD"]
    assert insn.means is not None
    first, second = (
        Ops(
            {n: TileFacts(TileSpec.of(TileType.Vec, dtype("f32"), rows, 64)) for n in names},
            {},
            TARGETS["a5"],
            "auto",
        )
        for rows in (8, 16)
        for names in [("dst", "src0", "src1")]
    )
    assert insn.means.body(first) is insn.means.body(second)


def test_the_order_of_a_sum_is_data() -> None:
    """Which elements meet can be asked for: a pair is a sum, None the zero a device starts from."""
    assert tree(ROW_BY_ROW, dtype("f32"), 3) == ((0, 1), 2)
    assert tree(TWO_ROWS_AT_A_TIME, dtype("f32"), 4) == ((0, (1, 2)), 3)
    assert tree(REGISTERS, dtype("f32"), 4) == (None, ((0, 1), (2, 3)))


def left_open(insn: Insn) -> set[Openness]:
    return {each.kind for each in insn.freedom}


@pytest.mark.parametrize("insn", STATED, ids=str)
def test_freedom_follows_from_the_meaning(insn: Insn) -> None:
    """Functions that hardware approximates have a tolerance; sums and products may be reordered."""
    assert insn.means is not None
    form = insn.means.form
    assert (Openness.REASSOCIATES in left_open(insn)) == (
        isinstance(form, Reduce) and bool(form.orders)
    )
    names = {
        node.name
        for ops in calls(insn)
        for expr in insn.means.expressions(ops)
        for node in walk(expr)
        if isinstance(node, Apply)
    }
    if names & {"exp", "log", "sqrt"}:
        assert Openness.ULP in left_open(insn)


def test_what_is_open_has_a_place_and_a_sentence() -> None:
    for insn in INSTRUCTIONS.values():
        for each in insn.freedom:
            assert each.text.endswith(".")
            assert bool(each.where) == (each.kind is Openness.UNSPECIFIED), insn
    assert freedoms(ulp(1, "One off.")) == (ulp(1, "One off."),)


def test_members_of_a_family_have_their_own_words() -> None:
    assert INSTRUCTIONS["TMAX"].doc.startswith("Take the larger of two elements.")
    assert INSTRUCTIONS["TMIN"].doc.startswith("Take the smaller of two elements.")
    assert "`TROWARGMIN(dstVal," in INSTRUCTIONS["TROWARGMIN"].doc
    assert not [name for name, insn in INSTRUCTIONS.items() if insn.means and "|" in insn.doc[:90]]
