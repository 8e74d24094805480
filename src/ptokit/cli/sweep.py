"""`ptokit sweep FILE`: every setting of a kernel, on every target, under many schedules.

A cell of the sweep is one launch with one setting on one target, as a text. It is run in order with
every checker on, then under the schedule of each seed, which must leave the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import Diagnostic, PtoError, UsageError, usage_error
from ptokit.cli import OnTarget, Release, Strict, profile
from ptokit.cli.answer import AsJson, Exit, answer, echo
from ptokit.cli.check import is_python, targets_of
from ptokit.cli.declared import Argument, Option
from ptokit.cli.launches import Asked, Call
from ptokit.cli.module_constants import constants_of
from ptokit.cli.sources import ARGUMENTS, is_cpp, read_text, shown_name
from ptokit.cli.spreading import Cluster, HowMany, Resume, TaskSeconds, executor
from ptokit.cli.tune import choice
from ptokit.from_text import loads
from ptokit.kernels.sending import Sent, Swept, swept
from ptokit.tasks import Journal, Task, Work, progress
from ptokit.timing.tuning import settings

_CHUNK = 8  # seeds of a task


@dataclass(frozen=True)
class Cell:
    """A launch with a setting on a target: what is run, or why nothing is."""

    setting: Mapping[str, Any]
    target: str
    kernel: str
    sent: Sent | None = None
    refused: Diagnostic | None = None


@dataclass(frozen=True)
class Row:
    """What became of a cell."""

    cell: Cell
    runs: Swept

    @property
    def found(self) -> Diagnostic | None:
        """What is wrong with it."""
        return self.cell.refused or (self.runs.first[1] if self.runs.first else None)

    @property
    def verdict(self) -> str:
        """One word."""
        if self.cell.refused is not None:
            return "refused"
        return "fails" if self.runs.failed else "differs" if len(self.runs.left) > 1 else "agrees"

    def to_json(self) -> dict[str, Any]:
        return {
            "setting": dict(self.cell.setting),
            "target": self.cell.target,
            "kernel": self.cell.kernel,
            "verdict": self.verdict,
            "runs": self.runs.runs,
            "failed": self.runs.failed,
            "results": [{"bytes": b, "first": n} for b, n in sorted(self.runs.left.items())],
            "diagnostic": None if self.found is None else self.found.to_json(),
        }

    @property
    def why(self) -> str:
        """The reason, for people."""
        if self.found is not None:
            at = self.runs.first[0] if self.runs.first else ""
            return f"{f'{at}: ' * bool(at)}{self.found.code}: {self.found.message}"
        if self.verdict == "differs":
            names = [name for name in self.runs.left.values() if name != "in order"]
            return f"with {names[0]} it leaves other bytes"
        return ""


def command(
    file: Annotated[Path, Argument(help="Python, PTO text or C++.")],
    args: Annotated[list[str] | None, Argument(help=ARGUMENTS)] = None,
    grid: Annotated[
        list[str] | None,
        Option("--grid", help="NAME=VALUE,VALUE: values of a constant; repeat for more."),
    ] = None,
    targets: Annotated[str, Option("--targets", help="Names with commas, or all.")] = "",
    seeds: Annotated[
        str, Option("--seeds", metavar="FROM:TO", help="Of random orders of the pipes.")
    ] = "0:16",
    entry: Annotated[str, Option("--entry", "--kernel", help="The kernel.")] = "",
    blocks: Annotated[int, Option("--blocks", min=1, help="Of a text or C++.")] = 1,
    target: OnTarget = None,
    jobs: HowMany = "1",
    cluster: Cluster = "",
    task_seconds: TaskSeconds = None,
    resume: Resume = False,
    strict: Strict = False,
    release: Release = False,
    as_json: AsJson = False,
) -> None:
    """Run a kernel with every setting, on every target, under many schedules; exit 1 on findings.

    Ctrl-C leaves what was done; the same command with --resume goes on.
    """
    first, last = _seeds(seeds)
    names = tuple(targets_of(targets or target or ""))
    values = dict(choice(word, "--grid") for word in grid or ())
    asked = Asked(file, args or (), entry, blocks, past_errors=True)
    rules = {"rules": profile(strict, release)}
    cells = [each for s in settings(values) for each in _cells(asked, s, names, rules)]
    running = [each.sent for each in cells if each.sent is not None]
    numbers = [n for n, each in enumerate(cells) if each.sent is not None]
    tasks = (
        Task(f"{n}: {chunk[0]}", (n, chunk))
        for n in range(len(running))
        for chunk in _chunks(first, last)
    )
    found: dict[int, Swept] = {}
    about = [_about(each) for each in running]
    total = len(running) * (last - first + 1)
    how = executor(jobs, cluster, task_seconds)
    with Journal.of((about, seeds), Swept, resume=resume) as journal:
        try:
            with progress(total, "runs") as done:
                work = Work(swept, (running,))
                for each in how.results(work, tasks, ordered=True, journal=journal):
                    part = each.value if each.trouble is None else _lost(each.trouble.reason)
                    number = numbers[each.task.data[0]]
                    found[number] = found.get(number, Swept()).joined(part)
                    if done is not None:
                        done(part.runs)
        except KeyboardInterrupt:
            kept = sum(each.runs for each in found.values())
            echo(f"{kept} of {total} runs are done: --resume goes on", err=True)
            raise
    rows = [Row(cell, found.get(number, Swept())) for number, cell in enumerate(cells)]
    is_clean = all(row.verdict == "agrees" for row in rows)
    answer(
        _table(rows),
        found=[row.found for row in rows if row.found is not None and not row.runs.runs],
        code=Exit.OK if is_clean else Exit.FOUND,
        rows=[row.to_json() for row in rows],
    )


def _seeds(word: str) -> tuple[int, int]:
    first, colon, last = word.partition(":")
    if not (colon and first.isdecimal() and last.isdecimal() and int(first) <= int(last)):
        what = f"--seeds takes FROM:TO, not {word!r}"
        raise usage_error("arguments", what, fix="--seeds 0:1000")
    return int(first), int(last)


def _chunks(first: int, last: int) -> Iterator[tuple[int | None, ...]]:
    """The run in order, then the seeds."""
    yield (None,)
    for begin in range(first, last, _CHUNK):
        yield tuple(range(begin, min(begin + _CHUNK, last)))


def _cells(
    asked: Asked, setting: Mapping[str, Any], targets: Sequence[str], rules: Mapping[str, Any]
) -> Iterator[Cell]:
    """The launches of a file with a setting, on each target."""
    text = read_text(asked.file)
    is_script = is_python(asked.file, text)
    at_the_top = constants_of(text) if is_script else ()
    own = {name: value for name, value in setting.items() if name not in at_the_top}
    constants = {name: value for name, value in setting.items() if name in at_the_top}
    made = replace(asked, constants=constants).calls() if is_script else None
    for name in targets or (None,):
        calls = made if made is not None else _calls(replace(asked, target=name), text)
        for call in _different(calls, own):
            on = call.kernel.programs.target(name, call.options.get("defines"))
            how = {**call.options, **rules, **own, "target": on, "defines": None}
            cell = Cell(setting, on.name, call.kernel.name)
            try:
                yield replace(cell, sent=call.kernel[call.blocks].sent(tuple(call.args), how))
            except UsageError:  # a call that no setting would make right
                raise
            except PtoError as error:
                yield replace(cell, refused=error.diagnostics[0])


def _different(calls: Sequence[Call], own: Mapping[str, Any]) -> Iterator[Call]:
    """Launches that still differ when they have the constants of a setting."""
    seen: set[str] = set()
    for call in calls:
        sizes = [(getattr(a, "shape", a), str(getattr(a, "dtype", ""))) for a in call.args]
        options = sorted({**call.options, **own}.items(), key=str)
        key = repr((call.kernel.name, call.blocks, sizes, options))
        if key not in seen:
            seen.add(key)
            yield call


def _calls(asked: Asked, text: str) -> Sequence[Call]:
    """The launch of a text or of C++; of a text without arguments, on those its types tell."""
    if asked.words or is_cpp(asked.file):
        return asked.calls()
    program = loads(text, shown_name(asked.file))
    kernel = program[asked.entry] if asked.entry else program.entry()
    return [Call(kernel, asked.grid, kernel.source.sampled()[0], {})]


def _about(sent: Sent) -> tuple[Any, ...]:
    """All that the runs of a cell depend on."""
    source = sent.launch.kernel.source
    given = [each.tobytes() if hasattr(each, "tobytes") else each for each in sent.args]
    options = sorted(map(str, sent.options.items()))
    return source.text, source.name, sent.launch.blocks, given, options


def _lost(reason: str) -> Swept:
    """A task that has said nothing."""
    return Swept(0, failed=1, first=("lost", Diagnostic("jobs", reason)))


def _table(rows: Sequence[Row]) -> str:
    """A line for each cell, and one that counts."""
    told = [
        (
            " ".join(f"{name}={value}" for name, value in row.cell.setting.items()),
            row.cell.target,
            row.cell.kernel,
            row.verdict,
            f"{row.runs.runs:,} runs",
            row.why,
        )
        for row in rows
    ]
    widths = [max((len(each[n]) for each in told), default=0) for n in range(5)]
    lines = [
        "  ".join([*(c.ljust(w) for c, w in zip(each, widths, strict=False)), each[5]]).strip()
        for each in told
    ]
    words = [row.verdict for row in rows]
    counts = ", ".join(f"{words.count(w)} {w}" for w in dict.fromkeys(words))
    runs = sum(row.runs.runs for row in rows)
    cells = "1 cell" if len(rows) == 1 else f"{len(rows)} cells"
    return "\n".join([*lines, f"sweep: {cells}: {counts}; {runs:,} runs"])
