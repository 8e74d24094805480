"""Run the test programs of a public folder on the simulator, and publish what they come to.

    python tools/systemtests.py DIR --target a2a3 --only tadd,tload --jobs 2

Each program's data is made by its own generator, in a temporary folder; it is compiled as its
CMakeLists.txt says, and run twice: with its kernels left out, as a control - a case that passes
then shows nothing, and does not count - and with them. Whether a case is right its own comparison
says. `--json F` keeps what was found, case by case, beside what earlier runs found of other
programs, and says which of them take long: these are begun with. `--page F` writes the table of all
of it into a page. With `--journal F` a run that was stopped goes on where it was; with `--work DIR`
the next one finds the data of this one, and what its controls said.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatch
from pathlib import Path

from cmakelists import Lists
from journal import Journal, apart

from ptokit.base.diagnostics import PtoError
from ptokit.base.policy import Allowed, Policy
from ptokit.frontend.launch import Options
from ptokit.isa.targets import target as find_target
from ptokit.machine.codes import CODES
from ptokit.native.compiler import CHOICE, compiler
from ptokit.native.program import Program, Ran, Source, execute

RULINGS = Path(__file__).with_suffix(".toml")  # why programs deviate
BUILT = ("ALL_TESTCASES", "OPT_IN_TESTCASES")  # where a build file lists its programs
HEADER = "pto/pto-inst.hpp"  # a folder that has it is not ours to include
EQUAL, DIFFERS, REPORTED, CRASHED, IDLE = "equal", "differs", "reported", "crashed", "idle"
UNRULED = "nobody has said why"
MOST_NAMES = 4  # of cases, in a reason
BESIDE = "equal beside a race"  # that is reported: what it leaves under our schedule is right


@dataclass
class Row:
    """What a program has come to."""

    name: str
    core: str
    verdict: str = ""  # empty: it ran
    reason: str = ""
    seconds: float = 0.0
    cases: dict[str, str] = field(default_factory=dict[str, str])
    codes: dict[str, list[str]] = field(default_factory=dict[str, list[str]])  # found, by case
    compiler: str = ""  # where it was another one than usual
    steps: dict[str, float] = field(default_factory=dict[str, float])  # the seconds of each

    @contextmanager
    def step(self, name: str) -> Generator[None, None, None]:
        """What is done in the block takes some of its time."""
        begun = time.monotonic()
        try:
            yield
        finally:
            self.steps[name] = round(time.monotonic() - begun, 2)

    @property
    def counted(self) -> int:
        return sum(each != IDLE for each in self.cases.values())

    @property
    def equal(self) -> int:
        return self.beside + sum(each == EQUAL for each in self.cases.values())

    @property
    def beside(self) -> int:
        return sum(each == BESIDE for each in self.cases.values())


@dataclass(frozen=True)
class Task:
    """A program and how it is to be tried."""

    sources: tuple[Source, ...]
    includes: tuple[Path, ...]
    target: str
    folder: Path  # of its sources
    name: str
    core: str
    work: Path
    python: str
    rules: str
    time_limit: float
    most_seconds: float
    other_compiler: str

    @property
    def program(self) -> Program:
        return Program(self.sources, find_target(self.target), (), self.includes)


def tasks(root: Path, target: str, args: argparse.Namespace, work: Path) -> Iterator[Task]:
    """The programs of a target, in the order of their names."""
    top = root / "tests/npu" / target / "src/st"
    only = set(filter(None, args.only.split(",")))
    for folder in sorted(each.parent for each in (top / "testcase").glob("*/CMakeLists.txt")):
        lists = Lists(PROJECT_SOURCE_DIR=str(top))
        lists.read(top / "testcase/CMakeLists.txt", functions_only=True)
        built = ";".join(lists.variables.get(name, "") for name in BUILT).split(";")
        if folder.name not in (only or built):  # a folder that is not built is a draft
            continue
        lists.read(folder / "CMakeLists.txt")
        for program in lists.programs():
            includes = tuple(each for each in program.includes if not (each / HEADER).exists())
            sources = tuple(Source(s.path, s.core, s.defines) for s in program.sources)
            cores = dict.fromkeys(s.core for s in program.sources if s.core != "single")
            yield Task(
                sources, includes, target, folder, program.name, "+".join(cores),
                work / target / program.name,
                args.python, args.rules, args.time_limit, args.seconds, args.other_compiler,
            )  # fmt: skip


def tried(task: Task) -> Row:
    """Make the data of a program, compile it, run it without and with its kernels."""
    row, started = Row(task.name, task.core), time.monotonic()
    try:
        with row.step("compile"):
            row.compiler = _built(task)
        with row.step("data"):
            error = generate(task)
        if error:
            row.verdict, row.reason = "no data", error
        else:
            _run(task, row)
    except PtoError as error:
        first = error.diagnostics[0]
        at = first.location
        where = f"{Path(at.file).name}:{at.line}: " if at else ""
        row.verdict, row.reason = "does not compile", f"{where}{first.message}"
    except Exception as error:  # a bug of ours is a result, too
        row.verdict, row.reason = "internal error", f"{type(error).__name__}: {error}"
    row.seconds = time.monotonic() - started
    return row


def _tried_once(task: Task) -> Row:
    """The same, and nothing is kept of its data: those of all programs are tens of gigabytes."""
    try:
        return tried(task)
    finally:
        shutil.rmtree(task.work, ignore_errors=True)


def _lost(task: Task, why: str) -> Row:
    return Row(task.name, task.core, "internal error", why)


def _built(task: Task) -> str:
    """Compile a program; the name of the other compiler where only that one takes it."""
    os.environ.pop(CHOICE, None)
    try:
        task.program.built()
    except PtoError:
        if not task.other_compiler:
            raise
        os.environ[CHOICE] = task.other_compiler
        with suppress(PtoError):
            task.program.built()
            return compiler(task.other_compiler).version
        raise
    return ""


def generate(task: Task) -> str:
    """Let its generator make the data, once; the last line it says when it fails."""
    done = task.work / "made"
    script = task.folder / "gen_data.py"
    if done.exists() or not script.exists():
        (task.work / "build").mkdir(parents=True, exist_ok=True)
        return ""
    (task.work / "build").mkdir(parents=True, exist_ok=True)
    for each in task.folder.glob("*.py"):
        shutil.copy(each, task.work)
    words = [task.python, "gen_data.py"]
    ran = subprocess.run(words, cwd=task.work, capture_output=True, text=True, check=False)
    if ran.returncode:
        return (ran.stderr.strip() or "the generator fails").splitlines()[-1]
    done.touch()
    return ""


def _run(task: Task, row: Row) -> None:
    with row.step("control"):
        control = _control(task)
    with row.step("run"):
        ran = _all_cases(task)
    for name, outcome in ran.cases.items():
        errors = [d for case, d in ran.found if case == name and d.severity == "error"]
        row.codes[name] = [f"{d.code} at {d.location}: {d.message}" for d in errors]
        if control.get(name) == "passed":
            row.cases[name] = IDLE
        elif outcome == "begun":
            row.cases[name] = CRASHED
        elif errors:
            row.cases[name] = REPORTED
        else:
            row.cases[name] = EQUAL if outcome == "passed" else DIFFERS
    with row.step("beside"):
        _look_beside(task, row, ran)
    if ran.cases and all(outcome == "begun" for outcome in ran.cases.values()):
        row.verdict = "crashes"
    if not ran.cases:
        row.verdict, row.reason = "does not run", "; ".join(d.message for _, d in ran.found[:2])
    differs = sum(each == DIFFERS for each in row.cases.values())
    said = [_counts(row, counted=True), f"{differs} differ" if differs else ""]
    if idle := _counts(row, counted=False):
        said.append(f"in cases that do not count: {idle}")
    row.reason = row.reason or ", ".join(filter(None, said))


def _counts(row: Row, *, counted: bool) -> str:
    """What was reported, and how often, in cases that count or in the others."""
    cases = (name for name, each in row.cases.items() if (each != IDLE) is counted)
    found = Counter(said.partition(" at ")[0] for name in cases for said in row.codes[name])
    return ", ".join(f"{code} ({count})" for code, count in found.most_common(6))


def _control(task: Task) -> dict[str, str]:
    """What the cases come to with the kernels left out: said once of the same code and data."""
    kept = task.work / "control.json"
    code = sorted(each.name for each in task.program.built().values())  # by content
    if kept.exists() and (known := json.loads(kept.read_text("utf-8")))["code"] == code:
        return known["cases"]
    cases = _all_cases(task, without_kernels=True).cases
    kept.write_text(json.dumps({"code": code, "cases": cases}), "utf-8")
    return cases


def _look_beside(task: Task, row: Row, ran: Ran) -> None:
    """Run cases that were stopped by races, and nothing else, without stopping there."""
    found: dict[str, set[str]] = {}
    for name, each in ran.found:
        if each.severity == "error" and row.cases.get(name) == REPORTED:
            found.setdefault(name, set()).add(each.code)
    racing = {name: codes for name, codes in found.items() if codes <= set(CODES)}
    if racing:
        allowed = frozenset(Allowed(code) for codes in racing.values() for code in codes)
        again = _all_cases(task, only=list(racing), allow=allowed)
        errors = {name for name, each in again.found if each.severity == "error"}
        for name in racing:
            if again.cases.get(name) == "passed" and name not in errors:
                row.cases[name] = BESIDE


def _all_cases(
    task: Task,
    *,
    without_kernels: bool = False,
    only: Sequence[str] = (),
    allow: frozenset[Allowed] = frozenset(),
) -> Ran:
    """Run every case; where one ends the program, the others run without it."""
    whole, ended = Ran(), list[str]()
    until = time.monotonic() + task.most_seconds
    while True:
        ran = execute(
            task.program,
            [f"--gtest_filter={':'.join(only) or '*'}-{':'.join(ended)}"] if only or ended else [],
            options=Options(policy=Policy(task.rules, allow)),
            without_kernels=without_kernels,
            time_limit=task.time_limit,
            folder=task.work / "build",
            output=task.work / f"output{'-control' * without_kernels}.txt",
        )
        whole.cases.update(ran.cases)
        whole.found += ran.found
        stopped = [name for name, outcome in ran.cases.items() if outcome == "begun"]
        if not stopped or time.monotonic() > until:
            return whole
        ended += ran.cases


def table(rows: list[Row], target: str) -> Iterator[str]:
    """The published table, and its closing line."""
    rulings = tomllib.loads(RULINGS.read_text("utf-8"))
    known = rulings["both"] | rulings.get(target, {})
    yield "| program | core | cases | counted | equal | beside a race | verdict | reason |"
    yield "|---|---|---|---|---|---|---|---|"
    for row in rows:
        verdict = row.verdict or ("equal" if row.equal == row.counted else "deviates")
        numbers = f"{len(row.cases)} | {row.counted} | {row.equal} | {row.beside or ''}"
        by = f"compiled by {row.compiler}, the usual one refuses it" if row.compiler else ""
        said = [row.reason, *ruled(row, known.get(row.name, {})), by]
        reason = "; ".join(filter(None, said)).replace("|", "\\|")
        yield f"| {row.name} | {row.core} | {numbers} | {verdict} | {reason} |"
    yield ""
    yield closing(rows)


def ruled(row: Row, known: str | dict[str, str]) -> list[str]:
    """Why a program deviates: a ruling for all of it, or one each for cases of some names."""
    rulings = {"*": known} if isinstance(known, str) else known
    if row.verdict:
        return [rulings.get("*", UNRULED)]
    cases: dict[str, list[str]] = {}
    for case, outcome in row.cases.items():
        if outcome not in (EQUAL, IDLE):
            name = case.partition(".")[2]
            why = next((text for like, text in rulings.items() if fnmatch(name, like)), UNRULED)
            cases.setdefault(why, []).append(name)
    return [
        f"{', '.join(names) if len(names) <= MOST_NAMES else f'{len(names)} cases'}: {why}"
        for why, names in cases.items()
    ]


def closing(rows: list[Row]) -> str:
    ran = [row for row in rows if not row.verdict]
    equal, counted = sum(r.equal for r in rows), sum(r.counted for r in rows)
    share = f" ({100 * equal / counted:.1f} %)" if counted else ""
    cases = sum(len(row.cases) for row in rows)
    return (
        f"{len(ran)} of {len(rows)} programs compile and run; {equal} of {counted} counted cases "
        f"are equal{share}, {sum(r.beside for r in rows)} of them beside a race that is reported; "
        f"{cases - counted} pass without a kernel and do not count."
    )


def _written(page: Path, target: str, lines: list[str]) -> None:
    """Put a table between its marks in a page."""
    begin, end = f"<!-- system tests of {target} -->", f"<!-- end of {target} -->"
    head, _, rest = page.read_text("utf-8").partition(begin)
    _, mark, tail = rest.partition(end)
    if not mark:
        raise SystemExit(f"{page} has no marks {begin} ... {end}")
    page.write_text(head + begin + "\n" + "\n".join(lines) + "\n" + end + tail, "utf-8")


def main() -> None:
    style = argparse.RawTextHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=style)
    parser.add_argument("folder", type=Path, help="the public folder, unpacked")
    parser.add_argument("--target", default="a2a3", help="a2a3 or a5")
    parser.add_argument("--only", default="", help="programs, with commas between")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--python", default=sys.executable, help="the interpreter of generators")
    parser.add_argument("--work", type=Path, help="keep data and output there")
    parser.add_argument("--other-compiler", default="", help="for what the usual one refuses")
    parser.add_argument("--rules", default="release", help="default, strict or release")
    parser.add_argument("--time-limit", type=float, default=30, help="seconds without progress")
    parser.add_argument("--seconds", type=float, default=900, help="for all cases of a program")
    parser.add_argument("--json", type=Path, help="keep what was found there")
    parser.add_argument("--journal", type=Path, help="keep verdicts here, and go on from them")
    parser.add_argument("--page", type=Path, help="write the table into this page")
    args = parser.parse_args()
    rows = {row.name: row for row in _known(args.json)}
    with tempfile.TemporaryDirectory(prefix="ptokit-systemtests-") as temporary:
        asked = list(tasks(args.folder.resolve(), args.target, args, args.work or Path(temporary)))
        how = args.folder.resolve(), args.target, args.rules, args.time_limit, args.seconds
        journal = Journal(args.journal, (*how, args.other_compiler))
        rows |= {name: Row(**each) for name, each in journal.known.items()}
        left = [each for each in asked if each.name not in journal.known]
        # The long ones first, and those of which nothing is known: short ones fill the end.
        left.sort(key=lambda each: -rows[each.name].seconds if each.name in rows else -1e9)
        found = apart(left, _tried_once if args.work is None else tried, _lost, args.jobs, share=1)
        for number, row in enumerate(found, len(asked) - len(left) + 1):
            rows[row.name] = row
            journal.add(row.name, asdict(row))
            said = row.verdict or f"{row.equal} of {row.counted} equal"
            print(
                f"[{number}/{len(asked)}] {row.name}: {said}, {row.seconds:.1f} s"
                + (f": {row.reason}" if row.reason else ""),
                flush=True,
            )
            if args.json:
                _keep(args.json, list(rows.values()))
    spent = Counter[str]()
    for task in asked:
        spent.update(rows[task.name].steps)
    print("; ".join(f"{step} {seconds:.0f} s" for step, seconds in spent.items()))
    shown = sorted(rows.values(), key=lambda row: row.name)
    lines = list(table(shown, args.target))
    if args.page:
        _written(args.page, args.target, lines)
    print(closing(shown))


def _known(path: Path | None) -> list[Row]:
    if path is None or not path.exists():
        return []
    return [Row(**each) for each in json.loads(path.read_text("utf-8"))]


def _keep(path: Path, rows: list[Row]) -> None:
    path.write_text(json.dumps([asdict(row) for row in rows], indent=1), "utf-8")


if __name__ == "__main__":
    main()
