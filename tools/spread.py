"""Long runs in pieces, on the executor of the package: in processes, or on a cluster.

What came of a piece is kept in a journal, and `--resume` goes on with it. The journal of another
state of the sources, or of other options, is another one.
"""

from __future__ import annotations

import argparse
import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ptokit.cli.spreading import executor
from ptokit.tasks import Executor, Journal, Task, Work, progress

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("src", "examples", "tools", "tests/fuzz")
_PLACE = {"jobs", "cluster", "resume", "verbose"}  # options that change no answer


def state(folders: Iterable[str] = FOLDERS) -> str:
    """A name for all that lies in some folders of the project, as it is now."""
    digest = hashlib.sha256()
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".py", ".pto", ".txt", ".json"):
                digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Where pieces are done, as the commands of the package have it."""
    cores = str(min(os.cpu_count() or 1, 8))
    parser.add_argument("--jobs", default=cores, metavar="N", help="processes; auto: Ray")
    parser.add_argument("--cluster", default="", metavar="ADDRESS", help="a Ray cluster")
    add_resume(parser)


def add_resume(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--resume", action="store_true", help="go on where a run was stopped")


def journal_of(tool: str, options: argparse.Namespace, kind: type) -> Journal:
    """Where the answers of a tool are kept, lists of such dataclasses, until it is done."""
    asked = {name: str(each) for name, each in vars(options).items() if name not in _PLACE}
    return Journal.of((tool, asked, state()), list[kind], resume=options.resume)


def answers(
    tool: str,
    do: Callable[..., list[Any]],
    tasks: Sequence[Task],
    options: argparse.Namespace,
    kind: type,
) -> Iterator[tuple[Task, list[Any]]]:
    """Every task with what came of it, in their order."""
    spread: Executor = executor(options.jobs, options.cluster)
    with journal_of(tool, options, kind) as journal, progress(len(tasks), "pieces", 2) as done:
        for each in spread.results(Work(do), tasks, ordered=True, journal=journal):
            if done is not None:
                done(1)
            yield each.task, each.get()
