"""The Python that a kernel may use: one small program per construct.

Each runs eagerly, lowered and from its own text with equal bytes, or is refused when it is lowered,
under the code given here and at the line marked `# here`. `docs/guide/language.md` lists them.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ptokit import *
from ptokit import Kernel

ROWS, COLS = 8, 16
Row = Tile[TileType.Vec, float32, 1, COLS]
Part = Tile[TileType.Vec, float32, 1, COLS, BLayout.RowMajor, 1, DYNAMIC]
Column = Tile[TileType.Vec, float32, 8, 1, BLayout.ColMajor]
Whole = Tile[TileType.Vec, int32, 1, COLS]


class Construct(NamedTuple):
    """One program: what it shows, and under which code it is refused, if it is."""

    chapter: str
    says: str
    kernel: Kernel
    refused: str  # when it is lowered
    eager: str  # when it runs as it stands
    numbers: tuple[int, ...]


CONSTRUCTS: dict[str, Construct] = {}


def construct(
    chapter: str,
    says: str,
    refused: str = "",
    *,
    eager: str = "",
    mode: str = "auto",
    numbers: tuple[int, ...] = (0, 1, 3),
) -> Callable[[Any], Kernel]:
    def add(function: Any) -> Kernel:
        made = kernel(mode=mode)(function)
        row = Construct(chapter, says, made, refused, eager, numbers)
        CONSTRUCTS[function.__name__] = row
        return made

    return add


# ---- helpers of the programs -------------------------------------------------------------------


def put(y: Any, row: Any, value: Any) -> None:
    """Write a number into all elements of a row."""
    tile = Row()
    TEXPANDS(tile, value)
    TSTORE(GlobalTensor(y)[row : row + 1, :], tile)


def get(x: Any, row: Any) -> Any:
    """A row of an array as a tile."""
    tile = Row()
    TLOAD(tile, GlobalTensor(x)[row : row + 1, :])
    return tile


def keep(y: Any, row: Any, tile: Any) -> None:
    TSTORE(GlobalTensor(y)[row : row + 1, :], tile)


def set_first(values: list[Any], value: Any) -> None:
    values[0] = value


def first_above(x: Any, limit: Any) -> Any:
    """The place of the first number above a limit, or -1."""
    for i in range(COLS):
        if load_scalar(x, i) > limit:
            return i
    return -1


def sign(number: Any) -> Any:
    if number > 0:
        return 1
    if number < 0:
        return -1
    return 0


def falls_off(number: Any) -> Any:
    if number > 0:
        return 1


def factorial(number: Any) -> Any:
    return 1 if number < 2 else number * factorial(number - 1)


@dataclass
class Counter:
    value: Any = 0
    step: Any = 1

    def advance(self, times: Any) -> None:
        self.value += self.step * times


@dataclass(frozen=True)
class Point:
    row: Any
    col: Any


class Pair(NamedTuple):
    left: Any
    right: Any


class Ring:
    """A class with a constructor of its own."""

    def __init__(self, x: Any, count: int) -> None:
        self.tiles = [get(x, i) for i in range(count)]
        self.taken = 0

    def next(self) -> Any:
        self.taken += 1
        return self.tiles[self.taken % len(self.tiles)]


REGISTRY: list[int] = []
SETTINGS = {"scale": 3}


# ---- elements that change ----------------------------------------------------------------------

CHANGES = "Lists, dicts and objects"


@construct(CHANGES, "an element of a list is assigned under `if`")
def list_item_in_if(x, y, n):
    c = [0]
    if n == 1:
        c[0] = 3
    put(y, 0, c[0])


@construct(CHANGES, "an element is assigned on both sides of an `if`")
def list_item_on_both_sides(x, y, n):
    c = [0, 5]
    if n > 1:
        c[0] = n
    else:
        c[1] = n + 7
    put(y, 0, c[0])
    put(y, 1, c[1])


@construct(CHANGES, "an element is updated with `+=` in a loop")
def list_item_added_in_for(x, y, n):
    c = [1, 2]
    for i in range(n):
        c[1] += i + 1
    put(y, 0, c[1])


@construct(CHANGES, "an element of a list is assigned in a `while` loop")
def list_item_in_while(x, y, n):
    c = [n]
    rounds = 0
    while c[0] > 0:
        c[0] = c[0] - 1
        rounds += 2
    put(y, 0, rounds)
    put(y, 1, c[0])


@construct(CHANGES, "a helper changes an element of a list that it is given")
def list_item_in_helper(x, y, n):
    c = [0]
    if n == 1:
        set_first(c, 9)
    for _ in range(n):
        set_first(c, c[0] + 1)
    put(y, 0, c[0])


@construct(CHANGES, "two names of one list see the same change")
def aliased_list(x, y, n):
    c = [0]
    d = c
    if n == 1:
        d[0] = 4
    put(y, 0, c[0])


@construct(CHANGES, "`+=` on a list changes the list itself, outside of run-time branches")
def list_extended_in_place(x, y, n):
    c = [1]
    d = c
    c += [n]
    put(y, 0, d[1])


@construct(CHANGES, "a value of a dict is assigned under `if` and in a loop")
def dict_value(x, y, n):
    d = {"a": 1, "b": 2}
    if n > 1:
        d["a"] = 10
    for _ in range(n):
        d["b"] += d["a"]
    put(y, 0, d["b"])


@construct(CHANGES, "nested lists and dicts")
def nested_containers(x, y, n):
    c = [[0, 1], {"k": [5]}]
    if n == 1:
        c[0][1] = 7
        c[1]["k"][0] = 8
    for _ in range(n):
        c[0][0] += 2
    put(y, 0, c[0][0])
    put(y, 1, c[0][1])
    put(y, 2, c[1]["k"][0])


@construct(CHANGES, "an attribute of an object is assigned")
def attribute(x, y, n):
    counter = Counter(2, 3)
    if n == 1:
        counter.value = 11
    for _ in range(n):
        counter.value += counter.step
    put(y, 0, counter.value)


@construct(CHANGES, "a method changes its object")
def method(x, y, n):
    counter = Counter(0, 3)
    for i in range(n):
        counter.advance(i)
    if n == 1:
        counter.advance(5)
    put(y, 0, counter.value)


@construct(CHANGES, "tiles of a list change places in a loop")
def swapped_tiles_in_list(x, y, n):
    t = [get(x, 0), get(x, 1)]
    for _ in range(n):
        t[0], t[1] = t[1], t[0]
    keep(y, 0, t[0])
    keep(y, 1, t[1])


@construct(CHANGES, "tiles of a list change places under `if`")
def swapped_tiles_in_if(x, y, n):
    t = [get(x, 0), get(x, 1)]
    if n == 1:
        t[0], t[1] = t[1], t[0]
    keep(y, 0, t[0])
    keep(y, 1, t[1])


@construct(CHANGES, "tiles of a dict and of an object change places")
def swapped_tiles_in_object(x, y, n):
    pair = Counter(get(x, 0), get(x, 1))
    named = {"now": get(x, 2), "then": get(x, 3)}
    for _ in range(n):
        pair.value, pair.step = pair.step, pair.value
        named["now"], named["then"] = named["then"], named["now"]
    keep(y, 0, pair.value)
    keep(y, 1, named["now"])


@construct(CHANGES, "a tuple is made anew in a loop")
def rotated_tuple(x, y, n):
    t = (get(x, 0), get(x, 1), get(x, 2))
    for _ in range(n):
        t = (*t[1:], t[0])
    keep(y, 0, t[0])
    keep(y, 1, t[2])


@construct(CHANGES, "named tuples and frozen dataclasses are chosen by a branch")
def chosen_records(x, y, n):
    p, q = Point(0, 1), Pair(2, 3)
    if n == 1:
        p, q = Point(4, p.col), Pair(q.right, n)
    put(y, p.row, 5)
    put(y, 1, q.left)


@construct(CHANGES, "both sides of an `if` append to a list")
def appended_on_both_sides(x, y, n):
    c = [1]
    if n == 1:
        c.append(2)
    else:
        c.append(n)
    put(y, 0, c[1])
    put(y, 1, len(c))


@construct(CHANGES, "a list is filled in a loop over a list")
def appended_in_unrolled_loop(x, y, n):
    c = []
    for each in (1, 2, 3):
        c.append(each * n)
    put(y, 0, c[2])


@construct(CHANGES, "a list that is made inside a loop may grow there")
def list_inside_loop(x, y, n):
    total = 0
    for i in range(n):
        c = []
        c.append(i)
        c.append(2)
        total += c[0] * c[1]
    put(y, 0, total)


@construct(CHANGES, "a list grows under a run-time `if`", "lower.changed")
def appended_in_if(x, y, n):
    c = [1]
    if n == 1:
        c.append(2)  # here
    put(y, 0, len(c))


@construct(CHANGES, "a list grows in a run-time loop", "lower.changed")
def appended_in_loop(x, y, n):
    c = [1]
    for i in range(n):
        c.append(i)  # here
    put(y, 0, len(c))


@construct(CHANGES, "a list shrinks in a run-time loop", "lower.changed", numbers=(0, 1, 3))
def popped_in_loop(x, y, n):
    c = [1, 2, 3, 4]
    for _ in range(n):
        c.pop()  # here
    put(y, 0, len(c))


@construct(CHANGES, "`+=` lengthens a list in a run-time loop", "lower.changed")
def extended_in_loop(x, y, n):
    c = [1]
    for _ in range(n):
        c += [2]  # here
    put(y, 0, len(c))


@construct(CHANGES, "a dict takes a new key under a run-time `if`", "lower.changed")
def new_key_in_if(x, y, n):
    d = {"a": 1}
    if n == 1:
        d["b"] = 2  # here
    put(y, 0, len(d))


@construct(CHANGES, "`del` of an element under a run-time `if`", "lower.changed")
def deleted_in_if(x, y, n):
    c = [1, 2]
    if n == 1:
        del c[0]  # here
    put(y, 0, len(c))


@construct(CHANGES, "a set changes under a run-time `if`", "lower.changed")
def set_in_if(x, y, n):
    s = {1}
    if n == 1:
        s.add(2)  # here
    put(y, 0, len(s))


@construct(CHANGES, "an object takes a new attribute under a run-time `if`", "lower.changed")
def new_attribute_in_if(x, y, n):
    counter = Counter(1)
    if n == 1:
        counter.more = 2  # here
    put(y, 0, counter.value + (2 if hasattr(counter, "more") else 0))


@construct(CHANGES, "a text is assigned to an element under a run-time `if`", "lower.changed")
def text_in_if(x, y, n):
    c = ["short"]
    if n == 1:
        c[0] = "longer"  # here
    put(y, 0, len(c[0]))


@construct(CHANGES, "elements of an array of NumPy change in a run-time loop", "lower.changed")
def array_in_loop(x, y, n):
    table = np.zeros(2)
    for _ in range(n):
        table[0] = 3  # here
    put(y, 0, float(table[0]))


@construct(CHANGES, "a list that was made outside the kernel changes", "lower.global-state")
def global_list(x, y, n):
    REGISTRY.append(1)  # here
    put(y, 0, 1)


@construct(CHANGES, "a dict that was made outside the kernel is read")
def global_dict(x, y, n):
    put(y, 0, SETTINGS["scale"] * n)


@construct(CHANGES, "a number of Python's or NumPy's random generators", "lower.impure")
def random_number(x, y, n):
    put(y, 0, np.random.rand())  # here


@construct(CHANGES, "a list becomes another list in a loop, and is used", "lower.gone")
def list_made_anew(x, y, n):
    c = [1, 2]
    for _ in range(n):
        c = [c[1], c[0]]  # here
    put(y, 0, c[0])


@construct(CHANGES, "a deque changes in a run-time loop", "lower.changed")
def deque_in_loop(x, y, n):
    q = deque([1, 2, 3])
    for _ in range(n):
        q.rotate(1)  # here
    put(y, 0, q[0])


# ---- branches ----------------------------------------------------------------------------------

BRANCHES = "Branches"


@construct(BRANCHES, "`if`, `elif`, `else` over run-time values")
def if_elif_else(x, y, n):
    if n == 0:
        v = 5
    elif n == 1:
        v = n + 8
    else:
        v = 2.5
    put(y, 0, v)


@construct(BRANCHES, "a number as the condition")
def number_as_condition(x, y, n):
    v = 1
    if n:
        v = 2
    if not n:
        v += 10
    put(y, 0, v)


@construct(BRANCHES, "a tile is chosen by a branch")
def tile_chosen_by_branch(x, y, n):
    a, b = get(x, 0), get(x, 1)
    t = a
    if n > 0:
        t = b
    keep(y, 0, t)


@construct(BRANCHES, "a tile is chosen by a conditional expression")
def tile_chosen_by_expression(x, y, n):
    a, b = get(x, 0), get(x, 1)
    keep(y, 0, a if n > 0 else b)


@construct(BRANCHES, "tiles of two types are chosen by a branch, and used", "lower.gone")
def two_tile_types(x, y, n):
    a, b = get(x, 0), Whole()
    TEXPANDS(b, 3)
    if n > 0:
        t = a
    else:
        t = b
    TSTORE(GlobalTensor(y)[0:1, :], t) if n else TCVT(a, t)  # here


@construct(BRANCHES, "tiles of two types that are used only inside their branch")
def two_tile_types_inside(x, y, n):
    if n > 0:
        t = get(x, 0)
        keep(y, 0, t)
    else:
        t = Whole()
        TEXPANDS(t, 3)
        u = Row()
        TCVT(u, t, RoundMode.CAST_RINT)
        keep(y, 0, u)


@construct(BRANCHES, "`and`, `or`, `not`, evaluated only as far as Python does")
def logic(x, y, n):
    v = 0
    if n > 0 and 6 // n > 2:
        v += 1
    if n == 0 or 3 % n == 0:
        v += 2
    if not (n == 1 or n == 3):
        v += 4
    put(y, 0, v)
    put(y, 1, n or 7)
    put(y, 2, n and 7)


@construct(BRANCHES, "chained comparisons")
def chained(x, y, n):
    put(y, 0, 1 if 0 < n < 3 else 2)
    put(y, 1, 1 if 3 >= n >= 1 > 0 else 2)


@construct(BRANCHES, "`in` and `not in` a list or tuple of numbers")
def contained(x, y, n):
    put(y, 0, 1 if n in (1, 3) else 2)
    put(y, 1, 1 if 3 not in [0, n] else 2)
    put(y, 2, 1 if "a" in {"a": 1} else 2)


@construct(BRANCHES, "`isinstance` and `type` of run-time values")
def asked_for_types(x, y, n):
    t, v = get(x, 0), load_scalar(x, 0)
    put(y, 0, isinstance(n, int) + 2 * isinstance(n, float) + 4 * isinstance(n > 0, bool))
    put(y, 1, isinstance(t, Row) + 2 * isinstance(t, Whole) + 4 * isinstance(t, Tile))
    put(y, 2, (type(n) is int) + 2 * (type(v) is float) + 4 * isinstance(v, np.floating))
    put(y, 3, isinstance(x, np.ndarray) + 2 * isinstance(GlobalTensor(x), GlobalTensor))


@construct(BRANCHES, "conditional expressions evaluate one side")
def conditional_expression(x, y, n):
    put(y, 0, 12 // n if n else -1)
    put(y, 1, n * 2 if n > 1 else 0.5)


@construct(BRANCHES, "a variable is assigned on one side only, and used", "lower.gone", eager="-")
def assigned_on_one_side(x, y, n):
    if n > 0:
        v = 2
    put(y, 0, v)  # here


@construct(BRANCHES, "`match`", "lower.unsupported")
def matched(x, y, n):
    match n:  # here
        case 0:
            put(y, 0, 1)
        case _:
            put(y, 0, 2)


@construct(BRANCHES, "`assert` over run-time values", numbers=(0, 1, 3))
def asserted(x, y, n):
    assert n < 7
    put(y, 0, n)


# ---- loops -------------------------------------------------------------------------------------

LOOPS = "Loops"


@construct(LOOPS, "`for` over a range with run-time bounds and steps of either sign")
def ranges(x, y, n):
    total = 0
    for i in range(n):
        total += i
    for i in range(1, n + 4, 2):
        total += 10 * i
    for i in range(n, -3, -2):
        total = total * 2 + i
    for i in range(6, 1, -1):
        total = total + i * n
    put(y, 0, total)


@construct(LOOPS, "`for` over lists, `enumerate`, `zip`, `reversed`, written out")
def over_lists(x, y, n):
    total = 0
    for i, v in enumerate([4, n, 6]):
        total += i * v
    for a, b in zip([1, 2], (n, 3), strict=True):
        total += a * b
    for v in reversed([1, n]):
        total = total * 3 + v
    for key, v in {"a": 1, "b": n}.items():
        total += len(key) * v
    put(y, 0, total)


@construct(LOOPS, "`for` with `break`")
def for_break(x, y, n):
    total = 0
    for i in range(6):
        if i == n:
            break
        total += i + 1
    put(y, 0, total)


@construct(LOOPS, "`for` with `continue`")
def for_continue(x, y, n):
    total = 0
    for i in range(5):
        if i == n:
            continue
        total += 2**i
    put(y, 0, total)


@construct(LOOPS, "`break` and `continue` deep in branches of a loop with a run-time bound")
def deep_break(x, y, n):
    total, last = 0, -1
    for i in range(n + 3):
        last = i
        if i > 0:
            if i == n:
                total += 100
                continue
            if i > n + 1:
                total += 1000
                break
            total += 1
        else:
            total += 10
        total *= 2
    put(y, 0, total)
    put(y, 1, last)


@construct(LOOPS, "`break` out of a loop over a list")
def break_in_list(x, y, n):
    total = 0
    for v in [3, 1, 0, 5]:
        if v == n:
            break
        total += v
    put(y, 0, total)


@construct(LOOPS, "`while` with `break` and `continue`")
def while_break(x, y, n):
    i, total = 0, 0
    while True:
        i += 1
        if i % 2 == 0:
            continue
        if i > n + 4:
            break
        total += i
    put(y, 0, total)


@construct(LOOPS, "`while` over what is known at compile time")
def while_known(x, y, n):
    names = ["a", "bb", "ccc"]
    k, total = 0, n
    while k < 3:
        total += len(names[k])
        k += 1
    put(y, 0, total)


@construct(LOOPS, "`while` with an assignment in its condition")
def while_walrus(x, y, n):
    i, total = n, 0
    while (half := i // 2) > 0:
        total += half
        i = half
    put(y, 0, total)


@construct(LOOPS, "nested loops with `break`")
def nested_break(x, y, n):
    total = 0
    for i in range(n):
        for j in range(n):
            if j > i:
                break
            total += 1
        if total > 4:
            break
    put(y, 0, total)


@construct(LOOPS, "a variable changes from a whole number to a float")
def widened(x, y, n):
    v = 1
    for _ in range(n):
        v = v * 0.5
    put(y, 0, v)


@construct(LOOPS, "the rounds of a loop of known length that need its variable are written out")
def unrolled(x, y, n):
    scales = [1.0, 2.0, 4.0]
    names = ["one", "three", "fourteen"]
    total = n
    for i in range(3):
        total += len(names[i]) * scales[i]
    put(y, 0, total)


@construct(LOOPS, "a loop that would be written out as thousands of operations", "lower.unrolled")
def unrolled_at_length(x, y, n):
    scales = [float(i) for i in range(600)]
    t = get(x, 0)
    for i in range(600):  # here
        TADDS(t, t, scales[i])
        TMULS(t, t, scales[i])
        TADDS(t, t, scales[i] * n)
    keep(y, 0, t)


@construct(LOOPS, "`static_range` writes a loop out, whatever its length")
def static_loop(x, y, n):
    scales = [float(i) for i in range(600)]
    total = n
    for i in static_range(600):
        total += scales[i]
    put(y, 0, total)


@construct(LOOPS, "a variable that is made in a loop is used after it", "lower.gone", eager="-")
def used_behind(x, y, n):
    for i in range(n):
        last = i
    put(y, 0, last)  # here


@construct(LOOPS, "`for` with `else`", "lower.for-else")
def for_else(x, y, n):
    for i in range(3):  # here
        if i == n:
            break
    else:
        put(y, 1, 1)
    put(y, 0, 1)


@construct(LOOPS, "a loop that never ends", "lower.while", eager="-")
def endless(x, y, n):
    while True:  # here
        put(y, 0, 1)


# ---- functions ---------------------------------------------------------------------------------

FUNCTIONS = "Functions"


@construct(FUNCTIONS, "helpers that return early, also from inside a loop")
def helper_returns(x, y, n):
    put(y, 0, sign(n - 1))
    put(y, 1, first_above(x, n))


@construct(FUNCTIONS, "an early `return` of the kernel")
def early_return(x, y, n):
    put(y, 0, 1)
    if n == 0:
        return
    put(y, 1, n)
    for i in range(4):
        if i == n:
            return
        put(y, 2 + i, i)
    put(y, 7, 7)


@construct(FUNCTIONS, "functions and lambdas defined in the kernel see its variables")
def closures(x, y, n):
    scale = 3

    def scaled(v, more=1, *rest, shift=0):
        return v * scale + more + shift + len(rest)

    square = lambda v: v * v  # noqa: E731
    put(y, 0, scaled(n, shift=2))
    scale = 5
    put(y, 1, scaled(square(n), 4, 5, 6))


OPERATIONS = {"grow": lambda v: v + 2, "shrink": lambda v: v - 2}


@construct(FUNCTIONS, "lambdas that were made outside, also several on one line")
def lambdas_outside(x, y, n):
    put(y, 0, OPERATIONS["grow"](n))
    put(y, 1, OPERATIONS["shrink"](n))


@construct(FUNCTIONS, "a function defined in the kernel changes a list around it")
def closure_changes(x, y, n):
    c = [0]

    def bump(by):
        if by > 1:
            c[0] += by

    for i in range(n):
        bump(i)
    put(y, 0, c[0])


@construct(FUNCTIONS, "arguments by name, by `*` and by `**`")
def argument_forms(x, y, n):
    args, named = (n, 2), {"c": 3}

    def total(a, b, *, c=1, d=n):
        return a + 10 * b + 100 * c + 1000 * d

    put(y, 0, total(*args, **named))
    put(y, 1, total(b=1, a=n))


@construct(FUNCTIONS, "objects of classes with a constructor and methods")
def class_with_constructor(x, y, n):
    ring = Ring(x, 3)
    keep(y, 0, ring.next())
    keep(y, 1, ring.next())


@construct(FUNCTIONS, "a value that is returned on some paths only", "lower.return")
def sometimes_returned(x, y, n):
    v = falls_off(n)  # here
    put(y, 0, 0 if v is None else v)


@construct(FUNCTIONS, "recursion", "lower.recursion")
def recursive(x, y, n):
    put(y, 0, factorial(n))  # in the helper


@construct(FUNCTIONS, "`nonlocal`", "lower.unsupported")
def nonlocal_(x, y, n):
    v = 0

    def bump():
        nonlocal v  # here
        v += 1

    bump()
    put(y, 0, v)


@construct(FUNCTIONS, "`global`", "lower.unsupported")
def global_(x, y, n):
    global COUNT  # here
    COUNT = 3
    put(y, 0, COUNT)


@construct(FUNCTIONS, "`yield`, generators", "lower.unsupported")
def generator(x, y, n):
    put(y, 0, sum(i for i in range(3)))  # here


@construct(FUNCTIONS, "`try`", "lower.unsupported")
def tried(x, y, n):
    try:  # here
        put(y, 0, 1)
    finally:
        pass


@construct(FUNCTIONS, "`with` of anything but sections", "lower.with")
def with_context(x, y, n):
    with np.errstate(all="ignore"):  # here
        put(y, 0, 1)


@construct(FUNCTIONS, "`raise`", "lower.unsupported")
def raised(x, y, n):
    if n > 100:
        raise ValueError  # here
    put(y, 0, 1)


@construct(FUNCTIONS, "`import`", "lower.unsupported")
def imported(x, y, n):
    import math as m  # here

    put(y, 0, m.floor(2.5))


@construct(FUNCTIONS, "functions of libraries over known values")
def library_function(x, y, n):
    put(y, 0, math.gcd(12, 18) * n)
    put(y, 1, len(sorted([3, 1, 2])) + sum([n, 2]))


@construct(FUNCTIONS, "`str`, `repr` and `hash` of a run-time value", "lower.call")
def text_of_symbol(x, y, n):
    put(y, 0, len(repr(n)))  # here


@construct(FUNCTIONS, "functions of libraries over run-time values", "lower.call")
def library_function_of_symbol(x, y, n):
    put(y, 0, math.gcd(n, 18))  # here


# ---- arithmetic --------------------------------------------------------------------------------

NUMBERS = "Numbers"


@construct(NUMBERS, "`+ - * // %` of whole numbers of either sign", numbers=(0, 1, 3, -5))
def whole_numbers(x, y, n):
    put(y, 0, (n + 7) * 3 - n)
    put(y, 1, n // 3 + (-n) // 4)
    put(y, 2, n % 3 + 10 * (-n % 4) + 100 * (7 % (n * n + 2)))
    put(y, 3, 100 // (n - 9))
    put(y, 4, divmod(n - 4, 3)[1])


@construct(NUMBERS, "`** << >> & | ^ ~`")
def bits(x, y, n):
    put(y, 0, n**3 + n**0 + 2**3)
    put(y, 1, (1 << n) + (n << 2) + (100 >> n))
    put(y, 2, (n & 1) + (n | 4) * 10 + (n ^ 3) * 100)
    put(y, 3, ~n)


@construct(NUMBERS, "`min`, `max`, `abs`, `int`, `float`, `bool`, `sum`", numbers=(0, 1, 3, -5))
def functions_of_numbers(x, y, n):
    put(y, 0, min(n, 2) + 10 * max(n, 2, 0))
    put(y, 1, abs(n - 2) + abs(-3))
    put(y, 2, int(n * 0.75) + float(n))
    put(y, 3, bool(n) + 1)
    put(y, 4, sum([n, n + 1, 2]) + max([n, 1]))


@construct(NUMBERS, "comparisons are numbers too")
def truth_values(x, y, n):
    put(y, 0, (n > 0) + (n > 1) * 10)
    flag = n == 1
    put(y, 1, flag + 1)
    put(y, 2, 1 if flag == (n < 2) else 2)
    put(y, 3, (n > 0) & (n < 3) | (n == 7))


@construct(NUMBERS, "floats computed of whole numbers round as Python does")
def python_floats(x, y, n):
    put(y, 0, n * 0.1)
    put(y, 1, (n + 1) / 3 * 0.7 - 0.1)
    put(y, 2, float(n) * 0.1 + 0.7)
    put(y, 3, max(n * 0.3, 0.35) - 0.1)


@construct(NUMBERS, "floats read from memory round as f32 does")
def memory_floats(x, y, n):
    v = load_scalar(x, n)
    put(y, 0, v * 0.1 + 0.7)
    put(y, 1, v / 3)
    put(y, 2, -v)
    put(y, 3, 1.5 if v > 0.3 else v**2)


@construct(NUMBERS, "`//` and `%` of run-time floats", "lower.operator")
def float_modulo(x, y, n):
    put(y, 0, (n * 0.5) % 2)  # here


@construct(NUMBERS, "`**` with a run-time exponent", "lower.operator")
def run_time_power(x, y, n):
    put(y, 0, 2**n)  # here


@construct(NUMBERS, "`round` of a run-time value", "lower.call")
def rounded(x, y, n):
    put(y, 0, round(n * 0.75))  # here


@construct(NUMBERS, "texts and f-strings of known values")
def texts(x, y, n):
    put(y, 0, len(f"{COLS:04d}-{ROWS}") + n)


# ---- tiles -------------------------------------------------------------------------------------

TILES = "Tiles"


@construct(TILES, "scalars read from tiles steer loops and branches", numbers=(0, 1, 3))
def scalars_of_tiles(x, y, n):
    t = get(x, 0)
    count = int(t.GetValue(n))
    total = 0
    for i in range(count):
        total += i + 1
    if GETVAL(t, 2) > 1.5:
        total += 100
    put(y, 0, total)


@construct(TILES, "scalars written to tiles and to memory")
def scalars_written(x, y, n):
    t = get(x, 0)
    t.SetValue(n, 0.5)
    t.SetValue(5, n * 0.1)
    keep(y, 0, t)
    store_scalar(y, 3 * COLS + n, 2.5)
    dcci(ptr(y, 3 * COLS), SINGLE_CACHE_LINE)
    dsb(DSB_DDR)


@construct(TILES, "a search over data with `while`")
def search(x, y, n):
    i = 0
    while i < COLS and load_scalar(x, i) <= n:
        i += 1
    put(y, 0, i)


@construct(TILES, "valid sizes change in a loop, and are read")
def valid_sizes(x, y, n):
    t = Part(COLS)
    TLOAD(t, GlobalTensor(x)[0:1, 0:COLS])
    total = 0
    for i in range(n):
        t.SetValidCol(COLS - 4 * i)
        total += t.GetValidCol()
    TADDS(t, t, 1.0)
    put(y, 0, total)
    put(y, 1, t.GetValidCol() + t.GetValidRow())


@construct(TILES, "tiles of different valid sizes change places")
def swapped_valid_sizes(x, y, n):
    a, b = Part(8), Part(4)
    for _ in range(n):
        a, b = b, a
    put(y, 0, a.GetValidCol())


@construct(TILES, "a run-time choice among the tiles of a list", numbers=(0, 1, 3))
def run_time_choice(x, y, n):
    t = [Row(), Row()]
    for i in range(n):
        TLOAD(t[i % 2], GlobalTensor(x)[i : i + 1, :])
        TADDS(t[i % 2], t[i % 2], 1.0)
        TSTORE(GlobalTensor(y)[i : i + 1, :], t[i % 2])


@construct(TILES, "a run-time choice among tiles that are also used by themselves")
def choice_and_names(x, y, n):
    a, b, c = get(x, 0), get(x, 1), get(x, 2)
    keep(y, 0, (a, b, c)[n % 3])
    keep(y, 1, [c, a][n % 2])
    keep(y, 2, b)


@construct(TILES, "a run-time choice in a loop of known length")
def choice_in_known_loop(x, y, n):
    t = [Row() for _ in range(3)]
    for i in range(ROWS):
        TLOAD(t[i % 3], GlobalTensor(x)[i : i + 1, :])
        TSTORE(GlobalTensor(y)[i : i + 1, :], t[i % 3])


@construct(TILES, "a run-time choice among tiles of two types", "lower.choice")
def choice_of_types(x, y, n):
    t = [Row(), Whole()]
    TEXPANDS(t[n % 2], 1)  # here
    put(y, 0, 1)


@construct(TILES, "a run-time index into a list of numbers", "lower.needs-constant")
def choice_of_numbers(x, y, n):
    put(y, 0, [3, 5, 7, 9][n])  # here


@construct(TILES, "TASSIGN in a run-time branch", mode="manual")
def assigned_in_branch(x, y, n):
    t = Row()
    if n > 0:
        TASSIGN(t, 0x400)
    else:
        TASSIGN(t, 0x800)
    TLOAD(t, GlobalTensor(x)[0:1, :])
    set_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0)
    wait_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0)
    TSTORE(GlobalTensor(y)[0:1, :], t)
    pipe_barrier(PIPE_ALL)


@construct(TILES, "TASSIGN to run-time addresses in a loop", mode="manual")
def assigned_in_loop(x, y, n):
    t = Row()
    for i in range(n):
        TASSIGN(t, 0x400 + (i % 2) * 0x400)
        TLOAD(t, GlobalTensor(x)[i : i + 1, :])
        set_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0)
        wait_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0)
        TSTORE(GlobalTensor(y)[i : i + 1, :], t)
        pipe_barrier(PIPE_ALL)


@construct(TILES, "tiles of a list are bound in a loop of known length", mode="manual")
def bound_in_loop(x, y, n):
    t = [Row(), Row()]
    for i in range(2):
        TASSIGN(t[i], 0x400 * (i + 1))
    for i in range(n):
        TLOAD(t[i % 2], GlobalTensor(x)[i : i + 1, :])
        set_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0)
        wait_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0)
        TSTORE(GlobalTensor(y)[i : i + 1, :], t[i % 2])
        pipe_barrier(PIPE_ALL)


@construct(
    TILES, "TASSIGN of a tile chosen at run time", "lower.needs-constant", mode="manual", eager="-"
)
def bound_at_run_time(x, y, n):
    t = [Row(), Row()]
    TASSIGN(t[n % 2], 0x400)  # here


@construct(TILES, "template arguments and operands by name")
def by_name(x, y, n):
    t, u, v = get(x, 0), Whole(), Row()
    TCVT(u, t, mode=RoundMode.CAST_CEIL)
    TCVT(dst=v, src=u, mode=RoundMode.CAST_RINT)
    keep(y, 0, v)


# ---- memory ------------------------------------------------------------------------------------

MEMORY = "Global memory"


@construct(MEMORY, "slices of views, with known and run-time bounds")
def slices(x, y, n):
    g, h = GlobalTensor(x), GlobalTensor(y)
    t = Part(8)
    TLOAD(t, g[n, 8:16])
    TSTORE(h[n : n + 1, 0:8], t)
    TLOAD(t, g[2:4][n % 2 : n % 2 + 1, : 4 + 4])
    TSTORE(h[5, 8:], t)
    TLOAD(t, g[7, 8:])
    TSTORE(h[6, :8], t)


@construct(MEMORY, "a row-major view is not loaded into a column", "SA-0235", eager="SA-0235")
def column_of_rows(x, y, n):
    g = GlobalTensor[float32, Shape[1, 1, 1, 8, 1], Stride[1, 1, 1, 1, 1], Layout.ND](x)
    t = Column()
    TLOAD(t, g)  # here


@construct(MEMORY, "a column-major view is")
def column_of_columns(x, y, n):
    shape, stride = Shape[1, 1, 1, 8, 1], Stride[1, 1, 1, 1, 8]
    t = Column()
    TLOAD(t, GlobalTensor[float32, shape, stride, Layout.DN](x))
    TSTORE(GlobalTensor[float32, shape, stride, Layout.DN](y), t)


@construct(MEMORY, "a slice with a negative step", "slice-step", eager="slice-step")
def negative_step(x, y, n):
    t = get(x, 0)
    TSTORE(GlobalTensor(y)[0, ::-1], t)  # here


@construct(MEMORY, "a slice with a step", "slice-step", eager="slice-step")
def stepped(x, y, n):
    t = Part(8)
    TLOAD(t, GlobalTensor(x)[0, ::2])  # here


@construct(MEMORY, "a slice from the end", "slice-range", eager="slice-range")
def from_the_end(x, y, n):
    t = Part(8)
    TLOAD(t, GlobalTensor(x)[-1, 0:8])  # here


@construct(MEMORY, "elements of an array parameter by index", "lower.array")
def array_element(x, y, n):
    put(y, 0, x[0][n])  # here


# ---- arguments -----------------------------------------------------------------------------------


@dataclass
class Problem:
    """What a kernel is given in one piece."""

    source: Any
    shape: tuple[int, int]
    scale: float
    name: str = "plain"


@kernel(mode="auto")
def of_a_dataclass(problem, y, n):
    rows, cols = problem.shape
    for i in range(rows):
        t = get(problem.source, i)
        TMULS(t, t, problem.scale * 3)
        keep(y, i, t)
    put(y, 7, len(problem.name) + cols)


@kernel(mode="auto")
def of_a_tuple(arrays, y, n):
    x, (first, second) = arrays
    t = get(x, first)
    TADDS(t, t, second)
    keep(y, 0, t)


@kernel(mode="auto")
def changes_its_argument(problem, y, n):
    problem.scale = 2.0


@kernel(mode="auto")
def of_floats(x, y, f):
    put(y, 0, f)
    put(y, 1, f * 3 - 0.1)
    put(y, 2, 1 / f if f > 0.2 else f + 1)
    put(y, 3, max(f, 0.15) * f)
    put(y, 4, (f + 1) ** 2 + int(f * 10))


@kernel(mode="auto")
def of_a_grid(x, y, rows):
    row, col = divmod(get_block_idx(), 3)
    if row < rows:
        put(y, get_block_idx(), row * 10 + col + get_block_num())


Plane = Tile[TileType.Vec, float32, 4, COLS]


@kernel(mode="auto")
def of_three_dimensions(x, y, n):
    t = Plane()
    TLOAD(t, GlobalTensor(x)[n : n + 1])
    TSTORE(GlobalTensor(y)[1 - n, :, 0:16], t)
    TLOAD(t, GlobalTensor(x)[1 - n, 0:4])
    TSTORE(GlobalTensor(y)[n, :], t)


@kernel(mode="auto")
def of_one_dimension(x, y, n):
    t = Row()
    TLOAD(t, GlobalTensor(x)[n : n + 16])
    TSTORE(GlobalTensor(y)[0:1, 16:32], t)
    TSTORE(GlobalTensor(y)[:16], t)
