"""One verdict at every door: what is a warning eagerly is one lowered, in text and everywhere."""

from __future__ import annotations

import linecache
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import ptokit
from ptokit import InternalError, ProgramError, PtoWarning
from ptokit.base.diagnostics import Diagnostic, UsageError
from ptokit.base.location import Location
from ptokit.frontend.policies import project_policy
from ptokit.isa import INSTRUCTIONS
from ptokit.isa.samples import samples
from ptokit.isa.targets import TARGETS
from ptokit.machine.faults import failure

# An assertion of debug builds that the first TADDS breaks: nothing happens.
SOURCE = """
import numpy as np
from ptokit import *

Empty = Tile[TileType.Vec, float32, 16, 64, BLayout.RowMajor, DYNAMIC, DYNAMIC]

@kernel(mode="auto", target="a2a3")
def scaled(x):
    a, none = Tile[TileType.Vec, float32, 16, 64](), Empty(0, 64)
    TLOAD(a, GlobalTensor(x))
    for _ in range(3):
        TADDS(none, none, 2.0)
    TADDS(a, a, 2.0)
"""
LINE = 12
CODE = "TADDS.non-empty"


@pytest.fixture(autouse=True)
def known_outcome(monkeypatch: pytest.MonkeyPatch) -> None:
    """The record says what happens, whatever the table says today."""
    insn = INSTRUCTIONS["TADDS"]
    rules = [replace(r, otherwise="nothing happens") if r.id == "non-empty" else r
             for r in insn.rules]  # fmt: skip
    monkeypatch.setitem(insn.__dict__, "rules", tuple(rules))


@pytest.fixture
def module(tmp_path: Path) -> Callable[..., Any]:
    """The kernel in a file of its own, with a comment on the line that breaks the rule."""

    def load(comment: str = "", **files: str) -> Any:
        for name, text in files.items():
            (tmp_path / name.replace("_toml", ".toml")).write_text(text, "utf-8")
        lines = SOURCE.splitlines()
        lines[LINE - 1] += comment
        path = tmp_path / "scaling.py"
        path.write_text("\n".join(lines), "utf-8")
        names: dict[str, Any] = {}
        exec(compile(path.read_text("utf-8"), str(path), "exec"), names)
        project_policy.cache_clear()
        linecache.checkcache()
        return names["scaled"]

    return load


def arrays() -> tuple[Any, ...]:
    return (np.ones((16, 64), np.float32),)


def said(found: Any) -> list[tuple[str, str, int]]:
    return [(d.code, d.severity, d.location.line) for d in found]


# Each gives all findings of the kernel, or raises the errors among them.
def doors() -> Iterator[tuple[str, Callable[..., Any]]]:
    def launched(**how: Any) -> Callable[..., Any]:
        return lambda kernel, **options: kernel[2](*arrays(), **how, **options).warnings

    yield "eager", launched()
    yield "eager, reference", launched(engine="reference")
    yield "eager, another schedule", launched(seed=3)
    yield "lowered", launched(path="lowered")
    yield "lowered, reference", launched(path="lowered", engine="reference")
    yield "lowered, two threads", launched(path="lowered", jobs=2)
    yield "check", lambda kernel, **options: checked(kernel, **options)
    yield "device", lambda kernel, **options: by_hand(kernel, **options)


def checked(kernel: Any, **options: Any) -> list[Diagnostic]:
    report = kernel.check("a2a3", *arrays(), **options)
    if not report:
        raise ProgramError(report.diagnostics)
    return report.diagnostics


def by_hand(kernel: Any, **options: Any) -> list[Diagnostic]:
    with ptokit.device("a2a3", "auto", **options) as machine:
        kernel.function(*arrays())
    return list(machine.warnings)


every_door = pytest.mark.parametrize("door", [pytest.param(f, id=n) for n, f in doors()])


@every_door
def test_a_warning_is_one_everywhere_once_per_line(door: Any, module: Any) -> None:
    assert said(door(module())) == [(CODE, "warning", LINE)]


@every_door
def test_strict_makes_it_an_error_everywhere(door: Any, module: Any) -> None:
    with pytest.raises(ProgramError) as error:
        door(module(), rules="strict")
    assert said(error.value.diagnostics) == [(CODE, "error", LINE)]


@every_door
def test_release_keeps_the_warning(door: Any, module: Any) -> None:
    assert said(door(module(), rules="release")) == [(CODE, "warning", LINE)]


@every_door
@pytest.mark.parametrize("allow", [CODE, f"{CODE}@scaling.py", f"{CODE}@scaling.py:{LINE}"])
@pytest.mark.parametrize("rules", ["default", "strict"])
def test_allowed_is_silent_everywhere(door: Any, module: Any, allow: str, rules: str) -> None:
    """By id, for a file and for a line; the rule may be an error."""
    assert said(door(module(), rules=rules, allow={allow})) == []


@every_door
@pytest.mark.parametrize("allow", ["PA-0020", f"{CODE}@other.py", f"{CODE}@scaling.py:{LINE + 1}"])
def test_nothing_else_is_silenced(door: Any, module: Any, allow: str) -> None:
    assert said(door(module(), allow={allow})) == [(CODE, "warning", LINE)]


@every_door
def test_a_comment_on_the_line_silences(door: Any, module: Any) -> None:
    assert said(door(module(f"  # ptokit: allow PA-0020, {CODE}"))) == []
    assert said(door(module("  # ptokit: allow PA-0020"))) == [(CODE, "warning", LINE)]


@pytest.mark.parametrize(
    ("name", "table"), [("ptokit_toml", ""), ("pyproject_toml", "[tool.ptokit]\n")]
)
@pytest.mark.parametrize("door", [f for n, f in doors() if n != "device"])
def test_a_project_file_speaks_for_the_kernels_below(
    door: Any, module: Any, name: str, table: str
) -> None:
    kernel = module(**{name: f'{table}allow = ["{CODE}@scaling.py"]\n'})
    assert said(door(kernel)) == []
    kernel = module(**{name: f'{table}rules = "strict"\n'})
    with pytest.raises(ProgramError):
        door(kernel)
    assert said(door(kernel, rules="default")) == [(CODE, "warning", LINE)]


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ('rules = "lax"', "lax"),
        ('allow = ["PA-44"]', "PA-0044"),
        ("alow = []", "alow"),
        ("rules = ", "Invalid"),
    ],
)
def test_a_wrong_project_file_is_refused_by_name(module: Any, text: str, word: str) -> None:
    with pytest.raises(UsageError) as error:
        module(ptokit_toml=text)[1](*arrays())
    assert word in str(error.value)
    assert "ptokit.toml" in str(error.value)


def test_text_checks_and_runs_alike(module: Any) -> None:
    text = module().text(*arrays())
    program = ptokit.loads(text)
    (found,) = program.check()
    assert (found.code, found.severity) == (CODE, "warning")
    assert found.location is not None
    (same,) = program["scaled"][2](*arrays()).warnings
    assert said([same]) == said([found])
    assert program.check(rules="strict")[0].severity == "error"
    lines = text.splitlines()
    lines[found.location.line - 1] += f"  // ptokit: allow {CODE}"
    silenced = ptokit.loads("\n".join(lines))
    assert not silenced.check(rules="strict")
    assert not silenced["scaled"][2](*arrays()).warnings


# ---- what may be allowed -----------------------------------------------------------------------


@pytest.mark.parametrize("allow", ["PA-20", "TADS.non-empty", "E99"])
def test_an_unknown_id_is_a_usage_error_with_near_names(module: Any, allow: str) -> None:
    with pytest.raises(UsageError) as error:
        module()[1](*arrays(), allow=[allow])
    assert error.value.codes == ("allow",)
    assert "did you mean" in error.value.diagnostics[0].fix


def test_an_unknown_profile_is_a_usage_error(module: Any) -> None:
    with pytest.raises(UsageError) as error:
        module()[1](*arrays(), rules="stric")
    assert "strict" in error.value.diagnostics[0].fix


def test_what_does_not_compile_cannot_be_allowed() -> None:
    tile = ptokit.Tile[ptokit.TileType.Vec, ptokit.float32, 16, 64]
    other = ptokit.Tile[ptokit.TileType.Vec, ptokit.float16, 16, 64]
    with ptokit.device("a2a3", "auto", allow=["TADD.same-dtype"]):
        a, b = tile(), other()
        a.fill(1)
        b.fill(1)
        with pytest.raises(ProgramError) as error:
            ptokit.TADD(a, a, b)
    (found,) = error.value.diagnostics
    assert found.code == "TADD.same-dtype"
    assert "does not help" in found.notes[-1].text


def test_what_nothing_enforces_can_be_allowed_though_nobody_knows_what_happens() -> None:
    """The program then means what it says; what cannot be computed is told with the rule."""
    tile = ptokit.Tile[ptokit.TileType.Vec, ptokit.float32, 2, 64]

    def run(**options: Any) -> float:
        with ptokit.device("a2a3", **options):
            a = tile()
            ptokit.TASSIGN(a, 0x000)
            a.fill(6)
            ptokit.TFMODS(a, a, 4.0)  # dst serves as scratch
            return a.numpy()[0, 0]

    with pytest.raises(ProgramError) as error:
        run()
    assert error.value.codes == ("TFMODS.separate",)
    assert run(allow=["TFMODS.separate"]) == 2


def test_a_body_that_fails_blames_the_rule_that_was_let_through() -> None:
    insn = INSTRUCTIONS["TADD"]
    legal = next(iter(samples(insn, TARGETS["a2a3"])))
    here = Location("kernel.py", 3)
    found = failure(SimpleNamespace(insn=insn, ops=legal.facts()), ValueError("shapes"), here)
    assert isinstance(found, InternalError)
    dst: Any = replace(legal.operands["dst"], valid_row=3)  # type: ignore[type-var]
    broken = replace(legal, operands={**legal.operands, "dst": dst})
    found = failure(SimpleNamespace(insn=insn, ops=broken.facts()), ValueError("shapes"), here)
    assert isinstance(found, ProgramError)
    (rule,) = found.diagnostics
    assert (rule.code, rule.severity) == ("PA-0020", "error")
    assert "shapes" in rule.notes[-1].text


def test_a_race_can_be_allowed_where_it_is() -> None:
    @ptokit.kernel(target="a2a3")
    def racing(x: Any) -> None:
        a = ptokit.Tile[ptokit.TileType.Vec, ptokit.float32, 16, 64]()
        ptokit.TASSIGN[0](a)
        ptokit.TLOAD(a, ptokit.GlobalTensor(x))
        ptokit.TADDS(a, a, 2.0)
        ptokit.pipe_barrier(ptokit.PIPE_ALL)

    with pytest.raises(ProgramError) as error:
        racing[1](arrays()[0])
    (found,) = error.value.diagnostics
    assert found.location is not None
    here = f"{found.code}@{Path(__file__).name}:{found.location.line}"
    assert not racing[1](arrays()[0], allow={here}).warnings
    with pytest.raises(ProgramError):
        racing[1](arrays()[0], allow={here.replace(str(found.location.line), "1")})


def test_a_hang_cannot_be_allowed() -> None:
    @ptokit.kernel(target="a2a3")
    def hanging(x: Any) -> None:
        ptokit.wait_flag(ptokit.PIPE_MTE2, ptokit.PIPE_V, ptokit.EVENT_ID0)  # ptokit: allow E1

    with pytest.raises(ProgramError) as error:
        hanging[1](arrays()[0], allow=["E1"])
    (found,) = error.value.diagnostics
    assert found.code == "E1"
    assert "does not help" in found.notes[-1].text


# ---- what the user sees ------------------------------------------------------------------------


def test_python_shows_a_warning_at_the_line_of_the_user(module: Any) -> None:
    kernel = module()
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("default", PtoWarning)
        kernel[2](*arrays())
    (found,) = shown
    assert (Path(found.filename).name, found.lineno) == ("scaling.py", LINE)
    for word in (CODE, "an assertion of debug builds", "otherwise: nothing happens"):
        assert word in str(found.message)


@pytest.mark.parametrize("door", ["lower", "text", "cpp"])
def test_doors_that_give_no_report_show_warnings_too(module: Any, door: str) -> None:
    kernel = module()
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always", PtoWarning)
        for _ in range(2):
            getattr(kernel, door)(*arrays())
    assert [w.lineno for w in shown] == [LINE]
    program = ptokit.loads(kernel.text(*arrays()))
    with pytest.warns(PtoWarning, match=CODE):
        program.cpp()
    with pytest.warns(PtoWarning, match=CODE):
        program.convert("l3")


def test_a_kernel_may_carry_its_policy(module: Any) -> None:
    kernel = module()
    strict = ptokit.kernel(mode="auto", rules="strict")(kernel.function)
    with pytest.raises(ProgramError):
        strict[1](*arrays())
    assert not strict[1](*arrays(), allow=[CODE]).warnings
    assert strict[1](*arrays(), rules="default").warnings
    with pytest.raises(UsageError):
        ptokit.kernel(allow=["PA-44"])(kernel.function)


def test_a_verdict_is_not_taken_from_another_profile(module: Any) -> None:
    """Modules, arenas and calls are kept per policy."""
    kernel = module()
    for path in ("eager", "lowered"):
        for _ in range(2):
            assert kernel[1](*arrays(), path=path).warnings
            assert not kernel[1](*arrays(), path=path, allow=[CODE]).warnings
            with pytest.raises(ProgramError):
                kernel[1](*arrays(), path=path, rules="strict")


def test_advice_is_looked_for_once(module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not by every launch of a kernel."""
    looked: list[Any] = []
    monkeypatch.setattr("ptokit.isa.remedies.remedies", lambda *a: looked.append(a) or "")
    kernel = module()
    for _ in range(3):  # tiles may change places among the memories that are there
        kernel[1](*arrays())
    first = len(looked)
    for _ in range(3):
        assert kernel[1](*arrays()).warnings
    assert 0 < first == len(looked)
