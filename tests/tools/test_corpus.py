"""`tools/corpus.py`: what it takes a file for, and what it says of a folder."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.passes.test_finish import program

pytestmark = pytest.mark.slow  # compilers and processes take their time

ROOT = Path(__file__).resolve().parents[2]
KERNEL = """
module attributes {{pto.target_arch = "a5"}} {{
  func.func @f(%x: !pto.ptr<f32>, %y: !pto.ptr<f32>) attributes {{pto.entry}} {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %v = pto.make_tensor_view %x, shape = [%c16, %c16], strides = [%c16, %c1]
        : !pto.tensor_view<16x16xf32>
    %w = pto.make_tensor_view %y, shape = [%c16, %c16], strides = [%c16, %c1]
        : !pto.tensor_view<16x16xf32>
    %p = pto.partition_view %v, offsets = [%c0, %c0], sizes = [%c16, %c16]
        : !pto.tensor_view<16x16xf32> -> !pto.partition_tensor_view<16x16xf32>
    %q = pto.partition_view %w, offsets = [%c0, %c0], sizes = [%c16, %c16]
        : !pto.tensor_view<16x16xf32> -> !pto.partition_tensor_view<16x16xf32>
    %a = pto.alloc_tile : !pto.tile_buf<vec, 16x16xf32>
    pto.tload ins(%p : !pto.partition_tensor_view<16x16xf32>)
        outs(%a : !pto.tile_buf<vec, 16x16xf32>)
    {operation} ins(%a, %a : !pto.tile_buf<vec, 16x16xf32>, !pto.tile_buf<vec, 16x16xf32>)
        outs(%a : !pto.tile_buf<vec, 16x16xf32>)
    pto.tstore ins(%a : !pto.tile_buf<vec, 16x16xf32>)
        outs(%q : !pto.partition_tensor_view<16x16xf32>)
    return
  }}
}}
"""


@pytest.fixture(scope="module")
def corpus() -> Any:
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        yield importlib.import_module("corpus")
    finally:
        sys.path.remove(str(ROOT / "tools"))


@pytest.mark.parametrize(
    ("text", "path", "kind", "target", "level"),
    [
        ("pto.tadd", "x/f.pto", "tile", None, 0),
        ("// RUN: ptoas --pto-arch=a3 --pto-level=level3 %s", "x/f.pto", "tile", "a2a3", 3),
        ("// RUN: ptoas \\\n// RUN:   --pto-arch=a5 %s", "x/f.pto", "tile", "a5", 0),
        ("// RUN: not ptoas --pto-arch=a5 %s", "x/f.pto", "negative", "a5", 0),
        ("// RUN: not ptoas %s\n// RUN: ptoas --pto-arch=a5 %s", "f.pto", "tile", "a5", 0),
        (
            "// RUN: sed %s | ptoas --pto-arch=a3 -\n// RUN: ptoas --pto-arch=a5",
            "f.pto",
            "tile",
            "a5",
            0,
        ),
        ("pto.tadd", "x/tadd_invalid.pto", "negative", None, 0),
        ("// RUN: ptoas %s", "x/tadd_invalid.pto", "tile", None, 0),
        ("// RUN: ptoas %s | check --implicit-check-not=tadd", "f.pto", "tile", None, 0),
        (
            "// RUN: not ptoas --pto-level=level3 a\n// RUN: not ptoas --pto-level=level3 b",
            "f.pto",
            "negative",
            None,
            3,
        ),
        ("// RUN: ptoas --pto-level=level3 a\n// RUN: ptoas b", "f.pto", "tile", None, 3),
        ("// RUN: split-file\n// RUN: not ptoas a\n// RUN: ptoas b", "f", "negative", None, 0),
        ("%a = pto.vlds %b", "x/f.pto", "micro", None, 0),
        ("// pto.vlds is not used here", "x/f.pto", "tile", None, 0),
        ('attributes {pto.visibility = "external"}', "x/f.pto", "tile", None, 0),
        ("%a: !pto.vreg<64xf32>", "x/f.pto", "micro", None, 0),
        ("pto.tadd", "samples/DecodeA5/f.pto", "tile", "a5", 0),
        ("pto.tadd", "npu/a5/f.pto", "tile", "a5", 0),
        ("pto.tadd", "samples/DecodeA3/f.pto", "tile", "a2a3", 0),
    ],
)
def test_what_a_file_says_about_itself(
    corpus: Any, text: str, path: str, kind: str, target: str | None, level: int
) -> None:
    found = corpus.classified(text, path)
    assert (found.kind, found.target, found.level) == (kind, target, level)


@pytest.mark.parametrize(
    ("text", "sync"),
    [
        ("pto.tadd", "insert"),  # a sample
        ("// RUN: ptoas %s", None),
        ("// RUN: ptoas --enable-insert-sync %s", "insert"),
        ("// RUN: ptoas --enable-canonical-sync --canonical-sync-event-id-max=4 %s", "canonical"),
        ("// RUN: ptoas --pto-arch=a5 --enable-bufid_sync %s", "bufid"),
    ],
)
def test_who_orders_the_pipes_of_a_file(corpus: Any, text: str, sync: str | None) -> None:
    assert corpus.classified(text, "f.pto").sync == sync


@pytest.mark.parametrize(("second", "level"), [("--pto-level=level3", 3), ("", 0)])
def test_parts_have_the_level_of_all_commands(corpus: Any, second: str, level: int) -> None:
    text = f"// RUN: ptoas --pto-level=level3 a\n// RUN: ptoas {second} b"
    assert corpus.classified(text, "f.pto").parts_level == level


@pytest.mark.parametrize(
    ("text", "about"),
    [
        ("// RUN: not ptoas %s", "the language"),
        ("// RUN: not ptoas --pto-backend=vpto %s", "the back end for micro-instructions"),
        ("// RUN: not ptoas %s\nmodule {pto.backend}", "the linker of several back ends"),
    ],
)
def test_who_refuses_a_file(corpus: Any, text: str, about: str) -> None:
    found = corpus.classified(text, "f.pto")
    assert (found.kind, found.about) == ("negative", about)


def test_a_folder(tmp_path: Path) -> None:
    legal = KERNEL.format(operation="pto.tadd")
    texts = {
        "adds.pto": legal,
        "two.pto": f"//--- one.pto\n{legal}\n//--- other.pto\n{legal}",
        "unknown.pto": KERNEL.format(operation="pto.tadded"),
        "breaks.pto": legal.replace("pto.tadd", "pto.tand"),
        "micro.pto": legal + "\n// below\n" + "func.func @g() { pto.vadd }",
        "refused_invalid.pto": KERNEL.format(operation="pto.tadded"),
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    answers = tmp_path / "answers.json"
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "corpus.py"), str(tmp_path), "--json", str(answers),
         "--skip", "agree"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[-1] == "corpus: 3 of 4 load, 2 check clean, 2 run, 0 agree"
    assert "1 of the micro level, 1 that must be refused (1 are)" in lines[-6]
    assert lines[-5] == "print: 3 of 3 are printed, read and printed the same"
    assert lines[-4] == "levels: 2 of 2 convert; 2 of 2 that run leave equal bytes"
    assert lines[-3].startswith("waits: ")
    rows = [line for line in lines if line.startswith("| `")]
    assert [row.split("`")[1] for row in rows] == ["breaks.pto", "unknown.pto"]
    assert "TAND.dtype" in rows[0]
    assert "there is no operation pto.tadded" in rows[1]
    found = {each["file"]: each for each in json.loads(answers.read_text())}
    assert found["adds.pto"]["print"]
    assert found["two.pto"]["levels"]


def test_what_each_file_waits_for_is_listed(corpus: Any, tmp_path: Path) -> None:
    """Once the pipes are ordered: the figures of a file, and of all files together."""
    corpus = importlib.import_module("corpus")
    (tmp_path / "one.pto").write_text(str(program(placed=True, ordered=False)))
    (tmp_path / "two.pto").write_text(str(program(placed=True, ordered=True)))
    found = [
        corpus.judged(tmp_path, frozenset({"agree"}), "release", 10.0, path)
        for path in sorted(tmp_path.iterdir())
    ]
    assert [tuple(v.order or ()) for v in found] == [(2, 0, 1), (2, 0, 0)]
    assert "| `one.pto` | 2 | 0 | 1 | 0 |" in corpus.waits(found)
    assert any("4 waits, 0 barriers, 1 of all pipes" in line for line in corpus.summary(found))


def test_files_that_are_not_read_are_explained_by_name(corpus: Any) -> None:
    found = [
        corpus.Verdict("x/0.pto", "tile", load=False, reasons={"load": "unknown-op: no"}),
        corpus.Verdict("x/1.pto", "tile", load=True),
    ]
    (row,) = [line for line in corpus.unread(found).splitlines() if "pto`" in line]
    assert row.startswith("| `x/0.pto` | `pto.subview` of a tensor view")


def test_the_other_library_is_for_devices_that_have_two(corpus: Any, tmp_path: Path) -> None:
    command = "// RUN: ptoas --pto-backend=vpto --pto-arch={arch} %s\n"
    for arch in ("a3", "a5"):
        path = tmp_path / f"{arch}.pto"
        path.write_text(command.format(arch=arch) + KERNEL.format(operation="pto.tadd"))
        found = corpus.judged(tmp_path, frozenset({"agree"}), "release", 60.0, path)
        assert found.levels, found.reasons


def test_a_file_that_takes_too_long_is_told(corpus: Any, tmp_path: Path) -> None:
    """With what it had come to; nothing is tried on it any more."""
    (tmp_path / "one.pto").write_text(KERNEL.format(operation="pto.tadd"))
    found = corpus.judged(tmp_path, frozenset(), "release", 0.0, tmp_path / "one.pto")
    assert found.reasons == {"load": "time: the file takes more than 0 seconds"}
    assert found.check is None


def test_a_run_goes_on_where_it_was(tmp_path: Path) -> None:
    """Verdicts are taken from the journal, and only of files that it does not name are made."""
    texts, journal = tmp_path / "texts", tmp_path / "journal.jsonl"
    texts.mkdir()
    (texts / "one.pto").write_text(KERNEL.format(operation="pto.tadd"))

    def lines() -> list[str]:
        done = subprocess.run(
            [sys.executable, str(ROOT / "tools" / "corpus.py"), str(texts), "--journal",
             str(journal), "--skip", "run,levels,agree"],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        return [*done.stderr.splitlines(), done.stdout.splitlines()[-1]]

    told, closing = lines()
    assert told.startswith("corpus: 1 of 1, 0 of them")
    assert closing == "corpus: 1 of 1 load, 1 check clean, 0 run, 0 agree"
    (texts / "one.pto").write_text("")  # judged already
    (texts / "two.pto").write_text(KERNEL.format(operation="pto.tand"))
    told, closing = lines()
    assert told.startswith("corpus: 2 of 2, 1 of them")
    assert closing == "corpus: 2 of 2 load, 1 check clean, 0 run, 0 agree"
