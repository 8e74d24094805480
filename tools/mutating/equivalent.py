"""Changes that change nothing a program could see: the key of the change, and the reason."""

from __future__ import annotations

EQUIVALENT: dict[str, str] = {
    "machine/flags.py:Clock._adopt: time > self.get(agent, 0) -> time >= self.get(agent, 0)": (
        "what is written again is the time that stands there"
    ),
    "machine/hazards.py:HazardLog.see: complete(other, 0) < time > learnt(other, 0) -> "
    "complete(other, 0) <= time > learnt(other, 0)": (
        "what is not seen at once to be clear is judged, and found to be"
    ),
}
