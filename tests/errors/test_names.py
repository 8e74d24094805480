"""Messages write pipes and events as programs do."""

from __future__ import annotations

import re
from itertools import product

import pytest

from ptokit.isa import INSTRUCTIONS
from ptokit.isa.effects import Pipe
from ptokit.isa.facts import Ops, ScalarFacts
from ptokit.isa.samples import samples
from ptokit.isa.spec import Insn
from ptokit.isa.targets import TARGETS
from ptokit.isa.verify import verify

NAMED = [i for i in INSTRUCTIONS.values() if any("pipe" in o.kinds for o in i.operands)]


@pytest.mark.parametrize("insn", NAMED, ids=str)
def test_pipes_and_events_have_names(insn: Insn) -> None:
    """Also where the program gave their numbers, and in the advice."""
    told = 0
    pipes = [o.name for o in insn.operands if "pipe" in o.kinds]
    events = [o.name for o in insn.operands if "event" in o.kinds]
    for target in (t for name, t in TARGETS.items() if name in insn.targets):
        legal = next(samples(insn, target)).facts("manual")
        for chosen in product((*map(int, Pipe), 8, 19), repeat=len(pipes)):
            given = dict(zip(pipes, chosen, strict=True)) | dict.fromkeys(events, 19)
            numbers = {name: ScalarFacts(None, value) for name, value in given.items()}
            for found in verify(
                insn, Ops({**dict(legal), **numbers}, legal.attrs, target, "manual")
            ):
                got = {name: value for name, value in found.got if name in pipes}
                assert all(v.startswith("PIPE_") == (given[n] < 8) for n, v in got.items())
                assert not re.search(rf"({'|'.join(pipes)}) = \d", found.fix)
                assert not re.search(r"event_id = \d", found.fix)
                assert found.fix
                told += 1
    assert told or not insn.rules


FLAGS = ["sync_set", "sync_wait", "set_cross_block", "wait_cross_block"]


@pytest.mark.parametrize("name", FLAGS)
def test_flags_between_cores_have_none(name: str) -> None:
    """Texts write their numbers, of which there are more than events have names."""
    insn = INSTRUCTIONS[name]
    for target in (TARGETS[device] for device in insn.targets):
        legal = next(samples(insn, target)).facts("manual")
        for given, nearest in ((-1, 0), (16, 15)):
            changed = {**dict(legal), "event_id": ScalarFacts(None, given)}
            (found,) = verify(insn, Ops(changed, legal.attrs, target, "manual"))
            assert dict(found.got)["event_id"] == str(given)
            assert found.fix == f"event_id = {nearest}"
