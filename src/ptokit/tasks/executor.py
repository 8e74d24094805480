"""One way to do many tasks, wherever they are done."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeAlias

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import usage_error
from ptokit.tasks.journal import Journal
from ptokit.tasks.work import Result, Task, Work, done

if TYPE_CHECKING:
    from ptokit.tasks.pool import Crew

AUTO = "auto"


@dataclass(frozen=True)
class Executor:
    """Where tasks are done, and within which limits.

    `jobs` is a number of processes of this machine; 1 is this very process, unless tasks are
    limited. "auto" is a Ray cluster: the one of RAY_ADDRESS, or one that is started here for the
    while; without Ray it is a process per core. `address` names a cluster, of which `jobs` other
    than 1 says how many workers are used at most. A task may take so many `seconds`; one that takes
    more is ended, and has failed. A task whose worker dies is given to others, `retries` times.
    """

    jobs: int | str = 1
    address: str = ""
    seconds: float | None = None
    retries: int = 2
    life: int = 500  # tasks of a process: what they leave behind in it goes with it
    apart: bool = False  # one job is a process as well: what it breaks, this one does not see

    @staticmethod
    def of(jobs: Jobs) -> Executor:
        """What a call says of its jobs: a number, "auto", or all of it."""
        return jobs if isinstance(jobs, Executor) else Executor(jobs)

    def __post_init__(self) -> None:
        is_count = isinstance(self.jobs, int) and not isinstance(self.jobs, bool) and self.jobs > 0
        if not is_count and self.jobs != AUTO:
            what = f'jobs is a number of workers, or "{AUTO}", not {self.jobs!r}'
            raise usage_error("jobs", what, fix="jobs=2")

    @property
    def is_remote(self) -> bool:
        """Whether functions and data have to be sent to other machines."""
        return bool(self.address) or (self.jobs == AUTO and find_spec("ray") is not None)

    @property
    def is_here(self) -> bool:
        """Whether all is done in this very process."""
        return self.jobs == 1 and not (self.address or self.seconds or self.apart)

    def results(
        self,
        work: Work,
        tasks: Iterable[Task],
        *,
        ordered: bool = False,
        journal: Journal | None = None,
    ) -> Generator[Result, None, None]:
        """What came of every task, as it comes, or in their order.

        What a journal knows is not done again; what is done is kept in it.
        """
        known = None if journal is None else _kept(journal)
        if self.is_here:
            found = _here(work, tasks, known)
        else:
            from ptokit.tasks.pool import Pool  # few have more than one job

            pool = Pool(self._crew(work), tasks, seconds=self.seconds, retries=self.retries,
                        ordered=ordered, known=known)  # fmt: skip
            found = pool.run()
        for each in found:
            if journal is not None and each.trouble is None and not each.is_known:
                journal.add(each.task.name, each.value)
            yield each

    def _crew(self, work: Work) -> Crew:
        if self.is_remote:
            from ptokit.tasks import cluster

            most = None if self.jobs in (1, AUTO) else int(self.jobs)
            return cluster.Cluster(work, self.address, most)
        from ptokit.tasks.processes import Processes

        return Processes(work, _cores() if self.jobs == AUTO else int(self.jobs), self.life)


Jobs: TypeAlias = "int | str | Executor"


def _cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _kept(journal: Journal) -> Callable[[Task], Result | None]:
    def known(task: Task) -> Result | None:
        found = journal.known(task.name)
        return None if found is None else Result(0, task, found[0], is_known=True)

    return known


def _here(
    work: Work, tasks: Iterable[Task], known: Callable[[Task], Any] | None
) -> Iterator[Result]:
    for number, task in enumerate(tasks):
        found = None if known is None else known(task)
        if found is None:
            answer = done(work.do, task.data, work.shared)
            yield Result(number, task, answer.value, answer.trouble)
        else:
            yield Result(number, task, found.value, is_known=True)
