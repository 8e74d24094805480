"""A definition is complete wherever it stands: one new file adds an instruction to every path, and
the name of a file means nothing.

Both are tried on a copy of the sources, in a process of its own.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# A scratch tile, an enumeration of its own, and a rule per target.
BLEND = '''"""Blending."""

from __future__ import annotations

import numpy as np

from ptokit.base.enums import Choice
from ptokit.base.layout import Array
from ptokit.isa.devices import on
from ptokit.isa.pointwise import pointwise
from ptokit.isa.rules import must, separate
from ptokit.isa.spec import Attr, insn, out, src, tmp, types


class BlendMode(Choice):
    """How two elements are blended."""

    MEAN = 0
    LARGER = 1


@insn(
    out("dst"),
    src("src0"),
    src("src1"),
    tmp(lost=on("a2a3"), note="a row of scratch on A2/A3"),
    attrs=[Attr("mode", BlendMode, BlendMode.MEAN, "how to blend")],
    types=types(a2a3="f32", a5="f16 f32"),
    rules=[
        pointwise("dst", "src0", "src1"),
        must("scratch", "a2a3")("tmp holds a row of dst", lambda o: o.tmp.numel >= o.dst.cols),
        must("narrow", "a5")("dst has at most 128 columns", lambda o: o.dst.cols <= 128),
        separate("tmp", "dst", "src0", "src1", id="tmp-apart"),
    ],
    example={"tmp": "Vec {T} 1x64"},
)
def TBLEND(dst: Array, src0: Array, src1: Array, tmp: Array, mode: BlendMode) -> None:
    """Blend two tiles element by element."""
    if mode == BlendMode.LARGER:
        np.maximum(src0, src1, out=dst)
    else:
        dst[...] = (src0 + src1) * 0.5
'''

USE = """
import numpy as np
import ptokit
from ptokit import *

a = (np.arange(1024, dtype=np.float32) % 97).reshape(16, 64)
b = (np.arange(1024, dtype=np.float32) * 7 % 89).reshape(16, 64)
want = np.maximum(a, b)
Wide = Tile[TileType.Vec, float32, 16, 64]
Row = Tile[TileType.Vec, float32, 1, 64]


@kernel(target="a2a3", mode="auto")
def blended(x, y, z):
    view = GlobalTensor[float32, Shape[1, 1, 1, 16, 64], Stride[1024, 1024, 1024, 64, 1]]
    p, q, r, t = Wide(), Wide(), Wide(), Row()
    TLOAD(p, view(x))
    TLOAD(q, view(y))
    TBLEND[BlendMode.LARGER](r, p, q, t)
    TSTORE(view(z), r)


def fresh():
    return a.copy(), b.copy(), np.zeros_like(a)
"""


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project with one file more."""
    top = copied(tmp_path_factory.mktemp("blend"))
    (top / "src/ptokit/isa/blend.py").write_text(BLEND, "utf-8")
    return top


def copied(top: Path) -> Path:
    for name in ("src", "tests", "tools", "docs", "examples"):
        shutil.copytree(ROOT / name, top / name)  # with what is compiled already
    shutil.copy(ROOT / "pyproject.toml", top)
    return top


def run(top: Path, *command: str) -> str:
    """What a Python command prints in a copy of the project."""
    env = {**os.environ, "PYTHONPATH": str(top / "src"), "COLUMNS": "200"}
    done = subprocess.run(
        [sys.executable, *command], cwd=top, env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def used(top: Path, *statements: str) -> str:
    """Run statements behind the kernel that uses the new instruction."""
    script = top / "use.py"
    script.write_text("\n".join([USE, *statements]), "utf-8")
    return run(top, str(script))


@pytest.mark.parametrize("path", ["eager", "lowered"])
def test_it_runs(tree: Path, path: str) -> None:
    used(
        tree,
        "x, y, z = fresh()",
        f"blended[1](x, y, z, path={path!r})",
        "assert (z == want).all()",
    )


@pytest.mark.parametrize("form", ["l1", "l2", "l3", "sync"])
def test_it_is_written_and_read(tree: Path, form: str) -> None:
    text = used(
        tree,
        f"text = blended.text(*fresh(), form={form!r})",
        "print(text)",
        "x, y, z = fresh()",
        "loads(text)['blended'][1](x, y, z)",
        "assert (z == want).all()",
    )
    assert "tblend" in text
    assert re.search(r"mode = .*LARGER", text)


def test_it_is_written_in_cpp(tree: Path) -> None:
    text = used(tree, "print(blended.cpp(*fresh()))")
    assert "TBLEND<BlendMode::LARGER>(r, p, q, t);" in text


def test_its_rules_hold_on_their_targets(tree: Path) -> None:
    text = used(
        tree,
        "Row = Tile[TileType.Vec, float32, 1, 32]",
        "print(blended.check('a2a3,a5,kirin9030', *fresh()))",
    )
    a2a3, a5, kirin = (text[text.index(name) :] for name in ("a2a3", "a5", "kirin9030"))
    assert "TBLEND.scratch" in a2a3.removesuffix(a5)
    assert "TBLEND" not in a5.removesuffix(kirin)
    assert "TBLEND.unavailable" in kirin


def test_it_has_a_page(tree: Path) -> None:
    run(tree, "tools/gen.py")
    page = (tree / "docs/isa/TBLEND.md").read_text("utf-8")
    assert "Blend two tiles element by element." in page
    assert "BlendMode" in page
    assert "TBLEND.narrow" in page
    stubs = (tree / "src/ptokit/frontend/api.pyi").read_text("utf-8")
    assert "from ptokit.isa.blend import BlendMode as BlendMode" in stubs
    assert "TBLEND" in run(tree, "-m", "ptokit", "isa", "TBLEND", "--raw")


def test_a_change_is_noticed(tmp_path: Path) -> None:
    """A file that is new, one that is changed, one that is gone, each time with an index before."""
    shutil.copytree(ROOT / "src", tmp_path / "src")
    blend = tmp_path / "src/ptokit/isa/blend.py"
    ask = (
        "from ptokit.isa import INSTRUCTIONS\n"
        "print([name for name in ('TBLEND', 'TBLUR') if name in INSTRUCTIONS])"
    )
    said = [run(tmp_path, "-c", ask)]
    for text in (BLEND, BLEND.replace("TBLEND", "TBLUR")):
        blend.write_text(text, "utf-8")
        said.append(run(tmp_path, "-c", ask))
    blend.unlink()
    said.append(run(tmp_path, "-c", ask))
    assert said == ["[]\n", "['TBLEND']\n", "['TBLUR']\n", "[]\n"]


# ---- moving a definition -------------------------------------------------------------------------

MOVED = ("binding", "elementwise", "expand", "tile_scalar")

SHOW = """
import numpy as np
import ptokit
from ptokit import *
from ptokit.isa import INSTRUCTIONS
from ptokit.report.pages import index, markdown

Wide = Tile[TileType.Vec, float32, 16, 64]
Flat = Tile[TileType.Vec, float32, 8, 128]
Column = Tile[TileType.Vec, float32, 16, 1, BLayout.ColMajor]


def body(x, y, wait):
    view = GlobalTensor[float32, Shape[1, 1, 1, 16, 64], Stride[1024, 1024, 1024, 64, 1]]
    p, r, c = Wide(), Wide(), Column()
    f = Flat()
    TASSIGN[0](p)
    TASSIGN[4096](r)
    TASSIGN[8192](c)
    TLOAD(p, view(x))
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0)
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0)
    TADDS(p, p, 1.5)
    TMULS(p, p, 2.0)  # streams: a warning without a barrier in between
    pipe_barrier(PIPE_V)
    TRESHAPE(f, p)
    TADDS(f, f, 1.0)
    if wait:
        pipe_barrier(PIPE_V)
    TROWMAX(c, p, r)
    TROWEXPANDMUL(r, p, c)
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0)
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0)
    TSTORE(view(y), r)


for wait in (True, False):  # without the barrier there is a race
    for target in ("a2a3", "a5"):
        k = kernel(target=target)(body)
        for path in ("eager", "lowered"):
            x, y = np.arange(1024, dtype=np.float32), np.zeros(1024, np.float32)
            try:
                k[1](x, y, wait=wait, path=path)
            except PtoError as error:
                print(target, path, error)
            else:
                print(target, path, y.sum(), y.tobytes().hex()[:64])
        x, y = np.arange(1024, dtype=np.float32), np.zeros(1024, np.float32)
        print(k.text(x, y, wait=wait))
        print(k.text(x, y, wait=wait, form="l2"))
        print(k.cpp(x, y, wait=wait))
for _, insn in sorted(INSTRUCTIONS.items()):
    print(sorted((f, str(getattr(insn, f))) for f in ("cost", "streams", "binds", "renames", "pipe")
                 if not callable(getattr(insn, f))))
print("\\n".join(markdown(INSTRUCTIONS[name]) for name in sorted(INSTRUCTIONS)))
print(index(list(INSTRUCTIONS.values())))
"""


def test_the_name_of_a_file_means_nothing(tmp_path: Path) -> None:
    shown: list[str] = []
    for folder in ("before", "after"):
        top = copied(tmp_path / folder)
        (top / "show.py").write_text(SHOW, "utf-8")
        if folder == "after":
            for name in MOVED:
                home = top / "src/ptokit/isa"
                (home / f"{name}.py").rename(home / f"zz_{name}.py")
            names = re.compile(rf"(ptokit\.isa\.)(?=(?:{'|'.join(MOVED)})\b)")
            for path in (top / "src").rglob("*.py"):
                path.write_text(names.sub(r"\1zz_", path.read_text("utf-8")), "utf-8")
        shown.append(run(top, "show.py").replace(str(top), ""))
    before, after = shown
    assert before.count("error[E8]") == 2  # the checker speaks where the barrier is missing
    assert before.splitlines() == after.splitlines()
