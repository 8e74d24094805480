"""Changes made by hand: mistakes that somebody could make, each of which the tests must notice.

(file, function, what stands there, what stands there instead). One whose text is gone is reported:
write it anew against the code as it is.
"""

from __future__ import annotations

BY_HAND: tuple[tuple[str, str, str, str], ...] = (
    # A byte that became undefined still counts as defined.
    ("machine/memory.py", "poison", "self.epoch += 1", "pass"),
    ("machine/memory.py", "clobber", "self.epoch += 1", "pass"),
    ("machine/access.py", "poison", "self.memory.epoch += 1", "pass"),
    ("machine/access.py", "_forget", "self.memory.epoch += 1", "pass"),
    # Transfers of one pipe always complete in order.
    ("machine/queues.py", "overtake", "queue.entries[index]", "queue.entries[index := 0]"),
    # The checker forgets, or knows too much.
    ("machine/clocks.py", "release", "clock[agent] = self.count[agent]", "pass"),
    ("machine/clocks.py", "barrier_all", "everything[agent] = self.count[agent]", "pass"),
    ("machine/hazards.py", "see", "region.reads[agent] = event", "pass"),
    ("machine/hazards.py", "see", "if writes and peer.reads:", "if False:"),
    # What a loop carries is forgotten.
    ("passes/liveness.py", "_extend", "inside[0][1] if inside else here", "here"),
    (
        "passes/liveness.py",
        "live_ranges",
        "inside[0][0] if inside else order.position[op]",
        "order.position[op]",
    ),
)
