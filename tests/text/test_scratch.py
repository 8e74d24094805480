"""Temporaries that a text leaves out are supplied, of a type the rules accept."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ptokit.from_text import load, loads
from ptokit.ir.instructions import Form, literal
from ptokit.ir.printer import print_module
from ptokit.ir.scratch import missing_scratch, scratch_types
from ptokit.isa.targets import TARGETS, Target
from ptokit.passes.levels import ConvertLevel
from ptokit.passes.spell_out import spelled_out
from ptokit.passes.verify import Verify
from tests.text.lines import program
from tests.text.table import asked_by, forms, module_of

TILE = "!pto.tile_buf<vec, 16x64xf32>"
VIEW = "!pto.partition_tensor_view<16x64xf32>"
CASES = [
    pytest.param(form, target, id=f"{form.insn.name}-{target.name}-{len(form.ins)}")
    for form in forms()
    for target in TARGETS.values()
    if target.is_device and target.name in form.insn.targets
    if any(o.role == "tmp" for o in form.ins)
]


@pytest.mark.parametrize(("form", "target"), CASES)
def test_leaving_them_out_breaks_no_rule(form: Form, target: Target) -> None:
    attrs = asked_by(form) | asked_by(form.without_scratch)
    spelled = module_of(form, attrs=attrs, target=target)
    module = module_of(form.without_scratch, attrs=attrs, target=target)
    assert spelled is not None
    assert module is not None
    (op, _) = module.functions[0].walk()
    if not missing_scratch(op):
        pytest.skip("an overload without temporaries")
    # The sample is one of another overload for some forms: then it breaks rules in any case.
    known = {d.code for d in Verify().check(spelled, target)}
    found = [d for d in Verify().check(module, target) if d.code not in known]
    assert not found, found[0].render()


@pytest.mark.parametrize(("form", "target"), CASES)
def test_level2_spells_them_out(form: Form, target: Target) -> None:
    module = module_of(form.without_scratch, is_value=True, target=target)
    assert module is not None
    (op, _) = module.functions[0].walk()
    missing = set(scratch_types(op, target))
    lowered = ConvertLevel("l2").run(module, target)
    made = next(o for o in lowered.walk() if o.insn is form.insn)
    assert missing <= set(made.labels)


def kernel(*lines: str, result: str = "f32") -> str:
    """A kernel on three arrays of 16x64 elements, the last of type `result`."""
    out = VIEW.replace("f32", result)
    body = "\n".join(lines)
    views = "\n".join(
        f"%v{n} = pto.make_tensor_view %{n}, shape = [%r, %w], strides = [%w, %c1] "
        f": !pto.tensor_view<16x64x{e}>\n"
        f"%p{n} = pto.partition_view %v{n}, offsets = [%c0, %c0], sizes = [%r, %w] "
        f": !pto.tensor_view<16x64x{e}> -> !pto.partition_tensor_view<16x64x{e}>"
        for n, e in (("x", "f32"), ("y", "f32"), ("z", result))
    )
    return f"""
func.func @k(%x: !pto.ptr<f32>, %y: !pto.ptr<f32>, %z: !pto.ptr<{result}>) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = arith.constant 16 : index
  %w = arith.constant 64 : index
  {views}
  %a = pto.alloc_tile : {TILE}
  %b = pto.alloc_tile : {TILE}
  %d = pto.alloc_tile : {TILE.replace("f32", result)}
  pto.tload ins(%px : {VIEW}) outs(%a : {TILE})
  pto.tload ins(%py : {VIEW}) outs(%b : {TILE})
  {body}
  pto.tstore ins(%d : {TILE.replace("f32", result)}) outs(%pz : {out})
  return
}}
"""


@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_a_remainder_without_its_temporary_runs(target: str) -> None:
    line = f"pto.trem ins(%a, %b : {TILE}, {TILE}) outs(%d : {TILE})"
    rng = np.random.default_rng(0)
    x, y = rng.uniform(1, 9, (2, 16, 64)).astype("f4")
    z = np.zeros_like(x)
    loads(kernel(line))["k"][1](x, y, z, target=target)
    rest = x - np.floor(x / y) * y  # in f32, step by step, and mended where it is negative
    assert np.array_equal(z, np.where(rest < 0, rest + y, rest))


@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_quantisation_without_its_temporary_runs(target: str) -> None:
    column = "!pto.tile_buf<loc=vec, dtype=f32, rows=16, cols=1, blayout=col_major>"
    whole, part = "!pto.tensor_view<16x1xf32>", "!pto.partition_tensor_view<16x1xf32>"
    result = TILE.replace("f32", "i8")
    text = kernel(
        # One column of adjacent elements reads either way: it takes the layout of its tile.
        f"%vs = pto.make_tensor_view %y, shape = [%r, %c1], strides = [%c1, %c1] : {whole}",
        "%ps = pto.partition_view %vs, offsets = [%c0, %c0], sizes = [%r, %c1] "
        f": {whole} -> {part}",
        f"%s = pto.alloc_tile : {column}",
        f"pto.tload ins(%ps : {part}) outs(%s : {column})",
        f"pto.tquant ins(%a, %s : {TILE}, {column}) outs(%d : {result}) "
        "{quant_type = #pto<quant_type INT8_SYM>}",
        result="i8",
    )
    program = loads(text)
    assert not program.check(target)
    x, y = np.random.default_rng(0).uniform(-9, 9, (2, 16, 64)).astype("f4")
    z = np.zeros((16, 64), "i1")
    program["k"][1](x, y, z, target=target)
    assert np.array_equal(z, np.rint(x * y.reshape(-1)[:16, None]))


def test_a_program_can_be_spelled_out() -> None:
    line = f"pto.trem ins(%a, %b : {TILE}, {TILE}) outs(%d : {TILE})"
    program = loads(kernel(line))
    whole = spelled_out(program.module, program.target())
    (op,) = [o for o in whole.walk() if o.name == "pto.trem"]
    assert set(op.labels) == {"src0", "src1", "tmp", "dst"}
    assert spelled_out(whole, program.target()) is whole
    assert not loads(print_module(whole)).check()


def test_a_number_in_an_attribute_stands_for_an_operand() -> None:
    program = load(Path(__file__).parent / "programs" / "other_tools.pto")
    ops = [o for o in program.module.walk() if o.name == "pto.tgather"]
    offsets = [literal(op, op.insn.operand("offset")) for op in ops if op.insn is not None]
    assert offsets[0] is not None
    assert ["offset" in op.labels for op in ops[:3]] == [False, True, False]
    assert offsets[2] is None  # left out: the numbering starts with 0


WIDE = "!pto.tile_buf<vec, 82x512xi16>"


@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_scratch_that_nobody_touches_takes_no_room(target: str) -> None:
    """Four tiles of 84 KiB: A2/A3, which uses all of them, has room for two."""
    names = ("a", "b", "d", "t")
    lines = "\n".join(f"%{n} = pto.alloc_tile : {WIDE}" for n in names)
    text = f"""func.func @k() attributes {{pto.entry}} {{
    {lines}
    %one = arith.constant 1 : i16
    pto.texpands ins(%one : i16) outs(%a : {WIDE})
    pto.texpands ins(%one : i16) outs(%b : {WIDE})
    pto.txor ins(%a, %b, %t : {WIDE}, {WIDE}, {WIDE}) outs(%d : {WIDE})
    return
    }}"""
    found = [each.code for each in loads(text).check(target)]
    assert found == (["place.overflow"] if target == "a2a3" else [])


@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_scratch_that_nobody_touches_orders_nothing(target: str) -> None:
    """A load into the scratch of an earlier line waits for it only where the line uses it."""
    small = "!pto.tile_buf<vec, 16x64xi16>"
    text = f"""func.func @k(%x: !pto.partition_tensor_view<16x64xi16>) attributes {{pto.entry}} {{
    %a = pto.alloc_tile : {small}
    %d = pto.alloc_tile : {small}
    %t = pto.alloc_tile : {small}
    %one = arith.constant 1 : i16
    pto.texpands ins(%one : i16) outs(%a : {small})
    pto.txor ins(%a, %a, %t : {small}, {small}, {small}) outs(%d : {small})
    pto.tload ins(%x : !pto.partition_tensor_view<16x64xi16>) outs(%t : {small})
    return
    }}"""
    ordered = str(loads(text).convert("l3", target))
    assert ("PIPE_V>, <PIPE_MTE2" in ordered) == (target == "a2a3")


def test_a_transposition_looks_at_its_scratch_on_some_targets_only() -> None:
    line = "pto.ttrans ins({32x16xf16}, {1x16xf16}) outs({16x32xf16})"  # room for one block
    found = {t: loads(program(line)).check(t) for t in ("a2a3", "a5")}
    assert [(d.code, d.severity) for d in found["a2a3"]] == [("TTRANS.tmp-size", "error")]
    assert [(d.code, d.severity) for d in found["a5"]] == [("TTRANS.tmp-size", "warning")]


@pytest.mark.parametrize(("kind", "target"), [("i32", "a2a3"), ("f32", "a2a3"), ("f32", "a5")])
def test_a_placed_text_shows_the_scratch_that_is_used(kind: str, target: str) -> None:
    text = program(f"pto.tpow ins({{1x16x{kind}}}, {{1x16x{kind}}}) outs({{1x16x{kind}}})")
    placed = str(loads(text).convert("l3", target))
    line = next(line for line in placed.splitlines() if "pto.tpow" in line)
    assert line.partition(" : ")[0].count("%") == (3 if (kind, target) == ("f32", "a2a3") else 2)
    assert not [d for d in loads(placed).check(target, 3) if d.severity == "error"]
