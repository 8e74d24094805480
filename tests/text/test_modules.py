"""Several modules in a program, and several programs in a file."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from ptokit import load, load_parts, loads
from ptokit.base.diagnostics import PtoError
from ptokit.from_text import Program, formatted
from ptokit.ir.printer import print_module
from tests.command import command

HELPERS = """module attributes {pto.target_arch = "a5"} {
  module attributes {pto.backend = "emitc"} {
    func.func private @twice(%x: i32) -> i32 {
      %y = arith.addi %x, %x : i32
      return %y : i32
    }
    func.func private @other(i32) -> i32
    func.func @entry(%p: !pto.ptr<i32>, %n: i32) attributes {pto.entry} {
      %c0 = arith.constant 0 : index
      %a = func.call @twice(%n) : (i32) -> i32
      %b = func.call @other(%a) : (i32) -> i32
      pto.store_scalar %b, %p[%c0] : !pto.ptr<i32>, i32
      return
    }
  }
  module attributes {pto.backend = "vpto", pto.kernel_kind = #pto.kernel_kind<vector>} {
    func.func private @twice(%x: i32) -> i32 {
      %c1 = arith.constant 1 : i32
      %y = arith.addi %x, %c1 : i32
      return %y : i32
    }
    func.func public @other(%x: i32) -> i32 {
      %y = func.call @twice(%x) : (i32) -> i32
      return %y : i32
    }
  }
}
"""


def unchanged(made: Program) -> Program:
    """The program, if both spellings of it read back to the same."""
    generic = print_module(made.module, generic=True)
    assert str(loads(str(made))) == str(made)
    assert print_module(loads(generic).module, generic=True) == generic
    assert str(loads(generic)) == str(made)
    return made


def test_modules_have_names_of_their_own(engine: str) -> None:
    made = unchanged(loads(HELPERS))
    assert (made.target().name, made.kernels, made.check()) == ("a5", ["entry"], [])
    out = np.zeros(1, "i4")
    made["entry"][1](out, 20, engine=engine)
    assert out[0] == 41


def test_modules_pass_on_what_they_say() -> None:
    functions = {f.name: f for f in loads(HELPERS).module.functions if f.body is not None}
    assert [n for n, f in functions.items() if "pto.kernel_kind" in f.attrs] == ["twice_1", "other"]
    inner = HELPERS.replace('attributes {pto.target_arch = "a5"} ', "")
    inner = inner.replace('pto.backend = "', 'pto.target_arch = "a5", pto.backend = "')
    assert loads(inner).target().name == "a5"
    apart = inner.replace("a5", "a3", 1)
    with pytest.raises(PtoError, match=r"one pto\.target_arch"):
        loads(apart)


def test_modules_without_one_around_them() -> None:
    side_by_side = HELPERS.partition("\n")[2].rstrip("}\n ") + "}\n}\n"
    made = unchanged(loads(side_by_side))
    out = np.zeros(1, "i4")
    made["entry"][1](out, 20)
    assert out[0] == 41


EXPORT = "    func.func public @other(%x: i32) -> i32 {\n      return %x : i32\n    }\n"
WRONG = {
    "ambiguous-function": HELPERS.rstrip("}\n ") + "}}\n  module {\n" + EXPORT + "  }\n}\n",
    "unknown-function": HELPERS.replace("    func.func private @other(i32) -> i32\n", ""),
    "bad-attribute": HELPERS.replace('"vpto"', '"vtpo"'),
    "redefined-function": HELPERS.replace("@other(%x", "@twice(%x"),
}


@pytest.mark.parametrize("code", WRONG)
def test_names_that_nobody_can_settle(code: str) -> None:
    with pytest.raises(PtoError) as error:
        loads(WRONG[code])
    assert code in error.value.codes


def test_a_private_function_is_not_imported() -> None:
    text = HELPERS.replace("func.func public @other", "func.func private @other")
    made = loads(text)
    assert [f.name for f in made.module.functions if f.body is None] == ["other"]
    assert made.module.functions[-1].name == "other_1"
    with pytest.raises(PtoError, match="other"):
        made["entry"][1](np.zeros(1, "i4"), 1)


def test_a_function_that_returns_values_is_no_kernel() -> None:
    made = loads("func.func @f(%n: i32) -> i32 {\n  return %n : i32\n}")
    assert (made.kernels, made.check()) == ([], [])


def test_helpers_return_their_value_in_cpp() -> None:
    cpp = loads(HELPERS.replace(", pto.kernel_kind = #pto.kernel_kind<vector>", "")).cpp()
    assert "AICORE int32_t twice(int32_t x);" in cpp
    assert "const int32_t a = twice(n);" in cpp
    assert "    return y;\n}" in cpp
    two = "func.func @f(%n: i32) -> (i32, i32) {\n  return %n, %n : i32, i32\n}"
    with pytest.raises(PtoError, match="returns several values"):
        loads(two).cpp()


# ---- parts of a file -----------------------------------------------------------------------------


def kernel(number: int, name: str = "f") -> str:
    return f"""module {{
  func.func @{name}(%p: !pto.ptr<i32>) attributes {{pto.entry}} {{
    %c0 = arith.constant 0 : index
// -----
    %n = arith.constant {number} : i32  // the number
    pto.store_scalar %n, %p[%c0] : !pto.ptr<i32>, i32
    return
  }}
}}
"""


NAMED = f"// about both\n\n//--- first.pto\n{kernel(1)}//--- second.pto\n{kernel(2)}"
NUMBERED = f"{kernel(1)}// -----\n\n{kernel(2)}"


def ran(made: Program) -> int:
    out = np.zeros(1, "i4")
    made.entry()[1](out)
    return int(out[0])


@pytest.mark.parametrize(
    ("text", "names"), [(NAMED, ["first.pto", "second.pto"]), (NUMBERED, ["1", "2"])]
)
def test_parts_are_programs(text: str, names: list[str], tmp_path: Path) -> None:
    path = tmp_path / "k.pto"
    path.write_text(text)
    parts = load_parts(path)
    assert list(parts) == names
    assert [ran(p) for p in parts.values()] == [1, 2]
    assert [ran(load(path, part=name)) for name in names] == [1, 2]
    with pytest.raises(PtoError, match="several programs") as error:
        load(path)
    assert names[1] in str(error.value)
    with pytest.raises(PtoError, match="no part 'third'"):
        load(path, part="third")


def test_a_line_of_dashes_in_a_function_is_a_comment() -> None:
    assert ran(loads(kernel(3))) == 3
    assert ran(loads(f"//--- only.pto\n{kernel(4)}")) == 4


def test_places_are_those_of_the_file(tmp_path: Path) -> None:
    broken = NAMED.replace("constant 2 : i32", "constant 2 : i31x")
    line = broken.splitlines().index("    %n = arith.constant 2 : i31x  // the number") + 1
    with pytest.raises(PtoError, match=rf"k.pto:{line}:"):
        loads(broken, "k.pto", part="second.pto")


def test_parts_keep_their_lines_when_formatted() -> None:
    once = formatted(NAMED)
    assert formatted(once) == once
    assert re.findall(r"^//.*", once, re.MULTILINE) == [
        "// about both",
        "//--- first.pto",
        "//--- second.pto",
    ]
    assert once.count("// the number") == 2


def test_the_command_line_takes_parts(tmp_path: Path) -> None:
    path = tmp_path / "k.pto"
    path.write_text(NAMED.replace("constant 2 : i32", "constant 2 : i64"))

    def code(*words: str) -> int:
        return command(*words).returncode

    assert code("check", str(path)) == 1
    assert code("check", f"{path}#first.pto") == 0
    assert code("asm", f"{path}#first.pto") == 0
    assert code("asm", f"{path}#third.pto") == 2


EMITC = """func.func @entry(%p: !pto.ptr<f32>) attributes {pto.entry} {
      return
    }
    func.func @help_a(%p: !pto.ptr<f32>) attributes {pto.ptodsl.logical_name = "help"} {
      return
    }
    func.func @consumer() attributes {pto.kernel_kind = #pto.kernel_kind<cube>} {
      %a = pto.import_reserved_buffer {name = "fifo", peer_func = @producer} -> i32
      return
    }"""
VPTO = """func.func private @inner() {
      return
    }
    func.func @producer() attributes {pto.kernel_kind = #pto.kernel_kind<vector>} {
      %b = pto.reserve_buffer {
        name = "fifo", size = 4096, location = #pto.address_space<vec>, auto = true} -> i32
      return
    }"""
TWICE = """
    func.func @help_b(%p: !pto.ptr<f32>, %q: !pto.ptr<f32>)
        attributes {pto.ptodsl.logical_name = "help"} {
      return
    }"""
STRAY = "func.func @stray() {\n    return\n  }"


def two_back_ends(more: str = "", inside: str = "", call: str = "", other: str = "vpto") -> Program:
    peer = VPTO.replace("      %b =", f"      {call}\n      %b =" if call else "      %b =")
    return loads(
        f"""module attributes {{pto.target_arch = "a5"}} {{
  module attributes {{pto.backend = "emitc"}} {{
    {EMITC}{inside}
  }}
  {more}
  module attributes {{pto.backend = "{other}"}} {{
    {peer}
  }}
}}"""
    )


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"more": STRAY}, "@stray lies beside"),
        ({"inside": TWICE}, "@help is ambiguous: @help_a and @help_b"),
        ({"call": "func.call @inner() : () -> ()"}, "@producer of another module calls @inner"),
    ],
)
def test_what_two_back_ends_cannot_put_together(given: dict[str, str], words: str) -> None:
    assert not two_back_ends().check()
    (found,) = two_back_ends(**given).check()
    assert found.code == "mixed-back-ends"
    assert words in found.message
    assert not two_back_ends(**given, other="emitc").check()  # one of them takes it as it is
