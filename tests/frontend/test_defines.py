"""Overriding sizes of a target: one reading of names and values, at every door."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ptokit
from ptokit import *
from ptokit.isa.targets import target
from tests.command import command

ROOMY = {"PTO_UBUF_SIZE_BYTES": 262144}
Big = Tile[TileType.Vec, float32, 256, 256]  # 256 KB: more than UB of A2/A3 has
Y = np.zeros((256, 256), np.float32)


def fill(y: Any) -> None:
    t = Big()
    TEXPANDS(t, 1.0)
    TSTORE(GlobalTensor(y), t)


def bound(y: Any) -> None:
    t = Big()
    TASSIGN[0](t)
    TSTORE(GlobalTensor(y), t, Event[Op.TEXPANDS, Op.TSTORE_VEC](TEXPANDS(t, 1.0)))


plain = kernel(mode="auto")(fill)
roomy = kernel(mode="auto", defines=ROOMY)(fill)
MANUAL = {plain: kernel(bound), roomy: kernel(defines=ROOMY)(bound)}

# Eager runs in auto mode need no room: there the tiles are placed when the kernel is lowered.
DOORS: dict[str, Callable[..., Any]] = {
    "eager": lambda k, **o: MANUAL[k][1](Y.copy(), **o),
    "lowered": lambda k, **o: k[1](Y.copy(), path="lowered", **o),
    "lower": lambda k, **o: k.lower(Y, **o),
    "text": lambda k, **o: k.text(Y, **o),
    "l3": lambda k, **o: k.text(Y, form="l3", **o),
    "cpp": lambda k, **o: k.cpp(Y, **o),
    "memory_map": lambda k, **o: k.memory_map(Y, **o),
}


@pytest.mark.parametrize("door", DOORS)
def test_a_kernel_takes_defines_wherever_it_takes_a_target(door: str) -> None:
    ask = DOORS[door]
    with pytest.raises(ProgramError):
        ask(plain)
    ask(plain, defines=ROOMY)
    ask(plain, target="a2a3", defines={"PTO_UBUF_SIZE_BYTES": "0x40000"})
    ask(roomy)
    ask(roomy, target="a2a3")  # of the kernel, not of its target
    with pytest.raises(ProgramError):
        ask(roomy, defines={"PTO_UBUF_SIZE_BYTES": 196608})
    with pytest.raises(ProgramError):
        ask(roomy, target=target("a2a3", {"PTO_UBUF_SIZE_BYTES": 196608}))


def test_check_takes_defines() -> None:
    assert not plain.check("a2a3,a5", Y)
    assert plain.check("a2a3,a5", Y, defines=ROOMY)
    assert roomy.check("a2a3,a5", Y)


def test_a_specialisation_is_cached_per_set_of_defines() -> None:
    first = plain.lower(Y, defines=ROOMY)
    assert plain.lower(Y, defines=dict(ROOMY)) is first
    assert plain.lower(Y, defines={"PTO_UBUF_SIZE_BYTES": "0x40000"}) is first
    assert plain.lower(Y, target=target("a2a3").override(ROOMY)) is first
    assert plain.lower(Y, defines={**ROOMY, "PTO_CBUF_SIZE_BYTES": 1024}) is not first
    assert plain.lower(Y, defines={"PTO_UBUF_SIZE_BYTES": 300000}) is not first


def test_programs_in_text_take_defines() -> None:
    text = plain.text(Y, defines=ROOMY)
    program = ptokit.loads(text)
    assert program.check()
    assert not program.check(defines=ROOMY)
    y = Y.copy()
    with pytest.raises(ProgramError):
        program.entry()[1](y)
    program.entry()[1](y, defines=ROOMY)
    assert (y == 1).all()


WRONG = {
    "PTO_UBUF_SIZE=1": "did you mean PTO_UBUF_SIZE_BYTES?",
    "PTO_UBUF_SIZE_BYTES=lots": "PTO_UBUF_SIZE_BYTES=lots is not a number",
    "PTO_UBUF_SIZE_BYTES=": "PTO_UBUF_SIZE_BYTES= is not a number",
    "PTO_UBUF_SIZE_BYTES=-1": "PTO_UBUF_SIZE_BYTES=-1 is not a size",
    "PTO_UBUF_ALIGN_BYTES=0": "PTO_UBUF_ALIGN_BYTES=0 is not a size",
}


@pytest.mark.parametrize("word", WRONG)
def test_both_doors_give_the_same_error(word: str, tmp_path: Path) -> None:
    name, _, value = word.partition("=")
    with pytest.raises(PtoError) as caught:
        kernel(mode="auto", defines={name: value})
    (found,) = caught.value.diagnostics
    assert WRONG[word] in f"{found.message}\n{found.fix}"
    assert Path(found.location.file) == Path(__file__)
    with pytest.raises(PtoError):
        plain[1](Y, defines={name: value})
    shown = command("targets", "-D", word)
    assert shown.returncode == 2
    assert shown.stderr.strip().splitlines()[0] == f"error[{found.code}]: {found.message}"
    assert found.fix in shown.stderr


@pytest.mark.parametrize("given", [{"PTO_UBUF_SIZE_BYTES": 1.5}, {"PTO_UBUF_SIZE_BYTES": True},
                                   {3: 4}, 7, ["PTO_UBUF_SIZE_BYTES"]])  # fmt: skip
def test_what_is_no_define_is_named(given: Any) -> None:
    with pytest.raises(PtoError) as caught:
        device("a2a3", defines=given)
    assert caught.value.codes == ("bad-macro",)


COMMANDS = ["asm --generic", "check", "emit", "run"]


@pytest.mark.parametrize("words", COMMANDS)
def test_commands_take_a_target_and_defines(words: str, tmp_path: Path) -> None:
    """Each command reads both options; a wrong macro is wrong usage."""
    file = tmp_path / "nothing.pto"
    file.write_text("func.func @f() {\n  return\n}\n")
    name, *flags = words.split()
    good = command(name, str(file), *flags, "--target", "a5", "-D", "PTO_UBUF_SIZE_BYTES=4096")
    assert good.returncode == 0, good.stderr
    bad = command(name, str(file), *flags, "-D", "PTO_NO_SUCH=1")
    assert (bad.returncode, "PTO_NO_SUCH is not a memory macro" in bad.stderr) == (2, True)


def test_a_target_of_another_process_is_the_one_of_that_process() -> None:
    for mine in (target("a5"), target("a5", ROOMY)):
        assert pickle.loads(pickle.dumps(mine)) is mine
