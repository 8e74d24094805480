"""Bytecode is read as the program it holds; damaged files say at which byte they are."""

from __future__ import annotations

import random
import re
from pathlib import Path

import numpy as np
import pytest

from ptokit import load
from ptokit.base.diagnostics import PtoError
from ptokit.from_text import Program, loads
from ptokit.ir.bytecode import as_text
from ptokit.ir.parser import parse_file
from tests.command import command
from tests.text.bytecode_writer import Writer, leb, section, whole

HERE = Path(__file__).parent
PROGRAMS = sorted(
    path
    for path in (*HERE.glob("programs/*.pto"), *HERE.glob("run/*.pto"), *HERE.glob("convert/*.pto"))
    if "assembly" not in path.name
)
TILE = "!pto.tile_buf<vec, 16x64xf32>"
ADD = f"""module attributes {{pto.target_arch = "a5"}} {{
  func.func @add(%x: !pto.ptr<f32>, %n: index) attributes {{pto.entry}} {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %c64 = arith.constant 64 : index
    %half = arith.constant 0.5 : f32
    %v = pto.make_tensor_view %x, shape = [%c16, %c64], strides = [%c64, %c1]
      : !pto.tensor_view<16x64xf32>
    %p = pto.partition_view %v, offsets = [%c0, %c0], sizes = [%c16, %c64]
      : !pto.tensor_view<16x64xf32> -> !pto.partition_tensor_view<16x64xf32>
    %t = pto.alloc_tile : {TILE}
    %u = pto.alloc_tile : {TILE}
    pto.tload ins(%p : !pto.partition_tensor_view<16x64xf32>) outs(%t : {TILE})
    scf.for %i = %c0 to %n step %c1 {{
      %odd = arith.cmpi sgt, %i, %c0 : index
      scf.if %odd {{
        pto.tadd ins(%t, %t : {TILE}, {TILE}) outs(%u : {TILE})
        pto.tadds ins(%u, %half : {TILE}, f32) outs(%t : {TILE})
      }}
    }}
    pto.tstore ins(%t : {TILE}) outs(%p : !pto.partition_tensor_view<16x64xf32>)
    return
  }}
  func.func private @elsewhere(i32)
}}
"""


def written(made: Program, is_generic: bool = False) -> bytes:
    return Writer(is_generic).module(made.module)


def read(data: bytes) -> Program:
    return loads(as_text(data, "k.ptobc", 1 << 24), "k.ptobc")


@pytest.mark.parametrize("is_generic", [False, True])
@pytest.mark.parametrize("path", PROGRAMS, ids=lambda p: p.name)
def test_programs_come_back(path: Path, is_generic: bool) -> None:
    made = Program(parse_file(path))
    if any(f.unit for f in made.module.functions):
        pytest.skip("bytecode holds one module")
    # Bytecode keeps no places of other files.
    wanted = re.sub(r' loc\("[^)]*\)', "", str(made))
    assert str(read(written(made, is_generic))) == wanted


def test_numbered_operations_are_shorter() -> None:
    made = loads(ADD)
    assert str(read(written(made))) == str(made)
    assert len(written(made)) < len(written(made, is_generic=True))


def test_a_file_of_bytecode_is_a_program(tmp_path: Path, engine: str) -> None:
    path = tmp_path / "add.ptobc"
    path.write_bytes(written(loads(ADD)))
    made = load(path)
    assert (made.check(), made.target().name, made.kernels) == ([], "a5", ["add"])
    x = np.ones((16, 64), "f4")
    made["add"][1](x, 2, engine=engine)
    assert (x == 2.5).all()


def test_commands_take_bytecode(tmp_path: Path) -> None:
    path = tmp_path / "add.ptobc"
    path.write_bytes(written(loads(ADD)))

    assert command("check", str(path)).returncode == 0
    assert "pto.tadds ins(%u, %half" in command("asm", str(path)).stdout
    refused = command("fmt", str(path))
    assert (refused.returncode, "bytecode" in refused.stderr) == (2, True)
    assert path.read_bytes() == written(loads(ADD))
    path.write_bytes(path.read_bytes()[:-7])
    broken = command("check", str(path))
    assert broken.returncode == 1
    assert "byte 10 (0xa)" in broken.stdout + broken.stderr


def test_operations_say_where_their_bytes_are() -> None:
    """A rule that is broken is shown in the line of the program, with the byte."""
    text = ADD.replace("%u, %half : ", "%u, %n : ").replace(f"{TILE}, f32)", f"{TILE}, index)")
    made = loads(ADD)
    for op in made.module.walk():
        if op.name == "pto.tadd":
            op.operands[1] = made.module.functions[0].params[1]
    assert text != ADD
    with pytest.raises(PtoError, match=r'"pto.tadd"\(.*byte 0x'):
        read(written(made))


def strings(data: bytes) -> bytes:
    """A file without a program, whose strings are these bytes."""
    others = [section(number, b"\0") for number in (2, 3, 4)]
    return whole([section(1, data), *others, section(6, b"")])


DAMAGED = {
    "nothing behind the magic": (b"PTOBC\0", "2 bytes are missing"),
    "another version": (b"PTOBC\0\1\0\0\0\0\0\0\0", r"byte 6 .*version 1"),
    "other sections": (whole([section(2, b"\0")]), r"byte 14 .*section 2 stands where the strings"),
    "many strings": (strings(leb(1 << 40)), "strings do not fit"),
    "endless number": (strings(b"\xff" * 12), "more than 64 bits"),
    "no text": (strings(leb(1) + leb(2) + b"\xc3\x28"), r"byte 20 .*not UTF-8"),
    "no module": (strings(b"\0"), "2 bytes are missing"),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_damaged_headers(case: str) -> None:
    data, message = DAMAGED[case]
    with pytest.raises(PtoError, match=message) as error:
        as_text(data, "k.ptobc", 1 << 20)
    assert error.value.codes == ("bytecode",)


def test_a_short_file_does_not_make_a_long_text() -> None:
    with pytest.raises(PtoError, match="longer than a text may be"):
        as_text(written(loads(ADD)), "k.ptobc", 500)


def test_every_shorter_file_is_refused() -> None:
    data = written(loads(ADD))
    for length in range(6, len(data), 7):
        with pytest.raises(PtoError, match="byte"):
            as_text(data[:length], "k.ptobc", 1 << 20)


def test_changed_bytes_are_refused_or_another_program() -> None:
    data = written(loads(ADD))
    rng = random.Random(5)
    refused = 0
    for _ in range(300):
        changed = bytearray(data)
        for _ in range(rng.choice((1, 1, 1, 4))):
            changed[rng.randrange(14, len(data))] = rng.randrange(256)
        try:
            read(bytes(changed))
        except PtoError:
            refused += 1
    assert refused > 100
