"""Wide work: many small tasks, in this process, in others, or on the machines of a Ray cluster.

    work = Work(judge, (text, arrays))                        # what every task needs, sent once
    tasks = (Task(f"seed {n}", n) for n in range(1000))
    for result in Executor(jobs=4, seconds=60).results(work, tasks, ordered=True):
        print(result.task.name, result.value)

`pool.py` is all that is decided: who gets which task, what is tried again, what takes too long. A
`Crew` only starts workers and carries words: `processes.py` here, `cluster.py` on Ray. A `Journal`
keeps what is done, so that a run that was stopped goes on.
"""

from ptokit.tasks.executor import Executor, Jobs
from ptokit.tasks.journal import Journal, digest
from ptokit.tasks.progress import followed, progress
from ptokit.tasks.work import Result, Task, Trouble, Work

__all__ = [
    "Executor", "Jobs", "Journal", "Result", "Task", "Trouble", "Work", "digest", "followed",
    "progress",
]  # fmt: skip
