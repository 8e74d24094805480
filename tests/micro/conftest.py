"""What micro-operations mean is tested as they are executed, and as a launch repeats them."""

from __future__ import annotations

from typing import Any

import pytest

from ptokit.engines.compiled.library import library
from ptokit.kernels import execution
from ptokit.kernels.execution import Execution

STEPWISE, REPEATED = "stepwise", "repeated"
MEANING = {"test_memory", "test_logical_formulas", "test_logical_python"}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run tests of meaning both ways."""
    if metafunc.definition.path.stem in MEANING and library() is not None:
        metafunc.fixturenames.append("manner")
        metafunc.parametrize("manner", [STEPWISE, REPEATED], indirect=True)


@pytest.fixture
def manner(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How launches are run. One that is repeated begins anew with what its arrays held, also where
    data decide what it does: they decide the same."""
    if request.param == REPEATED:
        once = Execution.run

        def twice(self: Any) -> Any:
            before = [array.copy() for array in self._arrays]
            done = once(self)
            if self._is_repeatable:
                after = [array.copy() for array in self._arrays]
                _restore(self._arrays, before)
                self.__dict__.pop("_known", None)  # there is a verdict by now
                if self._repeated() is None:
                    _restore(self._arrays, after)
            return done

        monkeypatch.setattr(execution, "reads_no_data", lambda module: True)
        monkeypatch.setattr(Execution, "run", twice)
    return request.param


def _restore(arrays: Any, contents: Any) -> None:
    for array, content in zip(arrays, contents, strict=True):
        if array.flags.writeable:
            array[...] = content
