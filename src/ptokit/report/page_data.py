"""The numbers that a page shows: plain lists and tables, which the page embeds as JSON.

Times are whole cycles; long columns of growing numbers hold the steps from one to the next. A place
is a line of a source file; whatever the page links - work on a pipe, a line of IR or C++, bytes of
a memory - names the place it comes from by its number.
"""

from __future__ import annotations

import linecache
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from itertools import pairwise
from pathlib import Path
from typing import Any

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import Diagnostic, where
from ptokit.base.location import Location
from ptokit.ir.origins import apart
from ptokit.isa.effects import Pipe
from ptokit.report.memory_map import Placed
from ptokit.timing.model import Node, Timed, core_and_index
from ptokit.timing.report import Timing
from ptokit.timing.streams import PIPE_NAMES, Item

MOST_EVENTS = 50_000  # beyond, neighbours on a pipe are shown as one
_MOST_LINES = 5_000  # of a text


@dataclass
class _Places:
    """Lines of files, numbered as they are met."""

    files: dict[str, int] = field(default_factory=dict[str, int])
    known: dict[tuple[int, int], int] = field(default_factory=dict[tuple[int, int], int])

    def number(self, at: Location | None) -> int:
        """The number of a line, or of the line of its source where the text was made from one."""
        if at is None:
            return -1
        at = at.origin or at
        if not at.line:
            return -1
        file = self.files.setdefault(at.file, len(self.files))
        return self.known.setdefault((file, at.line), len(self.known))

    def as_dict(self) -> dict[str, Any]:
        files = [
            {"name": Path(name).name, "lines": _lines(name)[:_MOST_LINES]} for name in self.files
        ]
        return {"files": files, "places": [list(each) for each in self.known]}


def _lines(name: str) -> list[str]:
    return [line.rstrip("\n") for line in linecache.getlines(name)]


def page_data(
    timing: Timing,
    *,
    ir: str = "",
    cpp: str = "",
    tiles: Iterable[Placed] = (),
    findings: Sequence[Diagnostic] = (),
) -> dict[str, Any]:
    """All that a page says of one launch. `ir` and `cpp` name their origins behind their lines."""
    places = _Places()
    items = timing.streams.items
    for item in items:  # the files of the kernel come first
        places.number(where(item.site))
    shown = _Shown.of(timing)
    data: dict[str, Any] = {
        **timing.as_dict(),
        "cycles": round(timing.cycles),
        "serial_us": round(timing.serial_us, 3),
        "blocks": len(timing.streams.blocks),
        "device_cores": timing.cores,
        "events": sum(len(core.nodes) for core in timing.outcome.cores),
        "aggregated": shown.is_aggregated,
        "items": [_item(item, places) for item in items],
        "pipes": {str(number): name for number, name in PIPE_NAMES.items()},
        "cores": shown.cores,
        "flows": shown.flows,
        "chain": shown.chain(timing),
        "breakdown": [
            {"label": s.label, "cycles": _cycles(timing, s.us), "place": places.number(s.line)}
            for s in timing.breakdown
        ],
        "waits": [
            {
                "pipe": wait.pipe,
                "core": wait.core,
                "cycles": _cycles(timing, wait.us),
                "reason": wait.reason.strip(" :"),
                "place": places.number(wait.line),
                "behind": places.number(wait.behind),
            }
            for wait in timing.waits
        ],
        "advice": [
            {"text": each.text, "gain": each.share, "place": places.number(each.line)}
            for each in (timing.advice if timing.is_advised else ())
        ],
        "shares": _shares(timing),
        "lines": _by_line(timing, places),
        "memory": _memory(timing, list(tiles)),
        "roofline": _roofline(timing),
        "findings": [_finding(each, places) for each in findings],
        "ir": _text(ir, places),
        "cpp": _text(cpp, places),
    }
    del data["critical"]
    return data | places.as_dict()


def _cycles(timing: Timing, us: float) -> int:
    return round(us * timing.clock * 1e3)


def _item(item: Item, places: _Places) -> dict[str, Any]:
    found: dict[str, Any] = {"label": item.label, "place": places.number(where(item.site))}
    if item.cost is not None:
        found["kind"] = item.cost.kind
        features = {name: round(value, 1) for name, value in item.cost.features.items() if value}
        found["features"] = features
        if item.cost.bytes:
            found["bytes"] = item.cost.bytes
    if item.touches:
        found["touches"] = [
            [t.memory, t.start, t.stop, f"{'r' * t.reads}{'w' * t.writes}", t.operand]
            for t in item.touches
        ]
    return found


def _finding(found: Diagnostic, places: _Places) -> dict[str, Any]:
    lines = [found.location] if found.location else []
    lines += [note.location for note in found.notes if note.location]
    return {
        "code": found.code,
        "severity": found.severity,
        "message": found.message,
        "fix": found.fix,
        "notes": [note.text for note in found.notes],
        "places": [number for number in map(places.number, lines) if number >= 0],
    }


def _text(text: str, places: _Places) -> dict[str, Any]:
    lines: list[str] = []
    at: list[int] = []
    for line in text.splitlines()[:_MOST_LINES]:
        shown, origin = apart(line)
        lines.append(shown)
        at.append(places.number(origin))
    return {"lines": lines, "places": at}


# ---- the timeline --------------------------------------------------------------------------------


@dataclass
class _Group:
    """Neighbours on a pipe that are shown as one."""

    first: float
    last: float
    busy: float
    work: Counter[int]  # cycles of each item
    count: int = 1


@dataclass
class _Shown:
    """The work of every core as columns of numbers: starts count from the one before."""

    cores: list[dict[str, Any]]
    flows: list[dict[str, Any]]
    is_aggregated: bool
    numbers: list[list[int]]  # by core and node: the piece that shows it

    def chain(self, timing: Timing) -> dict[str, list[int]]:
        """The longest chain of work, each piece once."""
        pieces = [(core, self.numbers[core][node]) for core, node in reversed(timing.path)]
        pieces = list(dict.fromkeys(pieces))
        return {"core": [core for core, _ in pieces], "node": _steps([node for _, node in pieces])}

    @staticmethod
    def of(timing: Timing) -> _Shown:
        outcome = timing.outcome
        step = 0.0
        while True:
            grouped = [_grouped(core, step) for core in outcome.cores]
            if sum(len(groups) for groups, _ in grouped) <= MOST_EVENTS:
                break
            step = 2 * step or timing.cycles / MOST_EVENTS
        numbers = [indices for _, indices in grouped]
        cores = [
            {
                "name": timing.core_name(core),
                "place": core.stream.place,
                "weight": core.weight,
                "end": round(core.end),
                **_columns(groups),
            }
            for core, (groups, _) in zip(outcome.cores, grouped, strict=True)
        ]
        between: dict[tuple[int, int], set[tuple[int, int]]] = {}
        for giver, taker in outcome.sent:
            (core, index), (other, at) = core_and_index(giver), core_and_index(taker)
            ends = numbers[core][index], numbers[other][at]
            if core != other or ends[0] != ends[1]:
                between.setdefault((core, other), set()).add(ends)
        flows = [
            {
                "from": core,
                "to": other,
                "giver": _steps([giver for giver, _ in sorted(pairs)]),
                "taker": _steps([taker for _, taker in sorted(pairs)]),
            }
            for (core, other), pairs in between.items()
        ]
        return _Shown(cores, flows, step > 0, numbers)


def _steps(values: Sequence[int]) -> list[int]:
    """Each number as the step from the one before: most of them are short."""
    return [after - before for before, after in pairwise([0, *values])]


def _grouped(core: Timed, step: float) -> tuple[list[tuple[int, _Group]], list[int]]:
    """Pieces of a core in order of time, each of one pipe and shorter than a step, or one node."""
    groups: list[tuple[int, _Group]] = []
    last: dict[int, int] = {}
    numbers: list[int] = []
    for what, pipe, start, end, _ in core.nodes:
        at = last.get(pipe, -1)
        if step and at >= 0 and end - groups[at][1].first <= step:
            group = groups[at][1]
            group.last, group.count = max(group.last, end), group.count + 1
            group.busy += end - start
            group.work[what] += round(end - start)
        else:
            at = last[pipe] = len(groups)
            work = Counter({what: max(1, round(end - start))})
            groups.append((pipe, _Group(start, end, end - start, work)))
        numbers.append(at)
    order = sorted(range(len(groups)), key=lambda each: groups[each][1].first)
    place = {old: new for new, old in enumerate(order)}
    return [groups[each] for each in order], [place[each] for each in numbers]


def _columns(groups: Sequence[tuple[int, _Group]]) -> dict[str, Any]:
    starts = [round(group.first) for _, group in groups]
    ends = [round(group.last) for _, group in groups]
    many = [(n, group) for n, (_, group) in enumerate(groups) if group.count > 1]
    return {
        "item": [group.work.most_common(1)[0][0] for _, group in groups],
        "pipe": [pipe for pipe, _ in groups],
        "start": _steps(starts),
        "length": [max(1, end - start) for start, end in zip(starts, ends, strict=True)],
        "many": {
            "at": _steps([n for n, _ in many]),
            "count": [group.count for _, group in many],
            "busy": [round(group.busy) for _, group in many],
        },
    }


# ---- where the time goes -------------------------------------------------------------------------


def _shares(timing: Timing) -> list[dict[str, Any]]:
    """Of every pipe of every kind of core: working, waiting for whom, and neither."""
    rows = timing.rows
    found: dict[tuple[str, int], dict[str, float]] = {}
    heads: Counter[str] = Counter()
    for core in timing.outcome.cores:
        place = core.stream.place
        heads[place] += core.weight
        for pipe, cycles in core.busy.items():
            entry = found.setdefault((place, pipe), {})
            entry["busy"] = entry.get("busy", 0.0) + cycles * core.weight
        for stall in core.stalls.values():
            giver = timing.streams.items[stall.giver].pipe if stall.giver >= 0 else -1
            name = PIPE_NAMES[giver] if giver > 0 else "S"
            entry = found.setdefault((place, stall.pipe), {})
            entry[name] = entry.get(name, 0.0) + stall.cycles * core.weight
    shares: list[dict[str, Any]] = []
    for (place, pipe), entry in sorted(found.items()):
        whole = timing.cycles * heads[place] / rows
        busy = entry.pop("busy", 0.0) / whole
        if not pipe and not busy:
            continue  # the scalar unit only issues
        waits = {name: round(cycles / whole, 4) for name, cycles in entry.items()}
        shares.append(
            {"core": place, "pipe": PIPE_NAMES[pipe], "busy": round(busy, 4), "waits": waits}
        )
    return shares


def _by_line(timing: Timing, places: _Places) -> list[list[int]]:
    """[place, cycles of work, of waiting, times]: on the core that spends most at the line."""
    items = timing.streams.items
    number = [places.number(where(item.site)) for item in items]
    most: dict[int, list[int]] = {}
    for core in timing.outcome.cores:
        here: dict[int, list[float]] = {}
        for what, _, start, end, _ in core.nodes:
            entry = here.setdefault(number[what], [0.0, 0.0, 0.0])
            entry[0] += end - start
            entry[2] += 1
        for stall in core.stalls.values():
            if stall.pipe:
                here.setdefault(number[stall.item], [0.0, 0.0, 0.0])[1] += stall.cycles
        for place, entry in here.items():
            rounded = [round(each) for each in entry]
            if sum(rounded[:2]) >= sum(most.get(place, [-1, 0])[:2]):
                most[place] = rounded
    return [[place, *entry] for place, entry in sorted(most.items())]


def _roofline(timing: Timing) -> dict[str, Any]:
    """Work of the busiest unit that computes against bytes of global memory.

    Both axes are free of any count of operations: cycles that the unit needs at its best for a byte
    of traffic, and the share of the time that it works at its best.
    """
    outcome, params = timing.outcome, timing.params
    slots = sum(core.weight for core in outcome.cores) / timing.rows
    least: Counter[int] = Counter()
    for core in outcome.cores:
        for pipe, cycles in core.least.items():
            least[pipe] += round(cycles * core.weight)
    traffic = outcome.bytes_read + outcome.bytes_written
    unit = max((Pipe.M, Pipe.V), key=lambda pipe: least[int(pipe)])
    work = least[int(unit)]
    return {
        "unit": unit.name,
        "bytes": traffic,
        "missed": outcome.bytes_missed,
        "intensity": work / traffic if traffic else 0.0,
        "share": work / (slots * timing.cycles) if slots else 0.0,
        "roofs": [
            {"name": "one core", "rate": max(_rates(timing), default=0.0)},
            {"name": "L2, shared", "rate": params["memory.total_rate"] / max(slots, 1.0)},
            {"name": "HBM, shared", "rate": params["memory.hbm_rate"] / max(slots, 1.0)},
        ],
        "least": {PIPE_NAMES[pipe]: cycles for pipe, cycles in least.most_common()},
        "slots": slots,
    }


def _rates(timing: Timing) -> Iterator[float]:
    """Bytes a cycle that a core moves at its best, in each way that it does."""
    for item in timing.streams.items:
        if item.cost is not None and item.cost.bytes and item.pipe:
            yield timing.params.law(item.cost.insn, item.cost.kind).rate


# ---- memories ------------------------------------------------------------------------------------


def _memory(timing: Timing, tiles: Sequence[Placed]) -> list[dict[str, Any]]:
    """What lies where, and when: of one core of each kind, the first."""
    shown: dict[str, int] = {}
    for number, core in enumerate(timing.outcome.cores):
        shown.setdefault(core.stream.place, number)
    found: list[dict[str, Any]] = []
    for number in shown.values():
        core = timing.outcome.cores[number]
        lives = lifetimes(core.nodes, timing.streams.items, timing.cycles / MOST_EVENTS)
        for memory in sorted({memory for memory, _, _ in lives}):
            blocks = [
                {
                    "name": _name(tiles, memory, start, stop),
                    "start": start,
                    "stop": stop,
                    "lives": _steps([round(each) for span in spans for each in span]),
                }
                for (held, start, stop), spans in sorted(lives.items())
                if held == memory
            ]
            capacity = timing.streams.capacities.get(memory, 0)
            entry = {"core": number, "memory": memory, "capacity": capacity}
            found.append({**entry, "blocks": blocks})
    return found


def lifetimes(
    nodes: Sequence[Node], items: Sequence[Item], close: float
) -> dict[tuple[str, int, int], list[list[float]]]:
    """When each stretch of a memory holds something that is still used: [from, to] by stretch.

    A life begins with what writes without reading, and lasts to the last use before the next such
    write. Lives closer to each other than `close` are one.
    """
    found: dict[tuple[str, int, int], list[list[float]]] = {}
    was_read: dict[tuple[str, int, int], bool] = {}
    for what, _, start, end, _ in sorted(nodes, key=lambda node: node[2]):
        uses: dict[tuple[str, int, int], list[bool]] = {}
        for touch in items[what].touches:
            use = uses.setdefault((touch.memory, touch.start, touch.stop), [False, False])
            use[0] |= touch.reads
            use[1] |= touch.writes
        for key, (reads, writes) in uses.items():
            lives = found.setdefault(key, [])
            begins = not lives or (writes and not reads and was_read.get(key, False))
            if begins and lives and start - lives[-1][1] <= close:
                begins = False
            if begins:
                lives.append([start, end])
            else:
                lives[-1][1] = max(lives[-1][1], end)
            was_read[key] = reads or (was_read.get(key, False) and not begins)
    return found


def _name(tiles: Sequence[Placed], memory: str, start: int, stop: int) -> str:
    """The tiles that lie there; what a FIFO lends has no name of its own."""
    same = [t for t in tiles if t.memory == memory and t.start == start]
    names = [t.name for t in same if t.start + t.nbytes >= stop] or [t.name for t in same]
    if not names:
        names = [
            t.name
            for t in tiles
            if t.memory == memory and t.start <= start and stop <= t.start + t.nbytes
        ]
    return ", ".join(dict.fromkeys(names))


__all__ = ["MOST_EVENTS", "lifetimes", "page_data"]
