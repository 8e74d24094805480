"""How far long work is: a bar in a terminal, elsewhere a line now and then."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

SHOWN_FROM = 64  # pieces: less work is over before a bar is read
TELLS = 20.0  # seconds between two lines

T = TypeVar("T")


@contextmanager
def progress(
    count: int, of_what: str = "blocks", shown_from: int = SHOWN_FROM
) -> Generator[Callable[[int], None] | None, None, None]:
    """A bar with the rate and the rest, for long work in a terminal; told how many more are done.

    Of blocks it is told one by one.
    """
    if count < shown_from or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        Task,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    class Rate(TextColumn):
        def render(self, task: Task) -> Text:
            return Text(f"{task.speed:,.1f}/s" if task.speed else "")

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), Rate(""),
               TimeRemainingColumn())  # fmt: skip
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(of_what, total=count)
        yield lambda more: bar.advance(task, 1 if of_what == "blocks" else more)


def followed(
    found: Iterable[T], title: str, total: int, known: int, is_bad: Callable[[T], bool]
) -> Iterator[T]:
    """The same, with a line now and then on standard error: how far it is, how many are bad."""
    start = told = time.monotonic()
    done, bad = known, 0
    for each in found:
        done, bad = done + 1, bad + is_bad(each)
        yield each
        now = time.monotonic()
        if now - told > TELLS or done == total:
            told = now
            rest = (now - start) / (done - known) * (total - done)
            print(
                f"{title}: {done} of {total}, {bad} of them not as they should; "
                f"{now - start:.0f} s, about {rest:.0f} s more",
                file=sys.stderr,
                flush=True,
            )
