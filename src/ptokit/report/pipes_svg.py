"""Memories and pipes of a target: who moves data from where to where, from the instruction table.

Every way is found by looking at samples: the memories of what an instruction reads and writes on
a target, and the pipe that works. Memories stand as many columns away from global memory as it
takes moves to reach them.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from itertools import islice

from ptokit.base.namedtuple import NamedTuple
from ptokit.base.tensors import ConvSpec, GlobalSpec
from ptokit.base.tiles import TileSpec
from ptokit.isa.effects import Pipe
from ptokit.isa.facts import Unknown
from ptokit.isa.samples import Sample, Spec, samples
from ptokit.isa.spec import Insn
from ptokit.isa.targets import KIB, TARGETS, Target
from ptokit.pictures.svg import COLOURS, EDGE, INK, PAPER, SOFT, WELL, Picture

GM = "GM"
MANY = 40  # samples of an instruction that are looked at
BOX, ROOM = (92.0, 58.0), (205.0, 84.0)  # of a memory, and from one to the next


class Way(NamedTuple):
    """Data goes from one memory to another, in a pipe."""

    source: str
    target: str
    pipe: Pipe


@cache
def ways(target: str, insns: tuple[Insn, ...]) -> dict[Way, tuple[str, ...]]:
    """Every way between memories of a target, with the instructions that take it."""
    found: dict[Way, dict[str, None]] = {}
    for insn in insns:
        if target not in insn.targets:
            continue
        for each in islice(samples(insn, TARGETS[target]), MANY):
            for way in _ways_of(each):
                found.setdefault(way, {})[insn.name] = None
    return {way: tuple(names) for way, names in found.items()}


def _ways_of(shown: Sample) -> Iterable[Way]:
    pipe = shown.insn.pipe
    try:
        pipe = pipe if pipe is None or isinstance(pipe, Pipe) else pipe(shown.facts())
    except Unknown:
        return
    if pipe is None:
        return
    sides: dict[bool, set[str]] = {False: set(), True: set()}
    for operand in shown.insn.operands:
        memory = _memory(shown.operands.get(operand.name), shown.target)
        if memory and operand.role != "tmp" and not operand.is_handle:
            if operand.reads:
                sides[False].add(memory)
            if operand.writes:
                sides[True].add(memory)
    for source in sides[False]:
        for target in sides[True]:
            yield Way(source, target, pipe)


def _memory(spec: Spec | None, target: Target) -> str:
    if isinstance(spec, GlobalSpec):
        return GM
    if isinstance(spec, TileSpec | ConvSpec):
        space = target.spaces.get(spec.loc)
        return space.memory if space is not None and space.capacity else ""
    return ""


def pipes_svg(target: Target, insns: Iterable[Insn]) -> str:
    """The memories of a target and the pipes between them."""
    found = ways(target.name, tuple(insns))
    places = _places({(way.source, way.target) for way in found})
    picture = Picture(f"{target.title}: memories, and the pipes that move data")
    picture.bottom = max(y for _, y in places.values()) + BOX[1]
    colours = dict(zip(sorted({way.pipe for way in found}), COLOURS, strict=False))
    sizes = {s.memory: s.capacity for s in reversed([*target.spaces.values()]) if s.capacity}
    drawn = [way for way in sorted(found) if way.source != way.target]
    main = _main_sources(target.name, tuple(insns))
    for way in drawn:
        back = places[way.source][0] > places[way.target][0]
        if back and way not in main:
            continue  # read beside the data: parameters of a conversion
        far = back and places[way.source][0] - places[way.target][0] > 1.5 * ROOM[0]
        deep = far or (back and places[way.target][0] > 30)
        draw = _detour if deep else _arrow
        draw(picture, places, way, colours[way.pipe], _tip(way, found[way]), _side(way, drawn))
    for memory, (x, y) in places.items():
        own = sorted({way.pipe.name for way in found if way.source == way.target == memory})
        picture.box(x, y, *BOX, WELL, stroke=EDGE, rx=6)
        picture.text(x + BOX[0] / 2, y + 19, memory, bold=True, size=13, anchor="middle")
        size = f"{sizes[memory] // KIB} KiB" if memory in sizes else "your arrays"
        picture.text(x + BOX[0] / 2, y + 33, size, fill=SOFT, size=10, anchor="middle")
        if own and memory != GM:
            picture.text(
                x + BOX[0] / 2,
                y + 47,
                "inside: " + " ".join(own),
                fill=SOFT,
                size=8,
                anchor="middle",
            )
    top, x = picture.bottom + 24, picture.margin
    for pipe, colour in colours.items():
        picture.line([(x, top - 4), (x + 18, top - 4)], colour, stroke_width=3)
        picture.text(x + 23, top, pipe.name)
        x += 40 + 8 * len(pipe.name)
    return str(picture)


@cache
def _main_sources(target: str, insns: tuple[Insn, ...]) -> frozenset[Way]:
    """The ways that some instruction takes alone: it reads from no other memory."""
    return frozenset(
        found[0]
        for insn in insns
        if target in insn.targets
        for each in islice(samples(insn, TARGETS[target]), MANY)
        if len(found := [*_ways_of(each)]) == 1
    )


def _tip(way: Way, names: tuple[str, ...]) -> str:
    return f"{way.source} to {way.target} in {way.pipe.name}: {', '.join(sorted(names)[:24])}"


def _places(pairs: set[tuple[str, str]]) -> dict[str, tuple[float, float]]:
    """The corner of each memory: as many columns from GM as moves, one below the other."""
    columns = [[GM]]
    while columns[-1]:
        seen = {name for column in columns for name in column}
        reached = {b for a, b in pairs if a in columns[-1] and b not in seen}
        columns.append(sorted(reached))
    tallest = max(map(len, columns))
    places: dict[str, tuple[float, float]] = {}
    for n, column in enumerate(columns):
        top = 92 + (tallest - len(column)) * ROOM[1] / 2
        for m, name in enumerate(column):
            places[name] = 20 + n * ROOM[0], top + m * ROOM[1]
    return places


def _side(way: Way, drawn: list[Way]) -> float:
    """How far from the middle an arrow is drawn where several join the same two memories."""
    both = [w for w in drawn if {w.source, w.target} == {way.source, way.target}]
    return 12.0 * (both.index(way) - (len(both) - 1) / 2)


Places = dict[str, tuple[float, float]]


def _arrow(picture: Picture, places: Places, way: Way, colour: str, tip: str, side: float) -> None:
    """From the side of one memory to that of the other; in a bow where one is below the other."""
    (x0, y0), (x1, y1) = places[way.source], places[way.target]
    wide, tall = BOX
    forwards = x0 < x1
    if abs(x0 - x1) < 1:
        start, end = (x0 + wide, y0 + tall / 2 + side), (x1 + wide, y1 + tall / 2 + side)
        bend = (x0 + wide + 46 + 2 * abs(side), (start[1] + end[1]) / 2)
    else:
        start = (x0 + wide * forwards, y0 + tall / 2 + side)
        end = (x1 + wide * (not forwards), y1 + tall / 2 + side)
        bend = ((start[0] + end[0]) / 2, (start[1] + end[1]) / 2)
    picture.line(
        [_on(start, bend, end, step / 12) for step in range(13)],
        colour,
        arrow=True,
        stroke_width=1.7,
    )
    # Words of arrows that go both ways stand apart: nearer to where each of them leads.
    share = 0.3 if abs(x0 - x1) < 1 else 0.66 if forwards else 0.6
    _label(picture, way, _on(start, bend, end, share), tip)


def _detour(picture: Picture, places: Places, way: Way, colour: str, tip: str, side: float) -> None:
    """Back to an earlier column, over or below all memories between."""
    (x0, y0), (x1, y1) = places[way.source], places[way.target]
    wide, tall = BOX
    middle = sum(y for _, y in places.values()) / len(places)
    column = [y for x, y in places.values() if x == x1]
    above = y1 < middle and y1 == min(column)
    lane = 14.0 * list(dict.fromkeys(x for x, _ in places.values())).index(x1)
    if above:
        top = min(y for _, y in places.values()) - 30 + lane
        path = [(x0 + wide / 2, y0), (x0 + wide / 2, top), (x1 + wide / 2, top)]
        end = (x1 + wide / 2, y1 - 2)
    else:
        top = max(y for _, y in places.values()) + tall + 46 - lane
        path = [(x0 + wide / 2 + lane, y0 + tall), (x0 + wide / 2 + lane, top)]
        path.append((x1 + wide / 2, top))
        end = (x1 + wide / 2, y1 + tall + 2)
    picture.line([*path, end], colour, arrow=True, stroke_width=1.7)
    _label(picture, way, ((x0 + x1 + wide) / 2, top), tip)


def _label(picture: Picture, way: Way, at: tuple[float, float], tip: str) -> None:
    half = len(way.pipe.name) * 3.4 + 3
    picture.box(at[0] - half, at[1] - 7, 2 * half, 14, PAPER, rx=3, tip=tip)
    picture.text(at[0], at[1] + 3.5, way.pipe.name, fill=INK, size=9, anchor="middle")


def _on(
    start: tuple[float, float], bend: tuple[float, float], end: tuple[float, float], at: float
) -> tuple[float, float]:
    """A point of a bow."""
    a, b, c = (1 - at) ** 2, 2 * at * (1 - at), at**2
    return (
        a * start[0] + b * bend[0] + c * end[0],
        a * start[1] + b * bend[1] + c * end[1],
    )


__all__ = ["Way", "pipes_svg", "ways"]
