"""Who is to blame when a worker dies that has several tasks at hand."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from ptokit.tasks import Task
from ptokit.tasks.pool import Gone, Pool, Ready, Word
from ptokit.tasks.work import Answer, Kind


class Forgetful:
    """A worker of a machine that sends answers a while later, and dies with those it has."""

    def __init__(self, crew: Workers) -> None:
        self.crew = crew
        self.tasks: list[str] = []
        self.is_new = True

    def give(self, data: Any) -> None:
        self.tasks.append(data)
        self.crew.most = max(self.crew.most, len(self.tasks))

    def end(self) -> None:
        self.crew.workers.remove(self)


class Workers:
    """So many of them; a number of tasks goes unheard of when one dies."""

    life = 10**9

    def __init__(self, size: int) -> None:
        self.size, self.most = size, 0
        self.workers: list[Forgetful] = []
        self.begun: list[str] = []

    def hire(self) -> Forgetful:
        self.workers.append(Forgetful(self))
        return self.workers[-1]

    def heard(self, seconds: float | None) -> Iterable[Word]:
        for worker in list(self.workers):
            if worker.is_new:
                worker.is_new = False
                yield worker, Ready()
                continue
            answers: list[Answer] = []
            for task in worker.tasks:
                self.begun.append(task)
                if task.startswith("dies"):
                    worker.end()
                    yield worker, Gone("dead")
                    break
                answers.append(Answer(task))
            else:
                worker.tasks.clear()
                for answer in answers:
                    yield worker, answer

    def close(self) -> None:
        self.workers.clear()


@pytest.mark.parametrize("size", [1, 3])
def test_only_the_task_that_ends_its_workers_is_to_blame(size: int) -> None:
    names = [f"{'dies' if n in (150, 153, 299) else 'plain'} {n}" for n in range(300)]
    crew = Workers(size)
    pool = Pool(crew, (Task(n, n) for n in names), seconds=None, retries=2, ordered=True)
    found = list(pool.run())
    assert crew.most > 10, "workers had several tasks at hand"
    assert [each.task.name for each in found] == names
    for each in found:
        if each.task.name.startswith("dies"):
            assert each.trouble is not None
            assert each.trouble.kind is Kind.DIED
            assert crew.begun.count(each.task.name) in (3, 4)
        else:
            assert each.value == each.task.name
