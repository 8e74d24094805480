"""Options of the test suite."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator

import hypothesis
import pytest

from ptokit.engines import ENGINES
from ptokit.machine.machine import Machine

# How long an example takes depends on what else the machine does: no test asks.
hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="write what comes out as the expected files; look at the difference before committing",
    )


def pytest_configure(config: pytest.Config) -> None:
    # Not in pyproject.toml: pytest would import the package before the plugins it is given.
    config.addinivalue_line("filterwarnings", "ignore::ptokit.PtoWarning")
    if config.getoption("--update-golden") and os.environ.get("CI"):
        raise pytest.UsageError("--update-golden has no place in CI: expected files are reviewed")


@pytest.fixture
def ends_its_processes() -> Iterator[None]:
    """A test leaves no process behind; those of C++ programs, from before, may stay."""
    before = {each.pid for each in multiprocessing.active_children()}
    yield
    assert {each.pid for each in multiprocessing.active_children()} <= before


# ---- engines -------------------------------------------------------------------------------------

# What an instruction means is tested on every engine; these are about the table itself.
ABOUT_THE_TABLE = {
    "test_table",
    "test_bounds",
    "test_asm",
    "test_spec",
    "test_sentences",
    "test_meaning",
    "test_new_instruction",
}
MEANING = {"isa", "seeds", "test_fifo", "test_mpipe"}  # folders and modules


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run tests of meaning once per engine."""
    path = metafunc.definition.path
    wanted = bool(MEANING & {path.parent.name, path.stem}) and path.stem not in ABOUT_THE_TABLE
    if wanted or "engine" in metafunc.fixturenames:
        if "engine" not in metafunc.fixturenames:
            metafunc.fixturenames.append("engine")
        metafunc.parametrize("engine", ["fast", "reference"], indirect=True)


@pytest.fixture
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """An engine by name; machines that are made during the test execute instructions on it."""
    monkeypatch.setattr(Machine, "executor_type", staticmethod(ENGINES[request.param].executor))
    return request.param
