"""The plugin of pytest: the fixture `pto`, the mark of the same name, options `--pto-...`.

pytest loads this module in every project of an environment that has ptokit, so that nothing is
imported here before a test asks for it.
"""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Generator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest
from _pytest._code.code import ReprFileLocation, TerminalRepr
from _pytest._io import TerminalWriter

from ptokit.base.dataclass import dataclass

if TYPE_CHECKING:
    import numpy as np

    from ptokit.base.layout import Array
    from ptokit.kernels import Kernel, Launch, Run

_MARKED = ("targets", "paths", "seeds")
_MARK = """\
pto(targets=None, paths=None, seeds=None): what the fixture pto stands for: names of devices
("a5", "all"), of paths ("eager", "lowered"), and how many seeds, or which"""


@dataclass(frozen=True)
class Pto:
    """How the kernels of one test are run: the value of the fixture `pto`."""

    target: str
    path: str
    seed: int  # of random values; from 1 on also of the order in which cores and pipes work
    rules: str | None = None
    schedules: int = 0  # so many must give the same bytes

    def run(self, launch: Launch | Kernel, *args: Any, **options: Any) -> Run:
        """Launch a kernel, `pto.run(softmax[4], x, y)`; arrays are updated in place.

        The options are those of a launch and win over what the test is run with.
        """
        __tracebackhide__ = True
        from ptokit.base.diagnostics import usage_error
        from ptokit.kernels import Kernel, Launch

        if not isinstance(launch, Kernel | Launch):
            raise usage_error(
                "argument-type",
                "pto.run launches a kernel",
                got=[("given", type(launch).__name__)],
                fix="pto.run(name[1], x, y), where name is a function under @kernel",
            )
        chosen = launch[1] if isinstance(launch, Kernel) else launch
        asked: dict[str, Any] = {"target": self.target, "rules": self.rules} | options
        if chosen.kernel.source.function is not None:
            asked.setdefault("path", self.path)  # there is one way through texts and C++
        if self.schedules:
            self._explore(chosen, deepcopy(args), asked)
        asked.setdefault("seed", self.seed or None)
        return chosen(*args, **asked)

    def _explore(self, launch: Launch, args: Sequence[Any], asked: dict[str, Any]) -> None:
        from ptokit.base.diagnostics import ProgramError

        kept = {name: value for name, value in asked.items() if name not in ("seed", "schedule")}
        found = launch.explore(*args, schedules=self.schedules, **kept).found
        if found:
            raise ProgramError(found)

    @cached_property
    def rng(self) -> np.random.Generator:
        """The source of the random numbers of this test: the same ones whenever it is run."""
        import numpy as np

        return np.random.default_rng(self.seed)

    def random(self, shape: int | tuple[int, ...], element: Any = "f32") -> Array:
        """Normally distributed values, or whole numbers from -8 (unsigned: from 0) to 8.

        Every call draws others, and every run of the test the same.
        """
        from ptokit.base.dtypes import dtype

        kind = dtype(element)
        if kind.is_float:
            return self.rng.standard_normal(shape).astype(kind.np)
        low = -8 if kind.is_signed else 0
        return self.rng.integers(low, 8, shape, endpoint=True).astype(kind.np)

    def zeros(self, shape: int | tuple[int, ...], element: Any = "f32") -> Array:
        """An array for results."""
        import numpy as np

        from ptokit.base.dtypes import dtype

        return np.zeros(shape, dtype(element).np)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("ptokit", "kernels of NPUs (the fixture pto)")
    group.addoption("--pto-targets", metavar="NAMES", help="Devices, with commas; all: every one.")
    group.addoption("--pto-paths", metavar="NAMES", help="eager, lowered, or both with a comma.")
    group.addoption("--pto-seeds", type=_count, metavar="N", help="Run every test with N seeds.")
    group.addoption(
        "--pto-explore", type=_schedules, nargs="?", const=100, default=0, metavar="N",
        help="Run every launch under N schedules (100); all must give the same bytes.",
    )  # fmt: skip
    group.addoption(
        "--pto-rules", choices=["default", "strict", "release"],
        help="strict: warnings fail as well; release: what the device does.",
    )  # fmt: skip


def _count(word: str) -> int:
    if not word.isdecimal() or int(word) == 0:
        raise ArgumentTypeError(f"{word!r} is not a whole number of 1 or more")
    return int(word)


def _schedules(word: str) -> int:
    if not word.isdecimal():  # as in `pytest --pto-explore tests`
        advice = "write --pto-explore=100, or put the option last"
        raise ArgumentTypeError(f"{word!r} is not a number of schedules: {advice}")
    return int(word)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", " ".join(_MARK.split()))
    _targets(config.getoption("pto_targets"))  # what is wrong is told once, not for every test
    _paths(config.getoption("pto_paths"))


@pytest.fixture
def pto(request: pytest.FixtureRequest) -> Pto:
    """Runs kernels on one target, on one path, with one seed: `pto.run(kernel[1], x, y)`.

    `pto.random(shape)` and `pto.zeros(shape)` make arrays; --pto-targets, --pto-paths, --pto-seeds
    and the mark `pto` say what a test is run with.
    """
    asked = getattr(request, "param", None)
    if asked is None:  # it was asked for by name while the test ran
        asked = _runs(request.config, {})[0]
    return replace(asked)  # with random numbers of its own


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test once for each target, path and seed that is asked for and that its mark allows.

    Where these have nothing in common pytest skips the test.
    """
    if "pto" not in metafunc.fixturenames:
        return
    marks: dict[str, Any] = {}
    for mark in reversed(list(metafunc.definition.iter_markers("pto"))):
        unknown = [*map(repr, mark.args), *(set(mark.kwargs) - {*_MARKED})]
        if unknown:
            raise pytest.UsageError(
                f"{metafunc.definition.nodeid}: pytest.mark.pto takes {', '.join(_MARKED)} by "
                f"name; not {unknown[0]}"
            )
        marks |= mark.kwargs
    runs = _runs(metafunc.config, marks)
    ids = [f"{each.target}-{each.path}-{each.seed}" for each in runs]
    metafunc.parametrize("pto", runs, ids=ids, indirect=True)


def _runs(config: pytest.Config, marks: Mapping[str, Any]) -> list[Pto]:
    """What is asked for and allowed, in every combination."""
    option = config.getoption
    cases = product(
        _chosen(_targets(option("pto_targets")), _targets(marks.get("targets")), "a2a3"),
        _chosen(_paths(option("pto_paths")), _paths(marks.get("paths")), "eager"),
        _chosen(_seeds(option("pto_seeds")), _seeds(marks.get("seeds")), 0),
    )
    rules: str | None = option("pto_rules")
    schedules: int = option("pto_explore") or 0
    return [Pto(*case, rules, schedules) for case in cases]


def _chosen(asked: list[Any] | None, allowed: list[Any] | None, otherwise: Any) -> list[Any]:
    if asked is None or allowed is None:
        return asked or allowed or [otherwise]
    return [each for each in asked if each in allowed]


def _targets(given: str | Sequence[str] | None) -> list[str] | None:
    if given is None:
        return None
    from ptokit.isa.targets import ALIASES, TARGETS

    known = [name for name in TARGETS if name != "cpu"]
    named = _words(given, "targets", [*known, *ALIASES, "cpu", "all"]) or []
    spread = [each for name in named for each in (known if name == "all" else [name])]
    return [*dict.fromkeys(ALIASES.get(name, name) for name in spread)]


def _paths(given: str | Sequence[str] | None) -> list[str] | None:
    return _words(given, "paths", ["eager", "lowered"])


def _words(given: str | Sequence[str] | None, what: str, known: list[str]) -> list[str] | None:
    """Words of an option, with commas, or of a mark."""
    if given is None:
        return None
    words = [w.strip() for w in given.split(",")] if isinstance(given, str) else list(given)
    for word in words:
        if word not in known:
            raise pytest.UsageError(f"pto: {what} are {', '.join(known)}; not {word!r}")
    return words


def _seeds(given: int | Sequence[int] | None) -> list[int] | None:
    if given is None:
        return None
    return list(range(given)) if isinstance(given, int) else list(given)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show what was found in a kernel at the kernel's line instead of a traceback."""
    report = yield
    if call.excinfo is None or item.config.getoption("fulltrace"):
        return report
    error = call.excinfo.value
    if type(error).__module__.partition(".")[0] == "ptokit" and report.failed:
        from ptokit.base.diagnostics import InternalError, PtoError

        if isinstance(error, PtoError) and not isinstance(error, InternalError):
            report.longrepr = Findings(error, call.excinfo.traceback)
    return report


class Findings(TerminalRepr):
    """What pytest prints of a kernel in which something was found."""

    def __init__(self, error: Any, traceback: Any) -> None:
        first = error.diagnostics[0]
        own = [entry for entry in traceback if not entry.ishidden(None)] or list(traceback)
        called = own[-1]
        line = called.lineno + 1
        self.reprcrash = ReprFileLocation(
            first.location.file if first.location else str(called.path),
            first.location.line if first.location else line,
            f"{first.severity}[{first.code}]: {first.message}",
        )
        self._text = str(error).strip("\n")
        self._called = f"{called.path}:{line}: launched here"

    def toterminal(self, tw: TerminalWriter) -> None:
        for line in self._text.splitlines():
            is_head = ": error[" in line or ": warning[" in line
            tw.line(line, red=is_head, bold=is_head)
        tw.line()
        tw.line(self._called)
