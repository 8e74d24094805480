"""Changes made by hand: mistakes that somebody could make, each of which the tests must notice.

(file, function, what stands there, what stands there instead). One whose text is gone is reported:
write it anew against the code as it is.
"""

from __future__ import annotations

BY_HAND: tuple[tuple[str, str, str, str], ...] = (
    # A byte that became undefined still counts as defined.
    ("machine/memory.py", "poison", "self.epoch += 1", "pass"),
    ("machine/access.py", "poison", "self.memory.epoch += 1", "pass"),
    ("machine/access.py", "_forget", "self.memory.epoch += 1", "pass"),
    # Transfers of one pipe always complete in order.
    ("machine/scheduler.py", "_step", "chosen.pipe in self.target.overtaken", "False"),
    # The checker forgets, or knows too much.
    ("machine/clocks.py", "release", "clock[agent] = self.count[agent]", "pass"),
    ("machine/clocks.py", "barrier_all", "all_know[agent] = count[agent]", "pass"),
    (
        "machine/hazards.py",
        "see",
        "region.reads[agent if use.walk is None else ~agent] = event",
        "pass",
    ),
    ("machine/hazards.py", "see", "if writes and peer.reads:", "if False:"),
    # What a loop carries, or a branch yields, is forgotten.
    ("ir/flow.py", "origins", "work += names.get(name, [])", "pass"),
    ("ir/dialects/scf.py", "_flow_of_for", "yield from _edges(inits, op.results)", "pass"),
    (
        "ir/dialects/scf.py",
        "_flow_of_for",
        "yield from _edges(yielded, carried, is_next_round=True)",
        "pass",
    ),
    (
        "ir/dialects/scf.py",
        "_flow_of_while",
        "yield from _edges(_passed_on(after), before.args, is_next_round=True)",
        "pass",
    ),
    (
        "ir/dialects/scf.py",
        "_flow_of_while",
        "yield from _edges(_passed_on(before), op.results)",
        "pass",
    ),
    ("ir/dialects/scf.py", "_flow_of_branches", "in op.regions", "in op.regions[:1]"),
    ("passes/liveness.py", "_extend", "inside[0][1] if inside else here", "here"),
    (
        "passes/liveness.py",
        "live_ranges",
        "inside[0][0] if inside else order.position[op]",
        "order.position[op]",
    ),
    ("passes/carried.py", "_rotate_in", "rounds + 1", "rounds"),
    ("passes/carried.py", "_rotate", "[*args[1:], args[0]] if is_last else args", "args"),
    # Tiles share bytes while both are in use.
    ("passes/place.py", "hole", "first <= dead and last >= born", "first < dead and last >= born"),
    ("passes/place.py", "hole", "size <= start - cursor < best", "0 < start - cursor < best"),
    ("passes/place.py", "hole", "sizes[sizes < size] = _NEVER", "pass"),
    ("passes/place.py", "__init__", "in memory.taken", "in ()"),
    ("passes/place.py", "_place", "_live_together(each, scales)", "pass"),
    # Pipes go on too early.
    ("passes/place_flags.py", "_carried", "after < before", "after <= before"),
    ("passes/place_flags.py", "_span", "min(befores or afters)", "max(befores or afters)"),
    ("passes/place_flags.py", "_carried", "is_tangled = True", "pass"),
    # The proof overlooks something, and flags are left out that are needed.
    ("passes/pending.py", "_set", "if again or flag in state.flags:", "if False:"),
    ("passes/pending.py", "_set", "self._behind(flag.src, state)", "0"),
    ("passes/pending.py", "_wait", "state.issue(bit)", "pass"),
    ("passes/pending.py", "_branch", "ends.append(state.copy())", "pass"),
    ("passes/pending.py", "_loop", "if following == head:", "if True:"),
    ("passes/pending.py", "_compare", "now | earlier << self._width", "now"),
    ("passes/accesses.py", "_touched", "declared.writes or _is_destroyed", "declared.writes and"),
    ("passes/place_flags.py", "_same_pipe", "if meets or wraps:", "if meets:"),
    ("passes/place_flags.py", "_same_pipe", "if meets or wraps:", "if wraps:"),
    ("passes/insert_sync.py", "run", "body.ops.append(barrier_op(Pipe.ALL, end))", "pass"),
    ("passes/storage.py", "meets", "return True", "return False"),
    (
        "passes/fifo_accesses.py",
        "transfer",
        "return (*pop, True) if pop is not None and is_direct else None",
        "return None",
    ),
    # Compiler and checker disagree about the order inside a pipe.
    ("isa/walks.py", "walk_of", "insn.streams and shape in results", "insn.streams"),
    # An engine mixes up what a loop or branch hands on.
    ("engines/fast.py", "_while", "zip(after.args, passed", "zip(after.args, carried"),
    ("engines/fast.py", "_switch", "1 + numbers.index(chosen)", "numbers.index(chosen)"),
)
