"""Logical vectors in Python: every operation has the result that its text has, on both paths."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ptokit import *
from ptokit import vmi
from ptokit.base.diagnostics import PtoError
from ptokit.from_text import loads
from ptokit.frontend.logical_operations import LogicalOperation, logical_operations
from ptokit.ir.logical import said, vector_of
from ptokit.ir.printer import print_module
from ptokit.ir.types import ScalarType
from ptokit.isa.micro import MICRO, Micro
from ptokit.isa.micro.samples import kinds
from ptokit.micro import *
from tools.compiled import sample_function

PATHS = ["eager", "lowered"]
OPERATIONS = dict(logical_operations(MICRO))


class Writer:
    """Takes operands as they are."""

    def operand(self, given: Any, type_: Any) -> Any:
        return given.value

    def write(self, draft: Any, site: Any) -> Any:
        return draft


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_result_is_of_the_type_that_the_text_says(name: str) -> None:
    record = OPERATIONS[name].record
    for T, U in kinds(record):
        module = loads(sample_function(record, T, U)).module
        (op, *_) = (op for f in module.functions for op in f.body.ops)  # type: ignore[union-attr]
        given: dict[str, Any] = {}
        for label, value in zip(op.labels, op.operands, strict=True):
            given[label] = SimpleNamespace(value=value)
            if isinstance(value.type, ScalarType):
                given.pop(label)
        numbers = [n for n, v in zip(op.labels, op.operands, strict=True) if n not in given]
        words = {key: said(attr) for key, attr in op.attrs.items()}
        words = {k: "true" if v == "unit" else v for k, v in words.items()}
        draft = bracketed(OPERATIONS[name], op).draft(
            Numbered(), given | dict.fromkeys(numbers, 1), words
        )
        assert [seen(t, record) for _, t in draft.results] == [
            seen(v.type, record) for v in op.results
        ]


def seen(type_: Any, record: Micro) -> Any:
    """Lanes and elements: a text may leave the sign out, and name a layout."""
    found = vector_of(type_, record.signless)
    return type_ if found is None else (found.lanes, found.kind)


class Numbered(Writer):
    """Takes numbers as well."""

    def operand(self, given: Any, type_: Any) -> Any:
        return SimpleNamespace(type=type_) if isinstance(given, int) else given.value


def bracketed(operation: LogicalOperation, op: Any) -> LogicalOperation:
    """What the text says of the first result, in brackets."""
    found = vector_of(op.results[0].type, operation.record.signless) if op.results else None
    if found is None:
        return operation
    return operation[found.lanes] if found.kind is None else operation[found.kind, found.lanes]


def squared(v: Any) -> Any:
    return vmi.vmul(v, v)


@kernel
def several(x, out):
    a, b = castptr(0, float32, "ub"), castptr(4096, float32, "ub")
    mte_gm_ub(x, a, 0, 1024, (1, 1024, 1024))
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0)
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0)
    with vecscope():
        for i in range(0, 256, 128):
            v = vmi.vload[128](a, i)
            mask = vmi.create_mask[128](100)
            w = vmi.vadds(squared(v), 1.0, mask, pmode="merge")
            big = vmi.vcmps(v, 3.0, mask, cmp="gt")
            vmi.vstore(vmi.vsel(big, vmi.vbrc[float32, 128](7.0), w), b, i)
            narrow = vmi.vcvt[half](v, rounding="R", saturate="SAT")
            vmi.vstore(vmi.vcvt[float32](narrow), b, i + 256, mask=vmi.create_mask[128](128))
            vmi.vstore(vmi.vcadd(v, mask, group=8, reassoc=True), b, i // 16 + 512)
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0)
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0)
    mte_ub_gm(b, out, 2112, (1, 2112, 2112))


@pytest.mark.parametrize("path", PATHS)
def test_a_scope_of_logical_vectors(path: str) -> None:
    x, out = np.arange(-128, 128, dtype=np.float32), np.zeros(528, np.float32)
    several[1](x, out, target="a5", path=path)
    active = np.tile(np.arange(128) < 100, 2)
    wanted = np.where(active & (x > 3), 7, np.where(active, x * x + 1, x * x))
    assert np.array_equal(out[:256], wanted)
    assert np.array_equal(out[256:512], x)
    assert np.array_equal(out[512:], np.where(active, x, 0).reshape(16, 16).sum(axis=1))


def test_it_is_text_and_back() -> None:
    x, out = np.zeros(256, np.float32), np.zeros(528, np.float32)
    text = print_module(several.lower(x, out, target="a5"))
    assert "pto.vmi.vload %" in text
    assert str(loads(str(loads(text)))) == str(loads(text))


@kernel
def no_lanes(x):
    with vecscope():
        vmi.create_mask(3)


@kernel
def no_element(x):
    with vecscope():
        vmi.vbrc[64](1.0)


@kernel
def other_lanes(x):
    with vecscope():
        vmi.vadd(vmi.vbrc[float32, 64](1.0), vmi.vbrc[float32, 32](1.0))


@kernel
def register_and_vector(x):
    with vecscope():
        vmi.vabs(vbr[float32](1.0))


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    ("program", "words"),
    [
        (no_lanes, "how many lanes"),
        (no_element, "element type|type of its lanes"),
        (other_lanes, "as many lanes"),
        (register_and_vector, "a of vabs is a vector register"),
    ],
    ids=["no lanes", "no element", "other lanes", "a register"],
)
def test_both_paths_refuse_the_same(path: str, program: Any, words: str) -> None:
    with pytest.raises(PtoError, match=words) as told:
        program[1](np.zeros(64, np.float32), target="a5", path=path)
    assert set(told.value.codes) == {"micro-type"}


def test_most_operations_have_a_form() -> None:
    """Lists of elements, parts of one name and what only a compiler writes have none."""
    every = {r.name for r in MICRO.values() if r.is_logical}
    without = every - {each.record.name for each in OPERATIONS.values()}
    assert without == {
        f"vmi.{name}"
        for name in (
            *("constant", "constant_mask", "shuffle", "channel_split", "channel_merge"),
            *("unpack", "pack", "ensure_mask_layout", "ensure_mask_granularity"),
        )
    }
