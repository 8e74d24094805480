"""A task, what is done for it, and what came of it."""

from __future__ import annotations

import pickle
import sys
import traceback
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Any

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import PtoError, fail, usage_error
from ptokit.base.entry import hide_frames
from ptokit.base.namedtuple import NamedTuple


class Task(NamedTuple):
    """One piece of work: a name, the same in every run, and plain data."""

    name: str
    data: Any


@dataclass(frozen=True)
class Work:
    """What is done for every task: a function of its data, and of what all of them share.

    `do(data, *shared)` may be done twice, and anywhere: it gives the same each time, as data that
    can be sent. Other processes of this machine take any function; other machines import it by its
    name. What is shared goes to a worker once, and is not to be changed there.
    """

    do: Callable[..., Any]
    shared: tuple[Any, ...] = ()

    @property
    def name(self) -> str:
        """The module and the name of the function, for whoever has to import it."""
        module, name = getattr(self.do, "__module__", ""), getattr(self.do, "__qualname__", "<>")
        if "<" in name:
            raise usage_error(
                "cluster",
                f"{self.do!r} cannot be sent to other machines: it is not a function of a module",
                fix="leave --cluster out: processes of this machine take any function",
            )
        return f"{_importable(module)}:{name}"


def _importable(module: str) -> str:
    """The name under which another process finds a module; one that is run has two."""
    if module != "__main__":
        return module
    main: Any = sys.modules["__main__"]
    return main.__spec__.name if main.__spec__ is not None else Path(main.__file__).stem


class Kind(StrEnum):
    """Why a task has no value."""

    RAISED = "raised"  # an error, which is the function's own
    DIED = "died"  # its worker did, each time
    TIME = "time"  # it took too long, and was ended


@dataclass(frozen=True)
class Trouble:
    """Why a task has no value: the same words whenever and wherever it is done."""

    kind: Kind
    reason: str
    error: BaseException | None = None


@dataclass(frozen=True)
class Result:
    """What came of a task."""

    number: int  # its place among the tasks
    task: Task
    value: Any = None
    trouble: Trouble | None = None
    is_known: bool = False  # from a journal

    def get(self) -> Any:
        """The value; raises where there is none."""
        if self.trouble is None:
            return self.value
        if self.trouble.error is not None:
            raise self.trouble.error
        raise fail(
            "jobs",
            f"{self.task.name}: {self.trouble.reason}",
            fix="leave jobs out to see what ends it; fewer processes need less memory",
        )


@dataclass(frozen=True)
class Answer:
    """What a worker says of a task."""

    value: Any = None
    error: BaseException | None = None

    @property
    def trouble(self) -> Trouble | None:
        if self.error is None:
            return None
        return Trouble(Kind.RAISED, f"{type(self.error).__name__}: {self.error}", self.error)


def done(do: Callable[..., Any], data: Any, shared: tuple[Any, ...]) -> Answer:
    """Do the work for one task, and say what came of it."""
    try:
        return Answer(do(data, *shared))
    except (Exception, SystemExit) as error:
        return Answer(error=sendable(error))


def sendable(error: BaseException) -> BaseException:
    """An exception as another process can be told of it."""
    if not isinstance(error, PtoError):  # of the work itself, whose frames stay behind
        hide_frames(error)
        error.add_note("".join(traceback.format_tb(error.__traceback__)).rstrip())
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # a class of the work's own, which cannot be made there
        told = RuntimeError(f"{type(error).__name__}: {error}")
        for note in getattr(error, "__notes__", ()):
            told.add_note(note)
        return told
    return error
