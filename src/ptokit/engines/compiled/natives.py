"""From a call to a function of the library and the words it is handed.

What an instruction means is read from its record: the expressions of its form (`isa/meaning.py`),
or the loop its body amounts to (`isa/idioms.py`). How its operands lie is read from the arrays the
body would be handed. `Unsupported` says that the body itself has to run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from ptokit.base.convert import element
from ptokit.base.dataclass import dataclass
from ptokit.base.dtypes import DType
from ptokit.base.layout import Array
from ptokit.engines.compiled import lookups, masks, reductions, scaled, sorts
from ptokit.engines.compiled.host import Unsupported
from ptokit.engines.compiled.loops import (
    APART,
    Doubted,
    Lines,
    column_of,
    lines_of,
    may_run,
    pieces,
    pointwise,
)
from ptokit.engines.compiled.product import LEFT, RIGHT, START, TO, product, room
from ptokit.isa.expr import Apply, Arg, Const, Expr, walk
from ptokit.isa.idioms import Elementwise, Idiom, Lookup, Merge, Product, Sort
from ptokit.isa.masks import Packed
from ptokit.isa.meaning import ArgReduce, Each, Partial, Reduce
from ptokit.machine.access import Access
from ptokit.machine.calls import Call
from ptokit.machine.gm import GmBuffer


class Kernel(Protocol):
    """A function that the library can hold."""

    def text(self, name: str) -> str:
        """Its LLVM module."""
        ...


class Streamed(Kernel, Protocol):
    """One that calls of a stream are made of."""

    @property
    def operands(self) -> Sequence[int]:
        """The words that say in which memory an operand lies, that of the result first; the next
        one says where."""
        ...


@dataclass(frozen=True)
class Native:
    """A call, or a part of one, as the library takes it; where its operands lie is still open."""

    kernel: Streamed
    words: tuple[int, ...]
    # Where the place of an operand goes, which operand, and how many bytes past its address.
    places: tuple[tuple[int, int, int], ...]
    scratch: int = 0  # bytes of memory 0 that it uses
    table: Array | None = None  # what it reads beside its operands
    own: tuple[tuple[int, int], ...] = ()  # where a place in the table goes, and which
    doubt: int | None = None  # where the place goes of a word it sets when values are not as usual
    in_turn: bool = False  # blocks may write to one place: who comes first makes a difference


def natives(call: Call, args: Sequence[Any], bound: Sequence[Access]) -> list[Native]:
    """What the library has for a call with these arguments, in order."""
    insn = call.insn
    if call.cleared:
        raise Unsupported("more is written than the operands say")
    if _writes_nothing(call, bound):
        return []
    if insn.means is not None:
        form = insn.means.form
        if isinstance(form, Packed) or (isinstance(form, Each) and form.masks):
            return [masks.native(call, dict(zip(insn.names, args, strict=True)))]
        if isinstance(form, Each):
            return _each(call, args, bound)
        if isinstance(form, Reduce) and not call.copies:
            return [reductions.native(call, dict(zip(insn.names, args, strict=True)))]
        if isinstance(form, ArgReduce) and not call.copies:
            return [reductions.place(call, dict(zip(insn.names, args, strict=True)))]
        if isinstance(form, Partial):
            return _partial(call, form)
        raise Unsupported(type(form).__name__)
    idiom = idiom_of(call)
    if isinstance(idiom, Elementwise):
        idiom = (idiom,)
    if isinstance(idiom, tuple):
        return [
            native
            for each in idiom
            for native in _elementwise(call, args, bound, each.to, each.expr, each)
        ]
    if isinstance(idiom, Product):
        return [_product(call, idiom)]
    given = dict(zip(insn.names, args, strict=True))
    if isinstance(idiom, Sort):
        return [sorts.sort(call, idiom, given)]
    if isinstance(idiom, Merge):
        return [sorts.merge(call, idiom, given)]
    if isinstance(idiom, Lookup):
        return [lookups.native(call, idiom, given, bound)]
    raise Unsupported("no meaning that can be read")


def is_far(access: Access) -> bool:
    """Whether an access is one to global memory."""
    return isinstance(access.memory, GmBuffer)


def _writes_nothing(call: Call, bound: Sequence[Access]) -> bool:
    """Whether no result of a call has elements; what it is for beside its results, no form says."""
    is_told = call.insn.means is not None or idiom_of(call) is not None
    written = [access for access in (*call.handed.values(), *bound) if access.writes]
    return is_told and bool(written) and all(0 in access.shape for access in written)


def idiom_of(call: Call) -> Idiom | None:
    """The loop that its body amounts to, where its record knows one."""
    return None if call.insn.idiom is None else call.insn.idiom(call.ops)


def access_of(call: Call, bound: Sequence[Access], operand: int) -> Access | None:
    """What a call touches of an operand; None: it is a number, or left out."""
    for (index, _), access in zip(call.global_patterns, bound, strict=False):
        if index == operand:
            return access
    return call.handed.get(call.insn.names[operand])


def handed(call: Call, at: int, name: str) -> tuple[int, int, int]:
    """The place of an operand whose array the body is handed."""
    return at, call.insn.names.index(name), call.handed[name].pattern.start


def _arguments(expr: Expr) -> list[Arg]:
    return list(dict.fromkeys(node for node in walk(expr) if isinstance(node, Arg)))


def _each(call: Call, args: Sequence[Any], bound: Sequence[Access]) -> list[Native]:
    meaning = call.insn.means
    assert meaning is not None
    form = meaning.form
    assert isinstance(form, Each)
    (expr,), (to,) = meaning.expressions(call.ops), meaning.outs
    return _elementwise(call, args, bound, to, expr, early=form.early)


def _elementwise(
    call: Call,
    args: Sequence[Any],
    bound: Sequence[Access],
    to: str,
    expr: Expr,
    idiom: Elementwise | None = None,
    early: Mapping[str, tuple[str, int]] | None = None,
) -> list[Native]:
    """An expression, piece by piece; an idiom says how the shapes of its operands agree.

    `early` are names for the first columns of a source, which repeat (`isa/meaning.py`).
    """
    symbols, again = _arguments(expr), early or {}

    def index(label: str) -> int:
        return call.insn.names.index(again[label][0] if label in again else label)

    arrays = [arg for arg in symbols if not arg.is_number]
    numbers = [arg for arg in symbols if arg.is_number]
    labels = [to, *(arg.name for arg in arrays)]
    kinds = [expr.kind, *(arg.kind for arg in arrays)]
    accesses: list[Access] = []
    for label, kind in zip(labels, kinds, strict=True):
        access = access_of(call, bound, index(label))
        if access is None or access.dtype.itemsize != kind.itemsize:
            raise Unsupported("an operand that is left out, or elements of another size")
        accesses.append(access)
    shape = accesses[0].shape
    per_row = frozenset[str]() if idiom is None else idiom.per_row
    if idiom is not None and idiom.at is None:
        others = (a for label, a in zip(labels, accesses, strict=True) if label not in per_row)
        if any(a.shape != shape for a in others):
            raise Unsupported("operands of other shapes")
    window = None if idiom is None else idiom.at
    lines = [
        column_of(a, shape) if label in per_row else lines_of(a, shape, window if n else None)
        for n, (label, a) in enumerate(zip(labels, accesses, strict=True))
    ]
    for n, label in enumerate(labels):
        if label in again:
            first = np.arange(shape[1]) % again[label][1]
            lines[n] = Lines(lines[n].rows, lines[n].columns[first])
    tail = [(arg.name, arg.kind, args[index(arg.name)]) for arg in numbers]
    return _loops(expr, labels, [index(n) for n in labels], kinds, accesses, lines, tail)


def _loops(
    expr: Expr,
    labels: Sequence[str],  # of the arrays, the result first
    operands: Sequence[int],  # which they are
    kinds: Sequence[DType],
    accesses: Sequence[Access],
    lines: Sequence[Lines],
    numbers: Sequence[tuple[str, DType, int | float]] = (),
) -> list[Native]:
    parts = pieces(lines)
    if not may_run(accesses, lines, parts):
        raise Unsupported("a result that overlaps what is read")
    adds = is_far(accesses[0]) and labels[0] in labels[1:]  # to what is there
    test = None
    if isinstance(expr, Apply) and expr.name == "undefined":
        test, expr = expr.operands
    listed = [(label, kind) for label, kind, _ in numbers]
    tail = [bits_of(value, kind) for _, kind, value in numbers]
    found: list[Native] = []
    for piece in parts:
        kernel = pointwise(expr, labels, kinds, piece, listed, is_doubted=test is not None)
        piece = kernel.laid(piece)
        words, places = list(piece.extents), list[tuple[int, int, int]]()
        for operand, (_, _, way), strides, begin in zip(
            operands, kernel.arrays, piece.strides, piece.begins, strict=True
        ):
            places.append((len(words), operand, begin))
            words += [0, 0, *strides[:-1]]
            if way is APART:
                words.append(strides[-1])
        words += tail
        if test is None:
            found.append(Native(kernel, tuple(words), tuple(places), in_turn=adds))
        else:
            kind = Doubted(kernel, test)
            found.append(Native(kind, (*words, 0, 0), tuple(places), doubt=len(words)))
    return found


def _partial(call: Call, form: Partial) -> list[Native]:
    """Parts of the result: where all sources have elements, where only one has, where none has."""
    meaning, ops = call.insn.means, call.ops
    assert meaning is not None
    to, *others = meaning.outs
    if others or call.global_patterns:
        raise Unsupported("several results of parts")
    (expr,) = meaning.expressions(ops)
    own, index = call.handed[to], call.insn.names.index
    sources = {name: call.handed[name] for name in meaning.parameters}
    sizes = [own.shape, *(each.shape for each in sources.values())]
    lines = {name: lines_of(each, each.shape) for name, each in (*sources.items(), (to, own))}
    found: list[Native] = []
    for down in _between(size[0] for size in sizes):
        for across in _between(size[1] for size in sizes):
            if down.start >= own.shape[0] or across.start >= own.shape[1]:
                continue
            here = [
                name
                for name, each in sources.items()
                if down.start < each.shape[0] and across.start < each.shape[1]
            ]
            if len(here) < len(sources):
                last = [name for name in form.sources[to] if name in here][-1:]
                kind = ops[to].dtype
                part = Arg(kind, last[0]) if last else Const(kind, form.rest(ops)[to])
            else:
                part = expr
            names = [to, *(arg.name for arg in _arguments(part))]
            kinds = [part.kind, *(arg.kind for arg in _arguments(part))]
            cut = [Lines(lines[n].rows[down], lines[n].columns[across]) for n in names]
            accesses = [own if n == to else sources[n] for n in names]
            if any(a.dtype.itemsize != k.itemsize for a, k in zip(accesses, kinds, strict=True)):
                raise Unsupported("elements of another size")
            found += _loops(part, names, list(map(index, names)), kinds, accesses, cut)
    return found


def _between(ends: Iterable[int]) -> list[slice]:
    """The stretches between the ends of some others."""
    places = sorted({0, *ends})
    return [slice(*pair) for pair in pairwise(places)]


def bits_of(value: int | float, kind: DType) -> int:
    """A number as the word that holds its bits."""
    held = np.array([element(value, kind)], kind.np).view(kind.uint)
    return int(held.astype(np.uint64).view(np.int64)[0])


def _product(call: Call, idiom: Product) -> Native:
    to, left, right = (call.handed[name] for name in (idiom.to, idiom.left, idiom.right))
    start = None if idiom.start is None else call.handed[idiom.start]
    if idiom.scales is not None:
        return _scaled(call, idiom, idiom.scales, start)
    kernel, words = product(to, left, right, start, call.ops.target.is_device)
    index = call.insn.names.index
    places = [(TO, index(idiom.to), 0), (LEFT, index(idiom.left), 0)]
    places.append((RIGHT, index(idiom.right), 0))
    if kernel.is_from_row:
        assert idiom.start is not None
        places.append(handed(call, START, idiom.start))
    return Native(kernel, tuple(words), tuple(places), room(words))


def _scaled(call: Call, idiom: Product, names: tuple[str, str], start: Access | None) -> Native:
    held = call.handed
    factors, scales = (held[idiom.left], held[idiom.right]), (held[names[0]], held[names[1]])
    kernel, words, size = scaled.scaled_product(held[idiom.to], factors, scales, start)
    labels = [idiom.to, idiom.left, idiom.right, *names]
    if kernel.start == "row":
        assert idiom.start is not None
        labels.append(idiom.start)
    index = call.insn.names.index
    places = tuple((at, index(name), 0) for at, name in zip(kernel.operands, labels, strict=True))
    return Native(kernel, tuple(words), places, size)
