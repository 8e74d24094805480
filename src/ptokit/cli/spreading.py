"""The options of commands that do many things: how many at a time, where, and for how long."""

from __future__ import annotations

from typing import Annotated

from ptokit.base.diagnostics import usage_error
from ptokit.cli.declared import Option
from ptokit.tasks import Executor
from ptokit.tasks.executor import AUTO

HowMany = Annotated[
    str,
    Option("--jobs", metavar="N", help="Processes; auto: Ray, or a process per core."),
]
Cluster = Annotated[
    str, Option("--cluster", metavar="ADDRESS", help="A Ray cluster that does the work.")
]
TaskSeconds = Annotated[
    float | None,
    Option("--task-seconds", min=0.001, help="End what takes longer, and go on."),
]
Resume = Annotated[bool, Option("--resume", help="Go on where the same command was stopped.")]


def executor(jobs: str, cluster: str = "", seconds: float | None = None) -> Executor:
    """What a command line says of its jobs."""
    if jobs != AUTO and not (jobs.isdecimal() and int(jobs)):
        what = f"--jobs takes a positive number, or {AUTO}, not {jobs!r}"
        raise usage_error("arguments", what, fix="--jobs 2")
    return Executor(jobs if jobs == AUTO else int(jobs), cluster, seconds)
