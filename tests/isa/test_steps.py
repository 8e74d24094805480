"""What composite instructions order inside, against the specification where it lies at hand."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest

from ptokit.isa import INSTRUCTIONS
from ptokit.isa.effects import Barrier, Flag, Pipe, steps
from ptokit.isa.samples import samples
from ptokit.isa.targets import TARGETS
from tests.isa.specification import FOLDER

MOVES = (
    *("TCVT", "TTRANS", "TFILLPAD", "TFILLPAD_INPLACE", "TFILLPAD_EXPAND", "TEXTRACT", "TINSERT"),
    *("TCONCAT", "TPAIRREDUCESUM", "TSTORE_FP"),
)
# Of TDIVS no fact of a call tells which of its paths goes element by element.
VECTOR = (
    *("TROWSUM", "TROWMAX", "TROWMIN", "TROWPROD", "TROWARGMAX", "TROWARGMIN", "TCOLSUM"),
    *("TCOLMAX", "TCOLMIN", "TCOLPROD", "TCOLARGMAX", "TCOLARGMIN", "TROWEXPAND"),
    *(f"TROWEXPAND{op}" for op in ("ADD", "SUB", "MUL", "DIV", "MAX", "MIN", "EXPDIF")),
    *("TCOLEXPANDEXPDIF", "TANDS", "TORS", "TXOR", "TXORS", "TPRELU", "TSEL", "TSELS", "TCMP"),
    *("TCMPS", "TSHL", "TSHR", "TFMOD", "TFMODS", "TREM", "TREMS", "TPOW", "TPOWS", "TRSQRT"),
    *("TADDDEQRELU", "TPARTADD", "TPARTMUL", "TPARTMAX", "TPARTMIN", "TPARTARGMAX"),
    "TPARTARGMIN",
)


def test_short_notation() -> None:
    short = steps("a2a3 a5", start="V->S", between="V FIX", complete=True, keeps_scratch=True)
    assert short.on == {"a2a3", "a5"}
    assert short.start == (Flag(Pipe.V, Pipe.S, 0),)
    assert short.between == (Barrier(Pipe.V), Barrier(Pipe.FIX))
    assert (short.end, short.result_complete, short.scratch_complete) == ((), True, False)


@pytest.mark.parametrize("name", [*MOVES, *VECTOR, "TDIVS"])
def test_cases_are_decided_by_the_facts(name: str) -> None:
    """Every case can be asked of every legal call of its targets."""
    record = INSTRUCTIONS[name]
    assert record.steps
    for case in record.steps:
        for target in case.on & record.targets:
            for sample in samples(record, TARGETS[target]):
                assert case.when is None or case.when(sample.facts("manual")) in (True, False)


@pytest.mark.parametrize("name", [*MOVES, *VECTOR])
def test_flags_and_completion_are_those_of_the_specification(name: str) -> None:
    yaml = pytest.importorskip("yaml")
    file = FOLDER / "internal-sync.yaml"
    if not file.exists():
        pytest.skip("the specification does not lie beside the checkout")
    flags: dict[str, set[str]] = defaultdict(set)
    ends: dict[str, set[tuple[bool, bool]]] = defaultdict(set)
    scratch: dict[str, list[int]] = defaultdict(list)
    for entry in yaml.safe_load(file.read_text("utf-8"))["entries"]:
        if name in entry["instructions"]:
            for target in entry["target"].split(", "):
                flags[target] |= set(entry.get("flags", ()))
                ends[target].add((entry["result_complete"], entry["scratch_complete"]))
                hidden = entry.get("hidden_scratch", {}).get("address")
                # What is given by words lies inside an operand.
                scratch[target] += [hidden] if isinstance(hidden, int) else []
    for target in flags:
        said = [case for case in INSTRUCTIONS[name].steps if target in case.on]
        effects: list[Any] = [e for c in said for e in (*c.start, *c.between, *c.end)]
        raised = {f"{e.src.name}->{e.dst.name} {e.id}" for e in effects if isinstance(e, Flag)}
        assert raised == flags[target]
        plain = {(False, True)}  # what holds where no case is stated
        assert {(c.result_complete, c.scratch_complete) for c in said} | plain == (
            ends[target] | plain
        )
        assert [c.scratch.address for c in said if c.scratch] == scratch[target]
