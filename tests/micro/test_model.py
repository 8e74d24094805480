"""The model of scopes, rule by rule: each sentence beside a program that keeps or breaks it.

`pytest tests/micro/test_model.py -v` prints the list. What a sentence says of values is tested
operation by operation (test_every_operation.py), of transfers in test_cube.py and test_raw.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ptokit.base.diagnostics import Diagnostic, PtoError
from ptokit.from_text import loads
from ptokit.isa.freedom import Openness
from ptokit.isa.micro import MICRO
from tests.micro.programs import mask, register, run, scope

V, M, INDICES = register("f32"), mask("f32"), register("u32")
UB = "!pto.ptr<f32, ub>"
PAGES = Path(__file__).parents[2] / "docs/isa/micro"
ALL = f'%m = pto.pset_b32 "PAT_ALL" : {M}\n'
LOAD = f"%v = pto.vlds %x[%c0] : {UB} -> {V}\n"
NEGATE = f"%w = pto.vneg %v, %m : {V}, {M} -> {V}\n"


def store(name: str, to: str = "out", at: str = "%c0", by: str = "%m") -> str:
    return f"pto.vsts %{name}, %{to}[{at}], {by} : {V}, {UB}, {M}\n"


# ---- the verifier --------------------------------------------------------------------------------

FRONT = f"""%c0 = arith.constant 0 : index
%c1 = arith.constant 1 : index
%k0 = arith.constant 0 : i64
%f = arith.constant 1.0 : f32
%yes = arith.constant true
%x = pto.castptr %k0 : i64 -> {UB}
%g = pto.castptr %k0 : i64 -> !pto.ptr<f32, l1>
"""
ONE = f"%v = pto.vbr %f : f32 -> {V}\n"
TILE = (
    "!pto.tile_buf<loc=vec, dtype=f32, rows=1, cols=64, v_row=1, v_col=64, blayout=row_major, "
    "slayout=none_box, fractal=512, pad=0>"
)


def inside(body: str) -> str:
    return f"pto.vecscope {{\n{body}}}\n"


VERIFIED = [  # what is said, a body, and the code under which it is refused ("": it is accepted)
    ("vector, mask and stream values live in a scope", inside(ALL + ONE + NEGATE), ""),
    (
        "a register never leaves its scope",
        inside(ONE) + inside(ALL + NEGATE),
        "undefined-value",
    ),
    (
        "nor comes one in that was loaded before",
        LOAD + inside(ALL + NEGATE),
        "scope-border",
    ),
    (
        "a mask never leaves its scope",
        inside(ALL) + inside(ONE + NEGATE),
        "undefined-value",
    ),
    (
        "a stream never leaves its scope",
        inside("%s = pto.init_align : !pto.align\n")
        + inside(f"pto.vstas %s, %x, %c0 : !pto.align, {UB}, index\n"),
        "undefined-value",
    ),
    ("no scope stands in a scope", inside(inside(ALL)), "scope-inside"),
    (
        "no DMA stands in a scope",
        inside(
            f"pto.mte_ub_ub %x, %x, %k0 nburst(%k0, %k0, %k0) : {UB}, {UB}, i64, i64, i64, i64\n"
        ),
        "scope-inside",
    ),
    (
        "no flag stands in a scope",
        inside("pto.set_flag[<PIPE_V>, <PIPE_S>, <EVENT_ID0>]\n"),
        "scope-inside",
    ),
    ("no barrier stands in a scope", inside("pto.barrier <PIPE_V>\n"), "scope-inside"),
    (
        "no tile operation stands in a scope",
        f"%t = pto.alloc_tile : {TILE}\n"
        + inside(f"pto.tneg ins(%t : {TILE}) outs(%t : {TILE})\n"),
        "scope-inside",
    ),
    (
        "vbitsort stands beside scopes",
        inside(f"pto.vbitsort %x, %x, %i, %c0 : {UB}, {UB}, !pto.ptr<ui32, ub>, index\n"),
        "scope-inside",
    ),
    (
        "loops and branches over numbers stand in a scope",
        inside(f"scf.for %n = %c0 to %c1 step %c1 {{\nscf.if %yes {{\n{ALL}}}\n}}\n"),
        "",
    ),
    (
        "a mask is no condition",
        inside(f"{ALL}scf.if %m {{\n{ONE}}}\n"),
        "type-mismatch",
    ),
    (
        "scalar accesses stand in a scope",
        inside(
            f"%n = pto.load_scalar %x[%c0] : {UB} -> f32\n"
            f"pto.store_scalar %n, %x[%c0] : {UB}, f32\n"
        ),
        "",
    ),
    (
        "a strict scope is handed what it uses",
        f"pto.strict_vecscope(%f) {{\n^bb0(%a: f32):\n{ONE}}} : (f32) -> ()\n",
        "scope-border",
    ),
    (
        "a register is 256 bytes",
        inside("%v = pto.vbr %f : f32 -> !pto.vreg<32xf32>\n"),
        "unknown-type",
    ),
    (
        "a mask has a bit for each lane of the register beside it",
        inside(f'%m = pto.pset_b16 "PAT_ALL" : !pto.mask<b16>\n{ONE}').replace(
            "}\n", f"%w = pto.vneg %v, %m : {V}, !pto.mask<b16> -> {V}\n}}\n"
        ),
        "micro-type",
    ),
    (
        "a mask of 64-bit lanes is one of 32-bit lanes",
        inside(
            f"{ALL}%a = pto.vlds %q[%c0] : !pto.ptr<i64, ub> -> !pto.vreg<32xi64>\n"
            f"pto.vsts %a, %q[%c0], %m : !pto.vreg<32xi64>, !pto.ptr<i64, ub>, {M}\n"
        ),
        "",
    ),
    (
        "castptr changes the element type freely",
        f"%p = pto.castptr %x : {UB} -> !pto.ptr<i8, ub>\n",
        "",
    ),
    (
        "castptr stays in its memory",
        f"%p = pto.castptr %x : {UB} -> !pto.ptr<f32, l1>\n",
        "micro-space",
    ),
    (
        "the older names of memories are read",
        "%p = pto.castptr %k0 : i64 -> !pto.ptr<f32, vec>\n",
        "",
    ),
]
MORE = """%q = pto.castptr %k0 : i64 -> !pto.ptr<i64, ub>
%i = pto.castptr %k0 : i64 -> !pto.ptr<ui32, ub>
"""


def codes(body: str) -> set[str]:
    text = f"func.func @f() attributes {{pto.kernel}} {{\n{FRONT}{MORE}{body}return\n}}"
    try:
        return {d.code for d in loads(text).check("a5")}
    except PtoError as error:
        return set(error.codes)


@pytest.mark.parametrize(
    ("body", "code"), [case[1:] for case in VERIFIED], ids=[case[0] for case in VERIFIED]
)
def test_the_verifier(body: str, code: str) -> None:
    assert codes(body) == ({code} if code else set())


@pytest.mark.parametrize(
    ("kind", "space", "code"),
    [
        ("vector", "ub", ""),
        ("vector", "l1", ""),
        ("vector", "l0a", "micro-space"),
        ("vector", "l0c", "micro-space"),
        ("cube", "l0a", ""),
        ("cube", "l0b", ""),
        ("cube", "bt", ""),
        ("cube", "fb", ""),
        ("cube", "ub", ""),
    ],
)
def test_the_kind_of_a_kernel_decides_which_memories_it_names(
    kind: str, space: str, code: str
) -> None:
    text = f"""func.func @f() attributes {{
      pto.kernel, pto.kernel_kind = #pto.kernel_kind<{kind}>}} {{
      %k0 = arith.constant 0 : i64
      %p = pto.castptr %k0 : i64 -> !pto.ptr<f32, {space}>
      return
    }}"""
    assert {d.code for d in loads(text).check("a5")} == ({code} if code else set())


# ---- order inside a scope ------------------------------------------------------------------------

BEHIND = ALL + LOAD + store("v")
AGAIN = f"%y = pto.vlds %out[%c0] : {UB} -> {V}\n"
SCALAR = f"%s = pto.load_scalar %out[%c0] : {UB} -> f32\n"
SET = f"pto.store_scalar %k, %out[%c0] : {UB}, f32\n"
HALF = f'%h = pto.pset_b32 "PAT_H" : {M}\n'
REST = f"%r = pto.pnot %h, %m : {M}, {M} -> {M}\n"
BEGIN = "%s0 = pto.init_align : !pto.align\n"
APPEND = (
    f"%s1, %p1 = pto.vstus %s0, %five, %v, %out : !pto.align, i32, {V}, {UB} -> !pto.align, {UB}\n"
)
SAME = f"%i = pto.vdup %none, %m : ui32, {M} -> {INDICES}\n"


def bar(kind: str) -> str:
    return f'pto.mem_bar "{kind}"\n'


def put(name: str) -> str:
    return f"pto.vscatter %{name}, %out, %i, %m : {V}, {UB}, {INDICES}, {M}\n"


NOTHING = ""
RAW, WAR = "load after the store", "store after the load"
WAW = "two stores of a scope to common bytes rely on their order"
ORDERED = [  # what is said, a body of a scope, and what is told
    ("a load after a store of the same bytes needs a barrier", BEHIND + AGAIN, RAW),
    ("VST_VLD orders it", BEHIND + bar("VST_VLD") + AGAIN, NOTHING),
    ("VV_ALL orders it", BEHIND + bar("VV_ALL") + AGAIN, NOTHING),
    ("VLD_VST does not", BEHIND + bar("VLD_VST") + AGAIN, RAW),
    ("VST_VST does not", BEHIND + bar("VST_VST") + AGAIN, RAW),
    ("other bytes need none", BEHIND + f"%y = pto.vlds %out[%c64] : {UB} -> {V}\n", NOTHING),
    (
        "lanes that a mask leaves out are not stored",
        ALL
        + HALF
        + LOAD
        + store("v", by="%h")
        + f'%y = pto.vlds %out[%c32] {{dist = "BRC_B32"}} : {UB} -> {V}\n',
        NOTHING,
    ),
    (
        "a store after a load of the same bytes needs a barrier",
        ALL + LOAD + f"%y = pto.vbr %k : f32 -> {V}\n" + store("y", "x") + store("v"),
        WAR,
    ),
    ("unless its value is made of what was loaded", ALL + LOAD + NEGATE + store("w", "x"), NOTHING),
    (
        "VLD_VST orders it",
        ALL + LOAD + f"%y = pto.vbr %k : f32 -> {V}\n" + bar("VLD_VST") + store("y", "x"),
        NOTHING,
    ),
    (
        "the order is transitive: through a value and a barrier",
        ALL
        + LOAD
        + NEGATE
        + store("w")
        + bar("VST_VST")
        + f"%y = pto.vbr %k : f32 -> {V}\n"
        + store("y", "x"),
        NOTHING,
    ),
    (
        "two stores to the same bytes are a warning",
        ALL + LOAD + NEGATE + store("v") + store("w"),
        WAW,
    ),
    (
        "VST_VST orders them",
        ALL + LOAD + NEGATE + store("v") + bar("VST_VST") + store("w"),
        NOTHING,
    ),
    (
        "stores of different lanes do not meet",
        ALL + HALF + REST + LOAD + NEGATE + store("v", by="%h") + store("w", by="%r"),
        NOTHING,
    ),
    ("scalar accesses are ordered among each other", SET + SCALAR, NOTHING),
    (
        "a scalar load behind a vector store needs a barrier",
        BEHIND + SCALAR,
        "scalar load after the store",
    ),
    ("VS_ALL orders it", BEHIND + bar("VS_ALL") + SCALAR, NOTHING),
    ("a vector load behind a scalar store needs one", SET + AGAIN, "load after the scalar store"),
    ("SV_ALL orders it", SET + bar("SV_ALL") + AGAIN, NOTHING),
    (
        "a vector store behind a scalar store needs one",
        SET + BEHIND,
        "store after the scalar store",
    ),
    (
        "lanes that are scattered to one place have one value",
        ALL + LOAD + SAME + put("v"),
        "active lanes of a scatter have one index and different values",
    ),
    ("which may be the same", ALL + SAME + f"%v = pto.vbr %k : f32 -> {V}\n" + put("v"), NOTHING),
    (
        "a stream is flushed before it ends",
        ALL + LOAD + BEGIN + APPEND,
        "20 bytes of a stream were never stored",
    ),
    (
        "then nothing is lost",
        ALL + LOAD + BEGIN + APPEND + f"pto.vstas %s1, %p1, %zero32 : !pto.align, {UB}, i32\n",
        NOTHING,
    ),
]
CONSTANTS = """%k = arith.constant 2.0 : f32
%none = arith.constant 0 : ui32
%five = arith.constant 5 : i32
%zero32 = arith.constant 0 : i32
%c32 = arith.constant 32 : index
%c64 = arith.constant 64 : index"""


def findings(body: str) -> list[Diagnostic]:
    program = scope(body, "x:f32", "f32", CONSTANTS)
    x, out = np.arange(128, dtype=np.float32), np.ones(128, np.float32)
    try:
        return list(run(program, x, out=out).warnings)
    except PtoError as error:
        return list(error.diagnostics)


@pytest.mark.parametrize(
    ("body", "what"), [case[1:] for case in ORDERED], ids=[case[0] for case in ORDERED]
)
def test_the_order_inside_a_scope(body: str, what: str) -> None:
    found = findings(body)
    if not what:
        assert not found, "\n".join(map(str, found))
        return
    (told,) = (d for d in found if what in d.message)
    assert told.severity == ("warning" if what == WAW else "error")
    assert told.location is not None


# ---- hidden registers ----------------------------------------------------------------------------

HIDDEN: list[tuple[str, str, str]] = [
    (
        "SQZN",
        f'%s1 = pto.vstur %s0, %v, %out, "NO_POST_UPDATE" : !pto.align, {V}, {UB} -> !pto.align\n',
        "pto.vsqz",
    ),
    ("AR", f"pto.vstar %s0, %out : !pto.align, {UB}\n", "pto.sprclr"),
]


@pytest.mark.parametrize(("name", "line", "setter"), HIDDEN, ids=[h[0] for h in HIDDEN])
def test_a_hidden_register_has_no_value_at_first(name: str, line: str, setter: str) -> None:
    (told,) = findings(ALL + LOAD + BEGIN + line)
    assert told.code == "hidden-register"
    assert told.message.startswith(name)
    assert setter in told.fix


# ---- what nobody has decided ---------------------------------------------------------------------

UNDECIDED = {  # what recorded runs leave open -> the operations that say so, and how they say it
    "inactive lanes of a result are zero": ("vadd", "an inactive lane"),
    "a contiguous store obeys its mask": ("vsts", "NORM"),
    "a store of one point ignores its mask": ("vsts", "1PT"),
    "a stream that is not flushed": ("vstus", "bytes that fill no block"),
    "the mask of vsldb acts by blocks": ("vsldb", "blocks with some active lanes"),
    "a product and a sum are rounded once": ("vmula", "floats"),
    "a leaky function at 0": ("vlrelu", "a lane that is 0"),
    "the precision of a scale of the fix pipe": ("mte_l0c_gm", "scales"),
    "ties of hif8": ("vcvt", "ties of hif8"),
}


@pytest.mark.parametrize("point", UNDECIDED)
def test_what_is_not_decided_is_marked_as_free(point: str) -> None:
    """The page of the operation says so, and a comparison with a device may differ there."""
    name, where = UNDECIDED[point]
    record = MICRO[name]
    (found,) = (f for f in record.freedom if f.where == where)
    assert found.kind is Openness.UNSPECIFIED
    page = (PAGES / f"{name}.md").read_text("utf-8")
    assert found.text in " ".join(page.split())


# ---- addresses -----------------------------------------------------------------------------------


@pytest.mark.parametrize("moves", [False, True])
def test_an_access_that_moves_its_pointer_is_at_the_pointer(moves: bool) -> None:
    """With the extra result the access is at base and the result is base + offset; else there."""
    line = f"%v = pto.vlds %x[%c64] : {UB} -> {V}\n"
    if moves:
        line = f"%v, %p = pto.vlds %x[%c64] : {UB} -> {V}, {UB}\n"
    x, out = np.arange(128, dtype=np.float32), np.zeros(64, np.float32)
    run(scope(ALL + line + store("v"), "x:f32", "f32", CONSTANTS), x, out=out)
    assert np.array_equal(out, x[:64] if moves else x[64:])


def test_inactive_lanes() -> None:
    """A result is 0 there, a store keeps the bytes, a compare is false, a sum passes them over."""
    body = (
        ALL
        + HALF
        + LOAD
        + f"%w = pto.vadds %v, %k, %h : {V}, f32, {M} -> {V}\n"
        + store("w")
        + f"%s = pto.vcadd %v, %h : {V}, {M} -> {V}\n"
        + store("s", at="%c64")
    )
    x, out = np.arange(128, dtype=np.float32), np.full(192, 7, np.float32)
    run(scope(body, "x:f32", "f32", CONSTANTS), x, out=out)
    assert np.array_equal(out[:64], np.where(np.arange(64) < 32, x[:64] + 2, 0))
    assert out[64] == x[:32].sum()
    kept = ALL + HALF + LOAD + store("v", by="%h")
    out = np.full(128, 7, np.float32)
    run(scope(kept, "x:f32", "f32", CONSTANTS), x, out=out)
    assert np.array_equal(out[:64], np.where(np.arange(64) < 32, x[:64], 7))


def test_bounds_are_those_of_the_memory() -> None:
    """A pointer has none of its own: a store may go anywhere in the unified buffer, not behind."""
    at: dict[int, Any] = {}
    for place in (32768, 262144 - 256, 262144):
        more = f"{CONSTANTS}\n%far = arith.constant {place // 4} : index"
        program = scope(ALL + LOAD + store("v", "x", "%far"), "x:f32", "f32", more)
        try:
            run(program, np.zeros(64, np.float32), out=np.zeros(64, np.float32))
            at[place] = ""
        except PtoError as error:
            at[place] = error.codes[0]
    assert at == {32768: "", 262144 - 256: "", 262144: "memory-bounds"}
