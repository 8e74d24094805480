"""The constants of a kernel, tried one by one: which settings are right, and which is fastest."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, replace
from itertools import product
from math import inf
from pathlib import Path
from typing import Any

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import (
    InternalError,
    PtoError,
    PtoWarning,
    UsageError,
    usage_error,
)
from ptokit.base.files import write_text
from ptokit.tasks import Executor, Journal, Task, Work

_SHOWN = 20  # settings of a table


@dataclass(frozen=True)
class Trial:
    """A setting, and what became of it."""

    constants: Mapping[str, Any]
    us: float = inf
    reason: str = ""  # why it was discarded

    def __str__(self) -> str:
        named = ", ".join(f"{name}={value}" for name, value in self.constants.items())
        return f"{named}: {self.reason or f'{self.us:.1f} us'}"


def trial(setting: Mapping[str, Any], time: Callable[[], float]) -> Trial:
    """A setting with its time in microseconds, or with the reason why it is none."""
    try:
        with warnings.catch_warnings(action="ignore", category=PtoWarning):
            return Trial(setting, time())
    except (InternalError, UsageError):  # a call that no setting would make right
        raise
    except PtoError as error:
        found = error.diagnostics[0]
        return Trial(setting, reason=f"{found.code}: {found.message}")
    except Exception as error:  # of the kernel's own: what it refuses is discarded
        return Trial(setting, reason=f"{type(error).__name__}: {error}")


@dataclass(frozen=True)
class Tuned:
    """Every setting of a kernel that was tried, the fastest first, those discarded last."""

    kernel: str
    about: str  # what the result depends on: another program, target or size is another result
    trials: tuple[Trial, ...]

    @property
    def best(self) -> Trial:
        """The fastest setting; an error where none is right."""
        if not self.trials or self.trials[0].reason:
            raise usage_error(
                "tune",
                f"no setting of {self.kernel} is right",
                got=[("first", self.trials[0].reason if self.trials else "none was tried")],
                fix="try others: --set NAME=VALUE,VALUE",
            )
        return self.trials[0]

    def as_dict(self) -> dict[str, Any]:
        """The result, for a file."""
        trials = [
            {k: v for k, v in asdict(each).items() if v not in (inf, "")} for each in self.trials
        ]
        return {"kernel": self.kernel, "about": self.about, "trials": trials}

    @property
    def text(self) -> str:
        """What a file of the result holds."""
        return json.dumps(self.as_dict(), indent=1) + "\n"

    def write(self, path: str | Path) -> None:
        """Keep the result in a file."""
        write_text(path, self.text)

    @staticmethod
    def read(path: str | Path) -> Tuned:
        """A result that was kept."""
        try:
            data = json.loads(Path(path).read_text("utf-8"))
            trials = tuple(Trial(**each) for each in data["trials"])
            return Tuned(data["kernel"], data["about"], trials)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise usage_error(
                "tune", f"{path} is no result of tuning: {error}", fix="write it anew: ptokit tune"
            ) from None

    def __str__(self) -> str:
        good = [each for each in self.trials if not each.reason]
        bad = len(self.trials) - len(good)
        lines = [f"{self.kernel}: {len(good)} settings, {bad} discarded"]
        for each in self.trials[:_SHOWN]:
            share = "" if each.reason else f"  {each.us / good[0].us:5.2f} x"
            lines.append(f"  {each}{share}")
        more = len(self.trials) - _SHOWN
        return "\n".join([*lines, *([f"  and {more} more"] if more > 0 else [])])


def settings(choices: Mapping[str, Sequence[Any]]) -> Iterator[dict[str, Any]]:
    """Every combination of values."""
    for values in product(*choices.values()):
        yield dict(zip(choices, values, strict=True))


@dataclass(frozen=True)
class Tries:
    """How settings are tried.

    Processes of this machine take `here` as it is. Other machines are `sent` the launches of a
    setting as data, and do `there` with both; what cannot be sent is tried here.
    """

    here: Callable[[Mapping[str, Any]], Trial]
    sent: Callable[[Mapping[str, Any]], Any]
    there: Work

    def results(
        self, left: Sequence[Mapping[str, Any]], executor: Executor, journal: Journal | None
    ) -> Iterator[Trial]:
        """What became of each setting, as it comes."""
        stayed: list[Trial] = []

        def tasks() -> Iterator[Task]:
            for setting in left:
                name, launches = repr(dict(setting)), None
                is_known = journal is not None and journal.known(name) is not None
                if executor.is_remote and not is_known:
                    try:
                        launches = self.sent(setting)
                    except PtoError:  # it breaks a rule, or is Python that no text says
                        stayed.append(self.here(setting))
                        continue
                yield Task(name, (setting, launches) if executor.is_remote else (setting,))

        work = self.there if executor.is_remote else Work(lambda data: self.here(*data))
        for each in executor.results(work, tasks(), journal=journal):
            yield replace(each.get(), constants=each.task.data[0])  # a journal has lists for tuples
        yield from stayed


def sweep(
    kernel: str,
    about: str,
    wanted: Sequence[Mapping[str, Any]],
    tries: Tries,
    *,
    executor: Executor = Executor(),  # noqa: B008 - which is frozen
    known: Tuned | None = None,
    resume: bool | None = None,
    done: Callable[[int], object] = lambda _: None,
) -> Tuned:
    """Try every setting; what an earlier result has tried is taken from it.

    With `resume` what was tried is kept until all is: True goes on where a sweep was stopped, False
    begins anew. `done` is told how many more were tried.
    """
    same = known is not None and (known.kernel, known.about) == (kernel, about)
    kept = known.trials if known is not None and same else ()
    found = [each for each in kept if each.constants in wanted]
    done(len(found))
    left = [each for each in wanted if each not in [trial.constants for trial in found]]
    asked = nullcontext() if resume is None else Journal.of((kernel, about), Trial, resume=resume)
    with asked as journal:
        for each in tries.results(left, executor, journal):
            found.append(each)
            done(1)
    order = [*map(dict, wanted)]
    ranked = sorted(found, key=lambda t: (bool(t.reason), t.us, order.index(dict(t.constants))))
    return Tuned(kernel, about, tuple(ranked))


__all__ = ["Trial", "Tries", "Tuned", "settings", "sweep", "trial"]
