"""The file in which an instruction is defined means nothing."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import ptokit
from ptokit import *
from ptokit.frontend.instruction import Instruction
from ptokit.frontend.launch import launch
from ptokit.isa import spec
from ptokit.isa.spec import INSTRUCTIONS, Asm, Insn

FOLDER = Path(ptokit.__file__).parent / "isa"
DEFINING = sorted(
    path
    for path in FOLDER.glob("*.py")
    if path.name != "spec.py" and ("insn(" in path.read_text() or "family(" in path.read_text())
)


class Taken(dict[str, Insn]):
    """A table of its own."""

    def define(self, record: Insn) -> None:
        self[record.name] = record


def elsewhere(text: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Insn]:
    """The records that a text defines when it stands in a module of another name."""
    table, _ = Taken(), dict(INSTRUCTIONS)  # what it imports is to be defined where it belongs
    monkeypatch.setattr(spec, "INSTRUCTIONS", table)
    module = ModuleType("elsewhere")
    monkeypatch.setitem(sys.modules, "elsewhere", module)
    exec(compile(text, "elsewhere.py", "exec"), module.__dict__)
    return table


def said(record: Insn) -> dict[str, Any]:
    """What a record says, apart from the identity of its functions."""
    fields = {f.name: getattr(record, f.name) for f in dataclasses.fields(record)}
    fields["operands"] = [(o.name, o.role, o.kinds) for o in record.operands]
    fields["rules"] = [(r.id, r.text, r.targets) for r in record.rules]
    fields["text_rules"] = [(r.id, r.text, r.targets) for r in record.text_rules]
    fields["types"] = [(t.of, t.allowed, t.ids) for t in record.types]
    fields["attrs"] = [(a.name, a.type.__name__) for a in record.attrs]
    fields["means"] = fields["example"] = fields["more_examples"] = None  # hold functions
    if record.asm is not None:
        fields["asm"] = {
            f.name: _named(getattr(record.asm, f.name)) for f in dataclasses.fields(Asm)
        }
    fields["helpers"] = list(record.helpers)
    fields["steps"], fields["freedom"] = len(record.steps), len(record.freedom)
    return {name: value for name, value in fields.items() if not callable(value)}


def _named(value: Any) -> Any:
    """A value of a field, of functions in it only that they are there."""
    if isinstance(value, dict):
        return {k: _named(v) for k, v in value.items()}
    return "a function" if callable(value) else value


@pytest.mark.parametrize("path", DEFINING, ids=lambda p: p.stem)
def test_a_definition_means_the_same_in_another_file(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, record in elsewhere(path.read_text(), monkeypatch).items():
        assert said(record) == said(INSTRUCTIONS[name])


def test_a_streaming_instruction_streams_from_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neighbours that walk the same bytes are only doubtful on A2/A3, wherever one is defined."""
    table = elsewhere((FOLDER / "tile_scalar.py").read_text(), monkeypatch)
    z = np.zeros((16, 16), np.float32)

    def run(second: Any) -> None:
        tile = Tile[TileType.Vec, float32, 16, 16]()
        TASSIGN(tile, 0)
        TEXPANDS(tile, 1.0)
        second(tile, tile, 2.0)
        PtoSetWaitFlag[PIPE_V, PIPE_MTE3]()
        TSTORE(GlobalTensor(z), tile)

    launch({"vector": lambda: run(Instruction(table["TMULS"]))})
    assert (z == 2).all()
    walks_otherwise = dataclasses.replace(table["TMULS"], streams=False)
    with pytest.raises(ProgramError, match="E8"):
        launch({"vector": lambda: run(Instruction(walks_otherwise))})
