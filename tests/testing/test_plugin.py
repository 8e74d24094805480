"""The plugin of pytest, as a project sees it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = """
import numpy as np
import pytest

from ptokit import *
from ptokit.testing import assert_tile_equal

T = Tile[TileType.Vec, float32, 16, 64]


@kernel(mode="auto")
def twice(x, y):
    t = T()
    TLOAD(t, GlobalTensor(x))
    TADD(t, t, t)
    TSTORE(GlobalTensor(y), t)


@kernel
def racy(x, y):
    t = T()
    TASSIGN(t, 0)
    TLOAD(t, GlobalTensor(x))
    TSTORE(GlobalTensor(y), t)  # the line that is shown


def arrays(pto):
    return pto.random((16, 64)), pto.zeros((16, 64))


def test_right(pto):
    x, y = arrays(pto)
    run = pto.run(twice, x, y)
    assert (run.target.name, run.path) == (pto.target, pto.path)
    assert_tile_equal(y, x * 2)


def test_race(pto):
    pto.run(racy[1], *arrays(pto))


def test_unchecked_race(pto):
    pto.run(racy[1], *arrays(pto), check=False)


@pytest.mark.pto(targets="a5", paths="lowered", seeds=2)
def test_marked(pto):
    assert (pto.target, pto.path) == ("a5", "lowered")
    first, second = pto.random((4,)).tolist(), pto.random((4,)).tolist()
    assert first != second  # operands that are exchanged make a difference
    again = np.random.default_rng(pto.seed).standard_normal(8).astype("f4").tolist()
    assert first + second == again  # the same whenever the test is run


@pytest.mark.pto(targets=["kirin9030"])
def test_elsewhere(pto):
    pass


@pytest.fixture
def drawn(pto):
    return pto.random((4,))


def test_of_another_fixture(drawn, request):
    assert request.getfixturevalue("pto").random((4,)).tolist() != drawn.tolist()


def test_by_name(request):
    assert request.getfixturevalue("pto").target == "a2a3"


def test_no_kernel(pto):
    pto.run(arrays, 1)


def test_wrong_result():
    assert_tile_equal(np.zeros((2, 3), "f4"), np.eye(2, 3, 1))


def test_without_the_fixture():
    x = np.ones((16, 64), np.float32)
    racy[1](x, x.copy())
"""


def run(folder: Path, *options: str) -> str:
    (folder / "test_kernels.py").write_text(PROJECT)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rA", "--color=no"]
    if "ptokit" not in _entry_points():
        command += ["-p", "ptokit.pytest_plugin"]
    done = subprocess.run(
        [*command, "-c", "/dev/null", "--rootdir", str(folder), *options, str(folder)],
        capture_output=True, text=True, cwd=folder, timeout=300,
    )  # fmt: skip
    return done.stdout + done.stderr


def _entry_points() -> set[str]:
    from importlib.metadata import entry_points

    return {each.name for each in entry_points(group="pytest11")}


def outcomes(told: str) -> dict[str, str]:
    """What became of each test."""
    words = [line.split(" - ")[0].split() for line in told.splitlines()]
    return {
        line[1].partition("::")[2]: line[0]
        for line in words
        if line[:1] in (["PASSED"], ["FAILED"], ["ERROR"])
    }


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> str:
    return run(tmp_path_factory.mktemp("project"))


def test_what_becomes_of_each_test(plain: str) -> None:
    assert outcomes(plain) == {
        "test_right[a2a3-eager-0]": "PASSED",
        "test_race[a2a3-eager-0]": "FAILED",
        "test_unchecked_race[a2a3-eager-0]": "PASSED",
        "test_marked[a5-lowered-0]": "PASSED",
        "test_marked[a5-lowered-1]": "PASSED",
        "test_elsewhere[kirin9030-eager-0]": "PASSED",
        "test_of_another_fixture[a2a3-eager-0]": "PASSED",
        "test_by_name": "PASSED",
        "test_no_kernel[a2a3-eager-0]": "FAILED",
        "test_wrong_result": "FAILED",
        "test_without_the_fixture": "FAILED",
    }


def test_a_finding_is_shown_at_the_line_of_the_kernel(plain: str) -> None:
    shown = next(s for s in plain.split("\n___") if s.startswith("_") and " test_race" in s)
    line = 1 + PROJECT.splitlines().index(
        "    TSTORE(GlobalTensor(y), t)  # the line that is shown"
    )
    assert f"test_kernels.py:{line}:5: error[E6] [a2a3]: TSTORE on PIPE_MTE3" in shown
    assert "  fix: set_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0)" in shown
    launched = 1 + PROJECT.splitlines().index("    pto.run(racy[1], *arrays(pto))")
    assert f"test_kernels.py:{launched}: launched here" in shown
    assert "Traceback" not in shown
    assert "ptokit/" not in shown
    assert "test_without_the_fixture - error[E6]: TSTORE" in plain


def test_what_is_no_kernel_is_told(plain: str) -> None:
    assert "error[argument-type]: pto.run launches a kernel" in plain
    assert "  got: given = function" in plain


def test_a_wrong_result_is_shown_as_a_picture(plain: str) -> None:
    assert "E         first at row 0, column 1: 0.0, expected 1.0" in plain
    assert "E         0 | @\n" in plain
    assert "E         1 |  @\n" in plain


def test_options_choose_targets_paths_and_seeds(tmp_path: Path) -> None:
    chosen = ("--pto-targets=all", "--pto-paths=eager,lowered", "--pto-seeds=2")
    found = outcomes(run(tmp_path, *chosen, "-k", "right or marked or elsewhere"))
    targets, paths = ("a2a3", "a5", "kirin9030", "kirinx90"), ("eager", "lowered")
    assert found == {
        **{f"test_right[{t}-{p}-{s}]": "PASSED" for t in targets for p in paths for s in (0, 1)},
        **{f"test_marked[a5-lowered-{s}]": "PASSED" for s in (0, 1)},
        **{f"test_elsewhere[kirin9030-{p}-{s}]": "PASSED" for p in paths for s in (0, 1)},
    }


def test_exploration_finds_what_no_check_was_asked_for(tmp_path: Path) -> None:
    told = run(tmp_path, "--pto-explore=20", "-k", "unchecked or right")
    assert outcomes(told) == {
        "test_right[a2a3-eager-0]": "PASSED",
        "test_unchecked_race[a2a3-eager-0]": "FAILED",
    }
    assert "test_kernels.py" in told
    assert "error[schedule-dependent]" in told


@pytest.mark.parametrize(
    ("option", "told"),
    [
        ("--pto-targets=a7", "ERROR: pto: targets are a2a3, a5, kirin9030, kirinx90, a2, a3, cpu"),
        ("--pto-targets=", "not ''"),
        ("--pto-paths=slow", "ERROR: pto: paths are eager, lowered; not 'slow'"),
        ("--pto-seeds=0", "--pto-seeds: '0' is not a whole number of 1 or more"),
        ("--pto-seeds=-2", "--pto-seeds: '-2' is not a whole number"),
        ("--pto-explore=-1", "--pto-explore: '-1' is not a number of schedules"),
        ("--pto-explore", "write --pto-explore=100, or put the option last"),  # a file follows
    ],
)
def test_a_word_that_is_none(tmp_path: Path, option: str, told: str) -> None:
    found = run(tmp_path, option)
    assert told in found
    assert "Traceback" not in found
    assert not outcomes(found)


def test_all_targets_include_those_that_are_named(tmp_path: Path) -> None:
    found = outcomes(run(tmp_path, "--pto-targets=a5,all", "-k", "right"))
    targets = ("a5", "a2a3", "kirin9030", "kirinx90")
    assert found == {f"test_right[{t}-eager-0]": "PASSED" for t in targets}


@pytest.mark.parametrize("mark", ['target="a5"', '"a5"'])
def test_a_mark_that_says_nothing_is_refused(tmp_path: Path, mark: str) -> None:
    """A misspelt word would let the test run on the default target, and pass."""
    (tmp_path / "test_marks.py").write_text(
        f"import pytest\n\n\n@pytest.mark.pto({mark})\ndef test_it(pto):\n    pass\n"
    )
    found = run(tmp_path, "-k", "test_it")
    word = mark.partition("=")[0].replace('"', "'")
    assert f"pytest.mark.pto takes targets, paths, seeds by name; not {word}" in found
    assert "test_marks.py::test_it" in found


def test_the_fixture_is_listed(tmp_path: Path) -> None:
    assert "Runs kernels on one target, on one path, with one seed" in run(tmp_path, "--fixtures")


def test_nothing_is_loaded_where_nobody_asks() -> None:
    code = "import sys, ptokit.pytest_plugin; print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
