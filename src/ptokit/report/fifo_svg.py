"""A FIFO between cores: which slot an entry takes, and which entries are waited for."""

from __future__ import annotations

from math import cos, pi, sin

from ptokit.isa.fifos import PipeSpec
from ptokit.pictures.svg import COLOURS, EDGE, READ, SOFT, WELL, WRITTEN, Picture

CELL, TALL = 34.0, 22.0


def ring_svg(spec: PipeSpec, pushed: int, popped: int) -> str:
    """The ring after so many entries were pushed and popped."""
    picture = Picture(f"{spec.SlotNum} slots: {pushed} entries pushed, {popped} popped")
    radius = max(60.0, spec.SlotNum * 16.0)
    centre = 104 + radius, 92 + radius
    held = {entry % spec.SlotNum: entry for entry in range(popped, pushed)}
    for slot in range(spec.SlotNum):
        x, y = _around(centre, radius, slot, spec.SlotNum)
        picture.box(x - CELL / 2, y - TALL / 2, CELL, TALL, WELL, stroke=EDGE, rx=4)
        if slot in held:
            colour = COLOURS[held[slot] % len(COLOURS)]
            picture.box(x - CELL / 2, y - TALL / 2, CELL, TALL, colour, fill_opacity=0.5, rx=4)
            picture.text(x, y + 4, f"{held[slot]}", anchor="middle")
        x, y = _around(centre, radius - 26, slot, spec.SlotNum)
        picture.text(x, y + 3, f"{slot}", fill=SOFT, size=9, anchor="middle")
    for words, entry, colour in (("producer", pushed, WRITTEN), ("consumer", popped, READ)):
        slot = entry % spec.SlotNum
        shift = 9.0 if pushed % spec.SlotNum == popped % spec.SlotNum else 0.0
        turn = shift / radius * (1 if words == "producer" else -1)
        far, near, label = (
            _around(centre, radius + reach, slot, spec.SlotNum, turn) for reach in (44, 20, 54)
        )
        picture.line([far, near], colour, arrow=True, stroke_width=2)
        beside = label[0] - centre[0]
        anchor = "middle" if abs(beside) < radius / 2 else "end" if beside < 0 else "start"
        picture.text(label[0], label[1] + 3, f"{words}: {entry}", size=10, anchor=anchor)
    picture.right = max(picture.right, centre[0] + radius + 90)
    picture.bottom = max(picture.bottom, centre[1] + radius + 62)
    return str(picture)


def _around(
    centre: tuple[float, float], radius: float, slot: int, count: int, more: float = 0.0
) -> tuple[float, float]:
    turn = 2 * pi * slot / count - pi / 2 + more
    return centre[0] + radius * cos(turn), centre[1] + radius * sin(turn)


def entries_svg(spec: PipeSpec) -> str:
    """Entry after entry: its slot, and where the producer waits and the consumer announces."""
    count = 3 * spec.SlotNum
    picture = Picture(f"{spec.SlotNum} slots, one notification for {spec.SyncPeriod}")
    left, top = 128.0, 44.0
    for slot in range(spec.SlotNum):
        y = top + slot * TALL
        picture.text(left - 8, y + 15, f"slot {slot}", fill=SOFT, anchor="end")
        picture.box(left, y, count * CELL, TALL, WELL, stroke=EDGE)
    marks = {
        "producer waits": spec.shouldWaitFree,
        "consumer announces": spec.shouldNotifyFree,
    }
    for entry in range(count):
        x = left + entry * CELL
        y = top + entry % spec.SlotNum * TALL
        colour = COLOURS[entry % len(COLOURS)]
        picture.box(x, y, CELL, TALL, colour, fill_opacity=0.5, rx=3)
        picture.text(x + CELL / 2, y + 15, str(entry), anchor="middle")
    for n, (words, asks) in enumerate(marks.items()):
        y = top + spec.SlotNum * TALL + 20 + n * 18
        picture.text(left - 8, y, words, fill=SOFT, anchor="end")
        for entry in filter(asks, range(count)):
            x = left + (entry + (0 if n == 0 else 1)) * CELL
            picture.raw(
                f'<circle cx="{x:.1f}" cy="{y - 4:.1f}" r="4.5" '
                f'fill="{WRITTEN if n == 0 else READ}"/>'
            )
    return str(picture)


__all__ = ["entries_svg", "ring_svg"]
