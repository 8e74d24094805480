"""What an instruction reads and writes: the operands of its example, and the parts it touches.

Nothing here is drawn by hand: the example runs, and its event says which elements of which operand
were read, written or lost. Of what only orders work the effects are listed instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import PtoError
from ptokit.base.tensors import ROW_AND_COLUMN_AXES, ConvSpec, GlobalSpec, global_axis_map
from ptokit.base.tiles import TileSpec
from ptokit.isa.facts import Unknown
from ptokit.isa.samples import Sample
from ptokit.isa.spec import Insn
from ptokit.machine.events import Event
from ptokit.pictures.svg import EDGE, INK, LOST, READ, SOFT, WELL, WRITTEN, Picture, letters
from ptokit.report.examples import example_code, example_sample, executed
from ptokit.report.pages import pipe_name

LONGEST = 150.0  # pixels of the longer side of the largest operand
LEAST = 9.0
GAP = 22.0
CHIP = 120.0  # pixels of the instruction itself


@dataclass(frozen=True)
class Shown:
    """An operand: its name, type and size, and the rows and columns that are touched."""

    name: str
    role: str
    what: str  # its type, or its value
    size: tuple[int, int] = (0, 0)  # none: a number or an object
    rows: tuple[int, int] = (0, 0)
    cols: tuple[int, int] = (0, 0)

    @property
    def region(self) -> str:
        """The part that is touched, as NumPy writes it."""
        return f"[{self.rows[0]}:{self.rows[1]}, {self.cols[0]}:{self.cols[1]}]"


def insn_svg(insn: Insn) -> str:
    """The figure of one instruction; nothing where no device has it."""
    shown = example_sample(insn)
    if shown is None:
        return ""
    events = _events(shown)
    return _Figure(shown, events).drawn()


def operands(shown: Sample, events: list[Event]) -> list[Shown]:
    """The operands of a sample, with what a run of it touched."""
    touched = _touched(shown, events)
    found: list[Shown] = []
    for declared in shown.insn.operands:
        spec = shown.operands.get(declared.name)
        if spec is None or declared.name in shown.same:
            continue
        size = _size(spec)
        role = declared.role
        for other, name in shown.same.items():  # one object under two names
            if name == declared.name and shown.insn.operand(other).role != role:
                role = "inout"
        rows, cols = touched.get(declared.name, ((0, size[0]), (0, size[1])))
        words = spec.partition("(")[0] if isinstance(spec, str) else declared.written(spec)
        found.append(Shown(declared.name, role, words, size, rows, cols))
    return found


def _size(spec: Any) -> tuple[int, int]:
    if isinstance(spec, TileSpec):
        return spec.rows, spec.cols
    if isinstance(spec, GlobalSpec) and spec.layout in ROW_AND_COLUMN_AXES:
        of = global_axis_map(spec.shape, spec.stride, spec.layout)
        return of.rows, of.cols
    if isinstance(spec, ConvSpec | GlobalSpec):
        return prod(spec.shape[:-1]), spec.shape[-1]
    return 0, 0


def _touched(
    shown: Sample, events: list[Event]
) -> dict[str, tuple[tuple[int, int], tuple[int, int]]]:
    """Rows and columns of each operand that a run of the example touches, where they are told."""
    found: dict[str, tuple[tuple[int, int], tuple[int, int]]] = {}
    for event in events:
        for access in (*_known(event), *event.bound):
            rows, cols = access.pattern.rows, access.pattern.cols
            size = _size(shown.operands.get(access.operand))
            is_part = rows.stop <= size[0] and cols.stop <= size[1]
            if is_part and rows.start < rows.stop and cols.start < cols.stop:
                found[access.operand] = (rows.start, rows.stop), (cols.start, cols.stop)
    return found


def _known(event: Event) -> Sequence[Any]:
    """The accesses of an event to on-chip memory; what only orders has none."""
    return event.call.accesses if hasattr(event, "call") else ()


def _events(shown: Sample) -> list[Event]:
    """What the machine tells of a run of the example; nothing where it cannot run by itself."""
    lines = example_code(shown)
    at = next(n for n, line in enumerate(lines) if line.startswith("with device("))
    lines[at] = f"{lines[at].removesuffix(':')} as _here:"
    lines.insert(len(lines) - 1, "    _here.subscribe(_events.append)")
    events: list[Event] = []
    try:
        executed(lines, {"_events": events})
    except PtoError:
        return []
    return events


def _tokens(events: list[Event]) -> list[str]:
    """The tokens that the instruction took and gave."""
    found = [("wait for", token) for event in events for token, _ in event.waits]
    found += [("signal", token) for event in events for token in event.signals]
    return [f"{verb} {type(token).__name__.lower()}" for verb, token in found]


class _Figure:
    """Sources at the left, the instruction in the middle, what it leaves at the right."""

    def __init__(self, shown: Sample, events: list[Event]) -> None:
        self.shown, self.insn = shown, shown.insn
        self.events = [event for event in events if event.insn is shown.insn]
        every = operands(shown, events)
        self.picture = Picture(f"{self.insn.name} on {shown.target.name}")
        self.left = [o for o in every if o.role == "in"]
        self.right = [o for o in every if o.role != "in"]
        longest = max((max(o.size) for o in every), default=1) or 1
        self.scale = LONGEST / longest
        self.ports: list[tuple[Shown, float, float]] = []

    def drawn(self) -> str:
        wide = max([self._room(o) for o in self.left], default=0.0)
        chip = 14 + wide + (70 if self.left else 0)
        ends = [self._column(self.left, 14, wide), self._column(self.right, chip + CHIP + 70, 0)]
        notes = [*self._pipes(), *self._orders()]
        tall = 30 + 13 * len(notes)
        middle = max((44 + max(ends)) / 2, 44 + tall / 2)
        self._arrows(chip, middle)
        picture = self.picture
        picture.box(chip, middle - tall / 2, CHIP, tall, WELL, stroke=INK, rx=6)
        x = chip + CHIP / 2
        name = self.insn.name
        size = min(13.0, 13 * CHIP / letters(name, 16))
        picture.text(x, middle - tall / 2 + 18, name, bold=True, size=size, anchor="middle")
        for n, note in enumerate(notes):
            y = middle - tall / 2 + 33 + 13 * n
            size = min(10.0, 10 * CHIP / letters(note + " "))
            picture.text(x, y, note, fill=SOFT, size=size, anchor="middle")
        picture.bottom = max(picture.bottom, middle + tall / 2)
        return str(picture)

    def _pipes(self) -> list[str]:
        """The pipes that worked, or would."""
        did = [event for event in self.events if event.bound or _known(event)]
        worked = dict.fromkeys(f"PIPE_{event.pipe.name}" for event in did)
        return [*worked] or ([pipe_name(self.insn)] if self.insn.pipe is not None else [])

    def _room(self, o: Shown) -> float:
        return max(self._across(o)[0], letters(o.what, 10), len(o.name) * 7.0)

    def _across(self, o: Shown) -> tuple[float, float]:
        rows, cols = o.size
        return max(LEAST, cols * self.scale), max(LEAST, rows * self.scale)

    def _column(self, every: list[Shown], x: float, wide: float) -> float:
        """Draw operands below each other, and note where arrows join them; gives where it ends."""
        y = 44.0
        for o in every:
            self.picture.text(x, y + 8, o.name, bold=True, mono=True)
            self.picture.text(x + len(o.name) * 7.4 + 8, y + 8, _verb(o), fill=SOFT, size=10)
            self.picture.text(x, y + 21, o.what, fill=SOFT, size=10)
            top, across, down = y + 27, len(o.what) * 5.4, 0.0
            if max(o.size):
                across, down = self._across(o)
                self._box(o, x, top, across, down)
            self.ports.append((o, x + across if wide else x, top + down / 2 if down else y + 17))
            y = top + down + GAP
        return y - GAP if every else 88.0

    def _box(self, o: Shown, x: float, y: float, wide: float, tall: float) -> None:
        self.picture.box(x, y, wide, tall, WELL, stroke=EDGE)
        rows, cols = o.size
        left, top = x + wide * o.cols[0] / cols, y + tall * o.rows[0] / rows
        across = max(2.0, wide * (o.cols[1] - o.cols[0]) / cols)
        down = max(2.0, tall * (o.rows[1] - o.rows[0]) / rows)
        colours = {"in": [READ], "out": [WRITTEN], "tmp": [LOST]}.get(o.role, [READ, WRITTEN])
        part = across / len(colours)
        for n, colour in enumerate(colours):
            tip = f"{_verb(o)} {o.name}{o.region}"
            self.picture.box(left + n * part, top, part, down, colour, fill_opacity=0.55, tip=tip)
        if o.rows != (0, rows) or o.cols != (0, cols):
            self.picture.text(x + wide + 5, y + min(tall, 12), o.region, size=9, mono=True)

    def _arrows(self, chip: float, middle: float) -> None:
        for o, x, y in self.ports:
            if o.role == "in":
                start = max(x + 4, chip - 66)
                self.picture.line(
                    [(x + 4, y), (start, y), (chip - 3, middle)], READ, arrow=True, stroke_width=1.6
                )
            else:
                colour = LOST if o.role == "tmp" else WRITTEN
                ends = [(chip + CHIP + 3, middle), (x - 5, y)]
                self.picture.line(ends, colour, arrow=True, stroke_width=1.6)
                if o.role == "inout":
                    self.picture.line(
                        [(x - 5, y + 6), (chip + CHIP + 3, middle + 6)],
                        READ,
                        arrow=True,
                        stroke_width=1.6,
                    )

    def _orders(self) -> list[str]:
        """What it does to the order of work, in a few words each."""
        if self.insn.effects is None:
            return []
        if any(isinstance(spec, str) for spec in self.shown.operands.values()):
            return _tokens(self.events)  # an object: it exists in the run
        try:
            found = self.insn.effects(self.shown.facts())
        except Unknown:
            return []
        return [" ".join(_effect(each)) for each in found]


def _verb(o: Shown) -> str:
    if not max(o.size):
        return {"in": "given"}.get(o.role, "used")
    return {"in": "read", "out": "written", "tmp": "scratch, lost"}.get(o.role, "read and written")


def _effect(effect: Any) -> list[str]:
    """The kind of an effect and its pipe, or its operand."""
    words = [type(effect).__name__.lower()]
    for name in ("pipe", "operand", "register"):
        value = getattr(effect, name, None)
        if value is not None:
            words.append(getattr(value, "name", str(value)))
            break
    token = getattr(effect, "token", None)
    if token is not None:
        words.append(type(token).__name__.lower())
    return words


__all__ = ["insn_svg", "operands"]
