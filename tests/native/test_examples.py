"""Examples as C++ and back as text: the same bytes and findings each time."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ptokit import cpp, loads
from tests.native.support import needs_compiler

pytestmark = [needs_compiler, pytest.mark.filterwarnings("ignore")]
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
# File, case, target, and how many times the loads of the text may be written out.
CASES = [
    ("vector_add", "vector add, manual", "a2a3", 2),
    ("softmax_manual", "softmax, manual, two blocks", "a5", 8),
    ("gelu", "gelu, four blocks", "a2a3", 1),
    ("conv", "convolution, stride 1", "a2a3", 3),
    ("mx_matmul", "MX fp8 matmul, manual", "a5", 16),
    ("fifo", "cube_to_vector C2V LEFT_RIGHT x2", "a2a3", 2),
    ("fifo", "slots_to_cube V2C_GM LEFT_RIGHT x3", "a5", 4),
    ("flash_attention_cluster", "flash attention, cluster", "a2a3", 8),
]


@pytest.mark.parametrize(("file", "name", "target", "most"), CASES)
def test_the_text_of_an_example_as_cpp(
    file: str, name: str, target: str, most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    case = next(each for each in import_module(file).CASES if each.name == name)

    def arguments() -> list[Any]:
        return list(case.inputs(np.random.default_rng(7)))

    path = tmp_path / f"{file}.cpp"
    path.write_text(case.kernel.cpp(*arguments(), target=target, **case.consts))
    kernel = cpp(path, target=target)[case.kernel.name]
    signals = [np.zeros(64, np.uint64)] * (len(kernel.source.signature) - len(arguments()))
    text = kernel.text(*signals, *arguments(), grid=case.blocks)
    again = loads(text)
    assert str(again) == text
    assert text.count("pto.tload ") <= most
    seen: list[tuple[list[bytes], set[str]]] = []
    for each in (kernel, again.entry()):
        given = arguments()
        run = each[case.blocks](*signals, *given)
        seen.append(([np.asarray(a).tobytes() for a in given], {d.code for d in run.warnings}))
    given = arguments()
    run = case.kernel[case.blocks](*given, target=target, path="lowered", **case.consts)
    wanted = [np.asarray(a).tobytes() for a in given], {d.code for d in run.warnings}
    assert seen == [wanted, wanted]
    sys.modules.pop(file, None)
