"""Rules of micro-operations and scopes that the verifier states."""

from __future__ import annotations

import re

import numpy as np
import pytest

from ptokit.base.diagnostics import PtoWarning
from ptokit.from_text import loads
from tests.micro.programs import mask, numbers, register, run, scope

V, M = register("f32"), mask("f32")
ALL = f'%m = pto.pset_b32 "PAT_ALL" : {M}\n'
ONE = f"%v = pto.vbr %k : f32 -> {V}\n"


def told(body: str, params: str = "%k: f32, %n: i32, %p: !pto.ptr<f32, ub>", kind: str = "") -> str:
    """The codes that a function with a body is told on a5."""
    more = f", pto.kernel_kind = #pto.kernel_kind<{kind}>" if kind else ""
    text = f"func.func @f({params}) attributes {{pto.kernel{more}}} {{\n{body}\nreturn\n}}"
    return " ".join(d.code for d in loads(text).check("a5"))


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (ALL + ONE + f"%w = pto.vnot %v, %m : {V}, {M} -> {V}", "micro-type"),  # no bits of floats
        (ALL + ONE + f"%w = pto.vexp %v, %m : {V}, {M} -> {V}", ""),
        (ALL + ONE + f"%w = pto.vadds %v, %n, %m : {V}, i32, {M} -> {V}", "micro-type"),
        (ALL + ONE + f"%w = pto.vadds %v, %k, %m : {V}, f32, {M} -> {V}", ""),
        (ALL + ONE + f"%w = pto.vcvt %v, %m {{part = \"P7\"}} : {V}, {M} -> {register('f16')}",
         "micro-word"),
        (ALL + ONE + f"%w = pto.vcvt %v, %m : {V}, {M} -> {register('i8')}", "micro-type"),
        ('%m = pto.pset_b32 "PAT_ALL" : !pto.mask<b16>', "micro-type"),
        ('pto.mem_bar "VST_ALL"', "micro-word"),
        ('pto.mem_bar "VV_ALL"', ""),
    ],
)  # fmt: skip
def test_types_and_words_are_those_of_the_record(body: str, code: str) -> None:
    assert told(f"pto.vecscope {{\n{body}\n}}", "%k: f32, %n: i32") == code


@pytest.mark.parametrize(
    ("kinds", "part", "code"),
    [
        (("f32", "f16"), "EVEN", ""),
        (("f32", "f16"), "P1", "micro-type"),
        (("ui32", "ui8"), "P3", ""),
        (("ui32", "ui8"), "EVEN", "micro-type"),
        (("f32", "i32"), "EVEN", "micro-type"),  # as wide: no place is shared
    ],
)
def test_parts_are_those_that_share_a_place(kinds: tuple[str, str], part: str, code: str) -> None:
    source, result = (register(kind) for kind in kinds)
    body = f"{ALL}%v = pto.vbr %k : {kinds[0]} -> {source}\n"
    body += f'%w = pto.vcvt %v, %m {{part = "{part}"}} : {source}, {M} -> {result}'
    assert told(f"pto.vecscope {{\n{body}\n}}", f"%k: {kinds[0]}") == code


@pytest.mark.parametrize(("moved", "code"), [("f32", ""), ("i32", "micro-type")])
def test_a_pointer_that_is_moved_on_keeps_its_type(moved: str, code: str) -> None:
    line = f"%v, %q = pto.vlds %p[%c] : !pto.ptr<f32, ub> -> {V}, !pto.ptr<{moved}, ub>"
    body = f"%c = arith.constant 0 : index\npto.vecscope {{\n{line}\n}}"
    assert told(body) == code


@pytest.mark.parametrize(
    ("left", "right", "clause", "code"),
    [
        ("f16", "f32", "", ""),
        ("f16", "f32", " sat", ""),
        ("i8", "i32", " sat", "micro-type"),
        ("f32", "f32", " tf32_mode(round_even)", ""),
        ("f16", "f32", " tf32_mode(round_even)", "micro-type"),
    ],
)
def test_clauses_of_products(left: str, right: str, clause: str, code: str) -> None:
    a, b, c = (f"!pto.ptr<{k}, {s}>" for k, s in ((left, "l0a"), (left, "l0b"), (right, "l0c")))
    line = f"pto.mad %a, %b, %c, %n, %n, %n{clause} : {a}, {b}, {c}, i64, i64, i64"
    assert told(line, f"%a: {a}, %b: {b}, %c: {c}, %n: i64", "cube") == code


@pytest.mark.parametrize(
    ("kind", "clause", "code"),
    [
        ("f32", "nz2nd", ""),
        ("f32", "nz2nz", ""),
        ("f16", "nz2nz", "micro-type"),
        ("f32", "nz2dn", "micro-type"),
        ("f16", "pre_quant(%q, mode = f32_f16), nz2nd", ""),
        ("f16", "pre_quant(%q, mode = f32_bf16), nz2nd", "micro-type"),
    ],
)
def test_clauses_of_what_leaves_an_accumulator(kind: str, clause: str, code: str) -> None:
    src, dst = "!pto.ptr<f32, l0c>", f"!pto.ptr<{kind}, gm>"
    more = ", f32" if "%q" in clause else ""
    line = f"pto.mte_l0c_gm %s, %d, %n, %n, %n, %n, %n, %n, {clause} : {src}, {dst}"
    line += f", i64, i64, i64, i64, i64, i64{more}"
    assert told(line, f"%s: {src}, %d: {dst}, %n: i64, %q: f32", "cube") == code


@pytest.mark.parametrize(
    ("clause", "code"),
    [
        ("pre_quant(%q, mode = qf322f32_pre_scalar), nz2nd", ""),
        ("pre_quant(%t, mode = qf322f32_pre_scalar), nz2nd", "micro-type"),
        ("pre_quant(%q, mode = qf322f32_pre_vec), nz2nd", "micro-type"),
        ("pre_quant(%t, mode = qf322f32_pre_vec), nz2nd", ""),
        ("pre_relu(%q, mode = scalar_relu), nz2nd", ""),
        ("pre_relu(%t, mode = scalar_relu), nz2nd", "micro-type"),
        ("pre_relu(%q, mode = vector_relu), nz2nd", "micro-type"),
        ("unit_flag(check_only), nz2dn(%one)", ""),
        ("unit_flag(check_only), nz2dn(%two)", "micro-type"),
        ("unit_flag(check_only), nz2dn(%n)", ""),  # nobody knows
        ("nz2dn(%two)", ""),
    ],
)
def test_clauses_take_a_table_or_a_number(clause: str, code: str) -> None:
    src, dst, table = "!pto.ptr<f32, l0c>", "!pto.ptr<f32, gm>", "!pto.ptr<f32, fb>"
    kinds = {"%q": "f32", "%t": table, "%n": "i64", "%one": "i64", "%two": "i64"}
    more = "".join(f", {kind}" for name, kind in kinds.items() if re.search(rf"\({name}\b", clause))
    line = "%one = arith.constant 1 : i64\n%two = arith.constant 2 : i64\n"
    line += f"pto.mte_l0c_gm %s, %d, %n, %n, %n, %n, %n, %n, {clause} : {src}, {dst}"
    line += f", i64, i64, i64, i64, i64, i64{more}"
    assert told(line, f"%s: {src}, %d: {dst}, %n: i64, %q: f32, %t: {table}", "cube") == code


RAW = ["m_start", "k_start", "m_step", "k_step", "src_stride", "dst_stride"]


@pytest.mark.parametrize(
    ("name", "number", "code"),
    [
        ("m_start", -1, "micro-type"),
        ("m_start", 0, ""),
        ("k_start", 65535, ""),
        ("k_start", 65536, "micro-type"),
        ("m_step", 0, "micro-type"),
        ("k_step", 255, ""),
        ("k_step", 256, "micro-type"),
        ("src_stride", 0, "micro-type"),
        ("dst_stride", 65536, "micro-type"),
    ],
)
@pytest.mark.parametrize("end", ["", "_s4"])
def test_numbers_of_raw_loads_fit_their_fields(end: str, name: str, number: int, code: str) -> None:
    kind = "!pto.f4E2M1x2" if end else "f16"
    types = f"!pto.ptr<{kind}, l1>, !pto.ptr<{kind}, l0a>"
    given = ", ".join("%n" if each == name else "%one" for each in RAW) + ", %one" * bool(end)
    line = f"%n = arith.constant {number} : i64\n%one = arith.constant 1 : i64\n"
    line += f"pto.load_cbuf_to_ca{end} %a, %b, {given} : {types}" + ", i64" * (6 + bool(end))
    params = f"%a: !pto.ptr<{kind}, l1>, %b: !pto.ptr<{kind}, l0a>"
    assert told(line, params, "cube") == code


@pytest.mark.parametrize(
    ("end", "source", "result", "code"),
    [
        ("", "f16", "f16", ""),
        ("", "!pto.f4E2M1x2", "!pto.f4E2M1x2", "micro-type"),
        ("_s4", "i8", "i8", "micro-type"),
        ("_s4", "!pto.f4E2M1x2", "!pto.f4E1M2x2", "micro-type"),
    ],
)
def test_pairs_of_4_bit_floats_have_a_raw_load_of_their_own(
    end: str, source: str, result: str, code: str
) -> None:
    a, b = f"!pto.ptr<{source}, l1>", f"!pto.ptr<{result}, l0a>"
    given = ", ".join(["%one"] * (6 + bool(end)))
    line = "%one = arith.constant 1 : i64\n"
    line += f"pto.load_cbuf_to_ca{end} %a, %b, {given} : {a}, {b}" + ", i64" * (6 + bool(end))
    assert told(line, f"%a: {a}, %b: {b}", "cube") == code


@pytest.mark.parametrize(("at", "to", "code"), [(32, 16, ""), (16, 16, "vector-alignment"),
                                                (32, 8, "vector-alignment")])  # fmt: skip
def test_scales_lie_at_whole_blocks(at: int, to: int, code: str) -> None:
    a, b = "!pto.ptr<i8, l1>", "!pto.ptr<i8, l0a>"
    line = (
        f"%at = arith.constant {at} : i64\n%to = arith.constant {to} : i64\n"
        f"%a = pto.castptr %at : i64 -> {a}\n%b = pto.castptr %to : i64 -> {b}\n"
        f"pto.mte_l1_l0a_mx %a, %b, %at, %at : {a}, {b}, i64, i64"
    )
    assert told(line, "", "cube") == code


@pytest.mark.parametrize(
    ("lanes", "counts", "code"),
    [
        ("si32", "si32", ""),
        ("ui32", "si32", ""),
        ("ui32", "ui32", ""),
        ("si32", "ui32", "micro-type"),
    ],
)
def test_counts_of_shifts_are_signed(lanes: str, counts: str, code: str) -> None:
    a, b = f"!pto.vreg<64x{lanes}>", f"!pto.vreg<64x{counts}>"
    body = f"{ALL}%a = pto.vbr %k : {lanes} -> {a}\n%b = pto.vbr %n : {counts} -> {b}\n"
    body += f"%w = pto.vshl %a, %b, %m : {a}, {b}, {M} -> {a}"
    assert told(f"pto.vecscope {{\n{body}\n}}", f"%k: {lanes}, %n: {counts}") == code


@pytest.mark.parametrize(("kind", "code"), [("i32", ""), ("i16", "micro-type")])
def test_single_elements_have_the_type_of_the_pointer(kind: str, code: str) -> None:
    line = f"%c = arith.constant 0 : index\n%v = pto.ld_dev %p[%c] : !pto.ptr<i32> -> {kind}"
    assert told(line, "%p: !pto.ptr<i32>") == code


def test_functions_of_threads_are_refused_by_name() -> None:
    text = "func.func @f(%k: f32) attributes {pto.simt_entry} {\nreturn\n}"
    (found,) = loads(text).check("a5")
    assert found.code == "not-supported"
    assert "pto.simt_entry" in found.message


def test_a_mask_of_numbers_is_made_again_in_every_scope() -> None:
    """Made once beside scopes, and used in two of them: written out or not."""
    inner = str(scope(ALL, "x:f32", "f32")).replace(ALL.strip(), "BODY")
    start = inner.index("pto.vecscope")
    stop = inner.index("}", start) + 1
    store = f"pto.vsts %v, %out[%c0], %m : {V}, !pto.ptr<f32, ub>, {M}"
    again = f"%w = pto.vadd %z, %z, %m : {V}, {V}, {M} -> {V}\n"
    again += f"pto.vsts %w, %out[%c0], %m : {V}, !pto.ptr<f32, ub>, {M}"
    load = "pto.vlds {}[%c0] : !pto.ptr<f32, ub> -> " + V
    text = (
        f"{ALL}pto.vecscope {{\n%v = {load.format('%x')}\n{store}\n}}\npto.barrier <PIPE_V>\n"
        f"pto.vecscope {{\n%z = {load.format('%out')}\n{again}\n}}"
    )
    x, out = numbers("f32"), np.zeros(64, np.float32)
    run(loads(inner[:start] + text + inner[stop:]), x, out=out)
    assert (out == 2 * x).all()


def test_what_is_promised_of_overflows_is_read() -> None:
    text = "func.func @f(%a: index) {\n%b = arith.addi %a, %a overflow<nsw, nuw> : index\nreturn\n}"
    assert "arith.addi %a, %a : index" in str(loads(text))


def test_a_packed_store_counts_the_slots_of_its_pattern() -> None:
    half = f"%h = pto.vbr %k : f16 -> {register('f16')}\n"
    store = 'pto.vsts %h, %u[%c], %m {{dist = "PK_B32"}} : {0}, !pto.ptr<f16, ub>, {1}'
    front = "%c = arith.constant 0 : index\n%z = arith.constant 0 : i64\n"
    front += "%u = pto.castptr %z : i64 -> !pto.ptr<f16, ub>\n"
    for width, code in (("32", ""), ("16", "micro-type")):
        made = f'%m = pto.pset_b{width} "PAT_ALL" : !pto.mask<b{width}>\n'
        line = store.format(register("f16"), f"!pto.mask<b{width}>")
        assert told(f"{front}pto.vecscope {{\n{half}{made}{line}\n}}", "%k: f16") == code


def test_scopes_do_not_nest_and_hold_no_instructions() -> None:
    assert told(f"pto.vecscope {{\npto.vecscope {{\n{ALL}}}\n}}") == "scope-inside"
    assert told(f"pto.vecscope {{\n{ALL}pto.barrier <PIPE_V>\n}}") == "scope-inside"


def test_a_strict_scope_uses_only_what_it_is_handed() -> None:
    inside = f"^bb0(%a: f32):\n{ALL}%v = pto.vbr %k : f32 -> {V}\n"
    front = "%k = arith.constant 1.0 : f32\n"
    text = f"{front}pto.strict_vecscope(%k) {{\n{inside}}} : (f32) -> ()"
    assert told(text, "") == "scope-border"
    assert told(text.replace("pto.vbr %k", "pto.vbr %a"), "") == ""


def test_a_cube_kernel_has_no_vector_registers() -> None:
    assert told(f"pto.vecscope {{\n{ALL}}}", "", "cube") == "micro-space"
    assert told(f"pto.vecscope {{\n{ALL}}}", "", "vector") == ""


def test_vector_code_by_itself_is_a_scope_as_far_as_it_goes() -> None:
    """Between two runs a flag ends the first; numbers between them are computed in front."""
    text = str(scope(ALL, "x:f32", "f32"))
    start = text.index("pto.vecscope")
    bare = (
        f"{ALL}%v = pto.vlds %x[%c0] : !pto.ptr<f32, ub> -> {V}\n%c64 = arith.constant 64 : index\n"
        f"scf.for %i = %c0 to %c64 step %c64 {{\n%w = pto.vneg %v, %m : {V}, {M} -> {V}\n"
        f"pto.vsts %w, %out[%i], %m : {V}, !pto.ptr<f32, ub>, {M}\n}}\n"
        "%unused = arith.addi %c64, %c64 : index"
    )
    program = loads(text[:start] + bare + text[text.index("}", start) + 1 :])
    assert "vecscope" not in str(program)
    x, out = numbers("f32"), np.zeros(64, np.float32)
    run(program, x, out=out)
    assert (out == -x).all()


def test_a_function_that_is_handed_registers_is_a_part_of_the_scope() -> None:
    body = (
        f"{ALL}%v = pto.vlds %x[%c0] : !pto.ptr<f32, ub> -> {V}\n"
        f"%y = func.call @twice(%v, %m) : ({V}, {M}) -> {V}\n"
        f"pto.vsts %y, %out[%c0], %m : {V}, !pto.ptr<f32, ub>, {M}"
    )
    helper = (
        f"func.func private @twice(%v: {V}, %m: {M}) -> {V} {{\n"
        f"%w = pto.vadd %v, %v, %m : {V}, {V}, {M} -> {V}\nreturn %w : {V}\n}}\n"
    )
    inner = str(scope(ALL, "x:f32", "f32")).replace(ALL.strip(), "BODY")
    start, stop = inner.index("BODY"), inner.index("BODY") + 4
    program = loads(helper + inner[:start] + body + inner[stop:])
    x, out = numbers("f32"), np.zeros(64, np.float32)
    run(program, x, out=out)
    assert (out == 2 * x).all()


@pytest.mark.parametrize("line", ["pto.simt_launch %k", "pto.vmi.unknown %k", "pto.ub.vadd %k"])
def test_other_levels_are_refused_by_name(line: str) -> None:
    with pytest.raises(Exception, match="micro-instruction of"):
        loads(f"func.func @f(%k: f32) {{\n{line}\nreturn\n}}")


def test_results_may_go_without_names() -> None:
    made = loads(
        "func.func @f(%n: i32, %a: index) {\n"
        "scf.for %i = %a to %a step %a iter_args(%k = %n) -> (i32) {\n"
        "scf.yield %k : i32\n}\nreturn\n}"
    )
    assert str(loads(str(made))) == str(made)


SIGNALS = """func.func @f() attributes {pto.kernel} {
  pto.section.cube {
    pto.sync.set <PIPE_FIX>, 1
    pto.sync.set <PIPE_FIX>, 17
  }
  pto.section.vector {
    pto.sync.wait <PIPE_V>, 1
  }
  return
}"""


def test_an_id_that_only_flags_between_two_cores_have_tells_an_older_text() -> None:
    program = loads(SIGNALS)
    assert {(d.code, d.severity) for d in program.check("a5")} == {("older-signal", "warning")}
    with pytest.warns(PtoWarning, match="older-signal"):
        program["f"][1](target="a5")
    today = loads(SIGNALS.replace("    pto.sync.set <PIPE_FIX>, 17\n", ""))
    assert not today.check("a5")
    alone = loads(SIGNALS.replace("<PIPE_FIX>, 1\n", "<PIPE_FIX>, 2\n").replace("V>, 1", "V>, 2"))
    assert {d.code for d in alone.check("a5")} == {"E4"}


def test_a_vector_core_has_sixteen_flags() -> None:
    """What the cube core gives vector core 1 as 17, that core may call 1 or 17."""
    text = """func.func @f() attributes {pto.kernel} {
      %one = arith.constant 1 : i64
      pto.section.cube {
        pto.set_intra_block <PIPE_FIX>, 17
        pto.wait_intra_block <PIPE_FIX>, 18
      }
      pto.section.vector {
        %s = pto.get_subblock_idx
        %is = arith.cmpi eq, %s, %one : i64
        scf.if %is {
          pto.wait_intra_block <PIPE_V>, ID
          pto.set_intra_block <PIPE_V>, ID
        }
      }
      return
    }"""
    for id_ in (1, 17):
        waits = text.replace("PIPE_FIX>, 18", "PIPE_FIX>, 17").replace("ID", str(id_))
        loads(waits)["f"][1](target="a5")
