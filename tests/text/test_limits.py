"""The gate of text: what no reader should have to swallow is refused with its place, quickly."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

import pytest

from ptokit import ProgramError, PtoError, TextLimits, load, loads
from ptokit.from_text import formatted

HEAD = "func.func @f(%c: i1, %n: i32) {\n"
TAIL = "\n  return\n}\n"


def branches(depth: int) -> str:
    return f"{HEAD}{'scf.if %c {' * depth}{'}' * depth}{TAIL}"


def named_results(count: int) -> str:
    types = ", ".join(["i32"] * count)
    body = f"{{ scf.yield {', '.join(['%n'] * count)} : {types} }}"
    return f"{HEAD}  %a:{count} = scf.if %c -> ({types}) {body} else {body}{TAIL}"


# Limit, a text at a measure, and the code of the line in which it is exceeded.
MEASURES: dict[str, Callable[[int], str]] = {
    "nesting": lambda n: branches(n - 1),
    "results": named_results,
    "digits": lambda n: f"{HEAD}  %a = arith.constant {'0' * (n - 1)}7 : i32{TAIL}",
    "line": lambda n: f"{HEAD}//{'x' * (n - 2)}{TAIL}",
    "size": lambda n: (HEAD + TAIL).ljust(n),
    "errors": lambda n: HEAD + "  %x = arith.addi %y, %n : i32\n" * 9 + TAIL,
}
SMALL = {"nesting": 5, "results": 7, "digits": 30, "line": 200, "size": 300}


@pytest.mark.parametrize("name", SMALL)
def test_a_limit_is_the_last_that_is_read(name: str) -> None:
    most = SMALL[name]
    limits = TextLimits(**{name: most})
    loads(MEASURES[name](most), limits=limits)
    with pytest.raises(ProgramError, match=f"the limit is {most}") as caught:
        loads(MEASURES[name](most + 1), "odd.pto", limits=limits)
    (found,) = caught.value.diagnostics
    assert found.code == "text-limit"
    assert found.location is not None
    assert found.location.file == "odd.pto"
    assert f"TextLimits({name}={most + 1})" in found.fix
    loads(MEASURES[name](most + 1), limits=TextLimits(**{name: most + 1}))  # the advice works


def test_reading_stops_after_so_many_mistakes() -> None:
    with pytest.raises(ProgramError) as caught:
        loads(MEASURES["errors"](9), limits=TextLimits(errors=4))
    assert caught.value.codes[4:] == ("text-limit",)


def test_the_environment_sets_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTOKIT_LIMITS", "nesting=3, line = 5000")
    with pytest.raises(ProgramError, match="4 levels of nesting; the limit is 3"):
        loads(branches(3))
    with pytest.raises(ProgramError, match="the limit is 3"):
        formatted(branches(3))
    monkeypatch.setenv("PTOKIT_LIMITS", "depth=3")
    with pytest.raises(PtoError, match="the names are size, line, digits, nesting"):
        loads(branches(1))


def test_the_deepest_nesting_that_can_be_asked_for_is_read_and_used() -> None:
    """With the stack that a test has left, which is less than that of a program."""
    program = loads(branches(99), limits=TextLimits(nesting=100))
    assert not program.check("a2a3")
    assert loads(str(program), limits=TextLimits(nesting=100)).kernels == ["f"]
    assert formatted(str(program.convert("l3")), limits=TextLimits(nesting=100))
    assert program.cpp()
    program["f"][1](True, 3)


def test_the_guide_lists_the_limits() -> None:
    page = Path(__file__).parents[2] / "docs" / "guide" / "command-line.md"
    listed = re.findall(r"^\| `(\w+)` \| ([\d,]+) \|", page.read_text("utf-8"), re.MULTILINE)
    assert {name: int(n.replace(",", "")) for name, n in listed} == asdict(TextLimits())


HOSTILE = {
    "a billion results": HEAD + "  %a:1000000000 = scf.if %c -> (i32) { }" + TAIL,
    "a list of results": HEAD + "  " + "%a:1000, " * 5000 + "%b = foo" + TAIL,
    "quotes": HEAD + '"a\\' * 30_000 + TAIL,
    "quotes outside": '"a\\' * 30_000,
    "quotes on lines": HEAD + '"a\\\n' * 100_000 + TAIL,
    "regions": branches(100_000 // 12),
    "regions on lines": HEAD + "scf.if %c {\n" * 100_000,
    "open lists": HEAD + "pto.barrier {a = " + "[" * 90_000,
    "open types": "func.func @f(%a: " + "(" * 90_000,
    "open modules": "module {\n" * 100_000,
    "open brackets": HEAD + "!a<" * 30_000,
    "arrows": HEAD + "!a<<<<" + "->" * 40_000,
    "a line of 10 MB": HEAD + "x" * 10_000_000 + TAIL,
    "a long name": HEAD + "  %a = pto." + "x" * 90_000 + " %b : i32" + TAIL,
    "a long number": HEAD + f"  %a = arith.constant {'9' * 90_000} : i32" + TAIL,
    "a long size": f"func.func @f(%a: !pto.tile_buf<vec, {'9' * 90_000}x16xf32>)",
    "a wide type": "func.func @f(%a: i99999999999)",
    "undefined": HEAD + "".join(f"%a{n} = arith.addi %b{n}, %n : i32\n" for n in range(30_000)),
    "closing": HEAD + "} ) ] %x , \n" * 100_000,
    "opening": HEAD + "foo ( [ \n" * 100_000,
    "operands": HEAD + "  pto.tadd " + "%n, " * 20_000 + TAIL,
    "half a character": HEAD + "\ud800" + TAIL,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts_end_soon_in_a_short_message(name: str) -> None:
    """Seconds are far apart from what each of these took, or from never."""
    began = time.process_time()
    with pytest.raises(ProgramError) as caught:
        loads(HOSTILE[name])
    assert time.process_time() - began < 10
    assert all(found.location is not None for found in caught.value.diagnostics)
    assert max(len(found.render()) for found in caught.value.diagnostics) < 2500


ODD = {
    "007": "",
    "4294967296": "bad-attribute",
    "-2147483649": "bad-attribute",
    "0x1FFFFFFFF": "bad-attribute",
    "1.5": "bad-attribute",
    "99999999999999999999": "bad-attribute",
}


@pytest.mark.parametrize("number", ODD)
def test_odd_integers(number: str) -> None:
    text = f"{HEAD}  %a = arith.constant {number} : i32{TAIL}"
    if not ODD[number]:
        assert "arith.constant 7 : i32" in str(loads(text))
        return
    with pytest.raises(ProgramError) as caught:
        loads(text)
    assert caught.value.codes[0] == ODD[number]


@pytest.mark.parametrize(
    ("number", "kind"),
    [("0x1FFFFFFFF", "f32"), ("-0x1", "f64"), ("0x1FFFFFFFFFFFFFFFF", "f64"), ("0x10000", "bf16")],
)
def test_bits_that_a_float_does_not_have(number: str, kind: str) -> None:
    with pytest.raises(ProgramError, match=f"is no bit pattern of {kind}"):
        loads(f"{HEAD}  %a = arith.constant {number} : {kind}{TAIL}")


WHOLE = """module attributes {pto.target_arch = "a3"} {
  func.func @f(%p: !pto.ptr<f32>, %n: index) attributes {pto.entry} {
    %c = arith.constant 0x10 : index
    %v = pto.make_tensor_view %p, shape = [%n, %c], strides = [%c, %c] : !pto.tensor_view<?x?xf32>
    %t = pto.alloc_tile : !pto.tile_buf<vec, 16x64xf32>
    scf.for %i = %c to %n step %c iter_args(%a = %c) -> (index) {
      pto.tadds ins(%t, 1.5 : !pto.tile_buf<vec, 16x64xf32>, f32) outs(%t : <vec, 16x64xf32>)
      %x:2 = "scf.if"(%a) ({ scf.yield }) {a = [1, {b = @f}], c = dense<1> : vector<1xi32>} loc("x")
    }
    return
  }
}
"""


def test_a_text_may_end_anywhere() -> None:
    for end in range(len(WHOLE)):
        for tail in ("", "\n}", '"'):
            with suppress(ProgramError):
                loads(WHOLE[:end] + tail)


def test_a_byte_order_mark_is_no_mistake(tmp_path: Path) -> None:
    plain, marked = tmp_path / "plain.pto", tmp_path / "marked.pto"
    plain.write_text(HEAD + TAIL, "utf-8")
    marked.write_text(HEAD + TAIL, "utf-8-sig")
    assert str(load(marked)) == str(load(plain)) == str(loads("\ufeff" + HEAD + TAIL))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-32", "latin-1"])
def test_other_encodings_are_named(tmp_path: Path, encoding: str) -> None:
    file = tmp_path / "other.pto"
    mark = "\ufeff" if encoding == "utf-16-be" else ""
    file.write_text(f"{mark}{HEAD}\n// gr\xfc\xdfe{TAIL}", encoding)
    with pytest.raises(ProgramError) as caught:
        load(file)
    (found,) = caught.value.diagnostics
    assert found.code == "file"
    named = "byte 0xfc" if encoding == "latin-1" else encoding.upper()[:6]
    assert named in found.message
    assert found.location is not None
    assert found.location.line == (3 if encoding == "latin-1" else 1)


def test_a_name_is_known_in_its_block_only() -> None:
    """Blocks do not copy what is known around them, and still forget their own names."""
    text = HEAD + "scf.if %c { %x = arith.addi %n, %n : i32 }\n%y = arith.addi %x, %n : i32" + TAIL
    with pytest.raises(ProgramError) as caught:
        loads(text)
    assert caught.value.codes == ("undefined-value",)
    again = HEAD + "scf.if %c { %x = arith.addi %n, %n : i32 }\n%x = arith.addi %n, %n : i32" + TAIL
    loads(again)


def test_loading_a_text_executes_nothing(tmp_path: Path) -> None:
    """Whatever a text says, no code of it runs: nothing is compiled, imported or opened."""
    said = "__import__('os').system('touch owned')"
    file = tmp_path / "code.pto"
    file.write_text(
        f'module attributes {{a = "{said}"}} {{\n  func.func @"{said}"(%c: i1) attributes '
        f'{{b = "{said}", c = #pto<{said}>, d = dense<{said}> : vector<1xi32>}} {{\n'
        f"    // {said}\n    return\n  }}\n}}\n"
    )
    everything(file)  # what is imported late is there now
    watched = ("compile", "exec", "import", "os.", "subprocess.", "pickle.", "ctypes.")
    seen: list[str] = []

    def watch(event: str, args: tuple[object, ...]) -> None:
        if is_watching and event.startswith(watched):
            seen.append(f"{event} {args}")

    sys.addaudithook(watch)  # stays for ever; it is the flag that ends it
    is_watching = True
    try:
        everything(file)
    finally:
        is_watching = False
    assert not seen


def everything(file: Path) -> None:
    program = load(file)
    program.check()
    program.convert("l3")
    with pytest.raises(PtoError, match="a function with the name"):
        program.cpp()
    formatted(file.read_text())
