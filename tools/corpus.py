"""What becomes of every `.pto` file of a folder: read, checked, printed, converted, run, compared.

python tools/corpus.py DIR [--only REGEX] [--skip run] [--jobs N] [--journal FILE] [--table FILE]

Files are told apart first: programs at tile level, programs of the micro level, and tests of what
must be refused. Target, level and options come from the command in a file's `RUN:` lines, else from
its module, else from the name of its folder. The table (Markdown) names each file that is not read
or is refused, with the reason. Kernels run on random inputs; where the second interpreter of the
tests knows them (tests/models), the arrays of both are compared. A file that takes too long is told
like any other fault; with a journal, a run that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from ptokit.base.diagnostics import PtoError
from ptokit.folders.inputs import Draw, attempts, is_misled
from ptokit.from_text import Program, load_parts, loads
from ptokit.frontend.policies import policy_for
from ptokit.ir.core import Module
from ptokit.ir.micro import micro_group
from ptokit.ir.types import BufferType
from ptokit.isa.targets import TILE_LIBRARY, Target
from ptokit.passes.reduce_sync import Count, count, total
from ptokit.passes.steps import Steps

sys.path.insert(0, str(Path(__file__).resolve().parent))
from journal import Journal, TimeUp, apart, followed, limited
from judgements import BY_FILE, JUDGEMENTS

ROOT = Path(__file__).resolve().parent.parent
STEPS = ("check", "print", "run", "levels", "agree")  # after reading, in order

_COMMENT = re.compile(r"//[^\n]*")
_OPERATION = re.compile(r'(?<![!#\w".@])(pto\.[a-z][\w.]*)\b(?!\s*=)')
_REGISTERS = re.compile(r"!pto\.(vreg|mask|align|vmi)\b|\bllvm\.\w")
_NEGATIVE = re.compile(r"invalid|reject|negative")  # in the name of a file without a command
_REFUSED = re.compile(r"(?<![-\w])not\s")  # as a command of its own, before the tool's
# Who else refuses a file that has to be refused, and how that is told.
_ELSEWHERE = {
    "the environment of the assembler": re.compile(r"\benv -u\b"),
    "the linker of several back ends": re.compile(r"\bpto\.backend\b"),
    "the back end for micro-instructions": re.compile(r"--pto-backend=vpto|--emit-vpto"),
    "the command line": re.compile(r"RUN:.*--plan-memory-impl=typo"),
}
# What is compiled with the assembler's own library of tile operations: by its command, or folder.
_OWN_LIBRARY = re.compile(r"--pto-backend=vpto|/st/(?:\w+/)?testcase/")
_SYNC = {
    "--enable-bufid_sync": "bufid",
    "--enable-canonical-sync": "canonical",
    "--enable-graph-sync-solver": "graph-solver",
    "--enable-inject-barrier-all-sync": "barrier-all",
    "--enable-insert-sync": "insert",
}
_MODELS = re.compile("Deepseek|Qwen")  # in the path of what a model consists of
_FOLDER = re.compile(r"(?:^|[a-z_/])(A[235])(?=/|$)|(?:^|/)(a[235])(?=/|$)")


@dataclass(frozen=True)
class Facts:
    """What a file says about itself."""

    kind: str  # tile, micro or negative
    target: str | None = None  # None: what its module asks for
    level: int = 0  # 0: either addresses or none
    parts_level: int = 0  # the same of each of several parts
    options: tuple[str, ...] = ()
    sync: str | None = None  # how the pipes are ordered, where that is not left to the text
    about: str = "the language"  # what refuses it, where something has to
    has_own_library: bool = False  # of tile operations, which it is compiled with


@dataclass(frozen=True)
class Verdict:
    """What became of a file. A step that was not reached is None."""

    file: str
    kind: str
    target: str = ""
    level: int = 0
    options: tuple[str, ...] = ()
    load: bool | None = None
    check: bool | None = None
    print: bool | None = None  # printed, read and printed again it is the same
    levels: bool | None = None  # converted, it can be read; placed and ordered, it leaves the same
    run: bool | None = None
    agree: bool | None = None
    reasons: dict[str, str] = field(default_factory=dict[str, str])  # of the steps that failed
    order: Count | None = None  # what the pipes wait for, once they are ordered
    whole: Count | None = None  # the same, with what others imply
    about: str = ""  # what refuses it, where something has to
    launch: float = 0.0  # seconds of computing that checking and running its kernels took
    seconds: float = 0.0  # of everything

    def after(self, step: str, why: str | None) -> Verdict:
        """The verdict with one step more: `why` it failed, empty where it did not."""
        if why is None:
            return self
        reasons = {**self.reasons, step: why} if why else self.reasons
        return replace(self, **{step: not why}, reasons=reasons)

    @classmethod
    def of(cls, data: dict[str, Any]) -> Verdict:
        """A verdict from a journal."""
        kinds: dict[str, Any] = {"order": Count._make, "whole": Count._make, "options": tuple}
        return cls(**{k: kinds[k](v) if v and k in kinds else v for k, v in data.items()})


def classified(text: str, path: str) -> Facts:
    """What kind of program a file holds, and how its test compiles it."""
    joined = re.sub(r"\\\n\s*//\s*RUN:", " ", text)
    every = [line for line in re.findall(r"RUN:(.*)", joined) if "ptoas" in line]
    # A file that is edited first is no longer this one.
    commands = [line for line in every if "sed " not in line] or every
    positive = [line for line in commands if not _REFUSED.search(line)]
    refused = len(positive) < len(commands) if "split-file" in text else not positive
    is_negative = (
        refused if commands else _NEGATIVE.search(Path(path).stem) is not None
    ) or "expected-error" in text
    command = next(iter(positive or commands), "")
    arch = re.search(r"--pto-arch[= ](\w+)", command)
    folder = _FOLDER.search(str(Path(path).parent))
    word = arch[1] if arch else (folder[1] or folder[2]) if folder else ""
    levels = [re.findall(r"--pto-level[= ]level(\d)", line) or ["0"] for line in commands]
    level = re.findall(r"--pto-level[= ]level(\d)", command) or ["0"]
    # Files without a command are samples, which their runner has ordered.
    sync = next((mode for flag, mode in _SYNC.items() if flag in command), None)
    code = _COMMENT.sub("", text)
    is_micro = _REGISTERS.search(code) is not None or any(
        micro_group(name) for name in set(_OPERATION.findall(code))
    )
    return Facts(
        "micro" if is_micro else "negative" if is_negative else "tile",
        {"a2": "a2a3", "a3": "a2a3", "a5": "a5"}.get(word.lower()),
        int(level[0]),
        int(level[0]) if all(each == level for each in levels) else 0,
        tuple(re.findall(r"--(?:enable|plan|disable)[\w-]*(?:=\w+)?", command)),
        sync if commands else "insert",
        next((what for what, said in _ELSEWHERE.items() if said.search(text)), "the language"),
        _OWN_LIBRARY.search(command or path) is not None,
    )


# ---- one file ----------------------------------------------------------------------------------


def judged(root: Path, skip: frozenset[str], rules: str, seconds: float, path: Path) -> Verdict:
    """Everything that is asked of one file; raises nothing but Ctrl-C."""
    start, begun = time.perf_counter(), time.process_time()
    name = str(path.relative_to(root))
    facts = classified(path.read_text("utf-8", "replace"), name)
    made = Verdict(
        name, facts.kind, facts.target or "", facts.level, facts.options, about=facts.about
    )
    warnings.simplefilter("ignore")  # what a release build accepts is no news here
    programs: dict[str, Program] = {}

    def read() -> str:
        programs.update(load_parts(path))
        return ""

    def within(step: Callable[[], str | None]) -> str | None:
        return _tried(step, seconds, begun)

    made = made.after("load", within(read))
    if made.load:
        work = _Work(path, facts, list(programs.values()), rules, seconds)
        steps = {"check": work.checked, "print": work.printed, "run": work.ran,
                 "levels": work.converted, "agree": work.compared}  # fmt: skip
        for step in STEPS if facts.kind == "tile" else ("check",):
            before = {"run": made.check, "levels": made.check, "agree": made.run}
            in_time = _LATE not in "".join(made.reasons.values())
            if step not in skip and before.get(step, True) and in_time:
                made = made.after(step, within(steps[step]))
        launch = round(sum(run.seconds for run in work.runs), 4)
        made = replace(made, order=work.order, whole=work.whole, launch=launch)
    return replace(made, seconds=round(time.perf_counter() - start, 3))


_LATE = "time: the file takes"


def _tried(step: Callable[[], str | None], seconds: float, start: float) -> str | None:
    """Why a step failed; a bug of ours is a reason too."""
    left = start + seconds - time.process_time()
    try:
        if left <= 0:
            raise TimeUp
        with limited(left, of_computing=True):
            return step()
    except TimeUp:
        return f"{_LATE} more than {seconds:g} seconds"
    except PtoError as error:
        return _said(error)
    except MemoryError as error:
        return f"memory: {error}"
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        return f"bug: {type(error).__name__}: {error} ({Path(where.filename).name}:{where.lineno})"


def _said(error: PtoError) -> str:
    first = error.diagnostics[0]
    return f"{first.code}: {first.message}"


@dataclass(frozen=True)
class _Run:
    """A kernel that has run: how its arguments are drawn, and what it has left in them."""

    program: Program
    kernel: str
    draw: Draw
    left: list[Any]
    seconds: float  # of computing


@dataclass
class _Work:
    """The steps of a file that has been read; each says why it failed, or nothing."""

    path: Path
    facts: Facts
    programs: list[Program]
    rules: str
    seconds: float
    runs: list[_Run] = field(default_factory=list["_Run"])
    order: Count | None = None
    whole: Count | None = None

    def target(self, program: Program) -> Target:
        """What a program is compiled for: a device, and a library where that has two."""
        found = program.target(self.facts.target)
        is_own = self.facts.has_own_library and found.tile_library is not None
        return found.override({TILE_LIBRARY: 1}) if is_own else found

    def checked(self) -> str:
        level = self.facts.level if len(self.programs) == 1 else self.facts.parts_level
        for program in self.programs:
            found = program.check(self.target(program), level, rules=self.rules)
            errors = [each for each in found if each.severity == "error"]
            if errors:
                return f"{errors[0].code}: {errors[0].message}"
        return ""

    def printed(self) -> str:
        for program in self.programs:
            once = str(program)
            if str(loads(once)) != once:
                return "the second printing differs from the first"
        return ""

    def ran(self) -> str | None:
        """Every kernel once, on arguments that it can take; a file of helpers has none."""
        kernels = [
            (program, name)
            for program in self.programs
            for name in program.kernels
            if not any(isinstance(p.type, BufferType) for p in program[name].function.params)
        ]
        for program, name in kernels:
            why = self._run(program, name)
            if why:
                return f"@{name}: {why}"
        return "" if kernels else None

    def _run(self, program: Program, name: str) -> str:
        first = ""
        for _, draw in attempts(program.launchable, program[name].function, 0, {}):
            made = draw()
            started = time.process_time()
            try:
                self._launch(program, name, made, check=True, sync=self.facts.sync)
            except PtoError as error:
                first = first or _said(error)
                if not is_misled(error):
                    return first
                continue
            took = time.process_time() - started
            self.runs.append(_Run(program, name, draw, made, took))
            return ""
        return first

    def _launch(
        self, program: Program, name: str, given: list[Any], check: bool, sync: str | None
    ) -> None:
        program[name][1](
            *given,
            target=self.target(program),
            rules=self.rules,
            max_seconds=self.seconds,
            check=check,
            sync=sync,
        )

    def converted(self) -> str:
        """Each level is read again; the last leaves the bytes that the program has left."""
        for program in self.programs:
            on = self.target(program)
            for level in ("l1", "l2"):
                _read_again(program, level, on)
            sync = self.facts.sync
            made = program.convert("l3", on, rules=self.rules, sync=sync)
            placed = loads(str(made))
            self.order = total([*_counts(placed.module), self.order or Count()])
            steps = Steps(sync=sync, is_reduced=False)
            policy = policy_for(program.module.location.file, self.rules, ())
            every = program.finished(on, steps, policy)
            self.whole = total([*_counts(every), self.whole or Count()])
            for run in self.runs:
                if run.program is program:
                    given = run.draw()
                    self._launch(placed, run.kernel, given, check=False, sync="keep")
                    if not all(map(_same_bytes, given, run.left)):
                        return f"@{run.kernel} leaves other bytes when it is placed"
        return ""

    def compared(self) -> str | None:
        """Against the second interpreter of the tests; None where it does not know the program."""
        if not self._can_compare():
            return None
        (run,) = self.runs
        function = run.program[run.kernel].function
        try:
            found = import_module("tests.models.compare").judged(
                self.path, self.path.name, 0.0, function, run.draw, run.left
            )
        except import_module("tests.models.interpreter").Unread:
            return None
        return "; ".join(found.reasons)

    def _can_compare(self) -> bool:
        is_there = (ROOT / "tests" / "models" / "compare.py").is_file()
        return is_there and len(self.programs) == len(self.runs) == 1


def _counts(module: Module) -> list[Count]:
    return [count(function) for function in module.functions if function.body is not None]


_AT_ONCE = 1 << 22  # bytes that are compared


def _same_bytes(one: Any, other: Any) -> bool:
    if not isinstance(one, np.ndarray):
        return True
    a, b = (np.ascontiguousarray(each).reshape(-1).view(np.uint8) for each in (one, other))
    parts = (slice(start, start + _AT_ONCE) for start in range(0, len(a), _AT_ONCE))
    return len(a) == len(b) and all(np.array_equal(a[part], b[part]) for part in parts)


def _read_again(program: Program, level: str, on: Target) -> None:
    try:
        text = str(program.convert(level, on))
    except PtoError:
        return  # what a form has no words for is refused by name
    loads(text)


# ---- all of them -------------------------------------------------------------------------------


def table(found: Iterable[Verdict]) -> str:
    """Markdown: the files at tile level that are not read or are refused, with the reason."""
    rows = [
        f"| `{v.file}` | {v.target or 'module'} | {step} | {_cell(v.reasons[step])} |"
        for v in found
        if v.kind == "tile"
        for step in ("load", *STEPS)
        if step in v.reasons
    ]
    head = ["| file | target | step | reason |", "|---|---|---|---|"]
    return "\n".join([*head, *rows]) + "\n"


def unread(found: Iterable[Verdict]) -> str:
    """Markdown: the files at tile level that are not read, each with what stands behind it."""
    rows = [
        f"| `{v.file}` | {BY_FILE.get(Path(v.file).stem, '')} |"
        for v in found
        if v.kind == "tile" and v.load is False
    ]
    return "\n".join(["| file | why it is not read |", "|---|---|", *rows]) + "\n"


def passed(found: Iterable[Verdict]) -> str:
    """Markdown: the files that something has to refuse, and that ptokit does not."""
    rows = [
        f"| `{v.file}` | {v.about} |" for v in found if v.kind == "negative" and not _is_refused(v)
    ]
    return "\n".join(["| file | refused by |", "|---|---|", *rows]) + "\n"


def judged_by_code(found: Iterable[Verdict]) -> str:
    """Markdown: the codes under which files at tile level fail, each with what stands behind it."""
    codes = Counter(
        re.sub(r"^@\w+: ", "", why).partition(": ")[0]
        for v in found
        if v.kind == "tile"
        for why in v.reasons.values()
    )
    rows = [f"| `{code}` | {n} | {JUDGEMENTS.get(code, '')} |" for code, n in sorted(codes.items())]
    return "\n".join(["| code | files | why it stands |", "|---|---|---|", *rows]) + "\n"


def waits(found: Iterable[Verdict]) -> str:
    """Markdown: how often the pipes of each file wait, once they are ordered."""
    rows = [
        f"| `{v.file}` | {' | '.join(map(str, v.order))} | {sum(v.whole) - sum(v.order)} |"
        for v in found
        if v.order and v.whole
    ]
    head = ["| file | waits | barriers of a pipe | of all pipes | left out: implied |",
            "|---|---|---|---|---|"]  # fmt: skip
    return "\n".join([*head, *rows]) + "\n"


def _cell(text: str) -> str:
    return re.sub(r"\s+", " ", text).replace("|", "\\|")[:220]


def page(found: list[Verdict], skip: frozenset[str]) -> str:
    """The table as a page of its own."""
    steps = ", ".join(step for step in ("load", *STEPS) if step not in skip)
    ordered = "\n## Waits\n\n" + waits(found) if any(each.order for each in found) else ""
    lines = "\n".join(f"* {line}" for line in summary(found))
    return f"""# Files that are not read, or are refused

Generated by `tools/corpus.py`; do not edit. The files are those of the public assembler's tests and
samples of August 2026, which are not part of this repository; the reasons are what ptokit says.
Steps taken: {steps}.

{lines}

## Why

{judged_by_code(found)}
## Files

{table(found)}
## Files that are not read

{unread(found)}
## Files that others refuse

These are tests of what has to be refused. What refuses them is no rule of the language: a back end
that cannot do something yet, how the command line of the assembler or its environment is used.

{passed(found)}{ordered}"""


def summary(found: list[Verdict]) -> list[str]:
    """The counts; the last line is the one to look at."""
    tile = [v for v in found if v.kind == "tile"]
    refused = [v for v in found if v.kind == "negative"]
    micro = sum(v.kind == "micro" for v in found)
    counts = Counter(step for v in tile for step in ("load", *STEPS) if getattr(v, step))
    tried = Counter(step for v in tile for step in STEPS if getattr(v, step) is not None)
    caught = sum(map(_is_refused, refused))
    bytes_ = [v for v in tile if v.levels is not None and v.run]
    return [
        f"files: {len(found)}: {len(tile)} at tile level, {micro} of the micro level, "
        f"{len(refused)} that must be refused ({caught} are)",
        f"print: {counts['print']} of {tried['print']} are printed, read and printed the same",
        f"levels: {counts['levels']} of {tried['levels']} convert; "
        f"{sum(v.levels is True for v in bytes_)} of {len(bytes_)} that run leave equal bytes",
        f"waits: {total([v.order for v in tile if v.order])}; "
        f"before what others imply was left out: {total([v.whole for v in tile if v.whole])}",
        f"runs: {counts['run']} of {tried['run']} with kernels; {counts['agree']} of "
        f"{tried['agree']} that the second interpreter knows agree",
        *_models([v for v in tile if _MODELS.search(v.file)]),
        f"corpus: {counts['load']} of {len(tile)} load, {counts['check']} check clean, "
        f"{counts['run']} run, {counts['agree']} agree",
    ]


def _models(found: list[Verdict]) -> list[str]:
    """How kernels of models fare, where there are any."""
    if not found:
        return []
    took = [v.launch for v in found if v.run] or [0.0]
    agree = sum(v.agree is True for v in found)
    return [
        f"models: {sum(v.run is True for v in found)} of {len(found)} run, "
        f"{agree} ({agree / len(found):.1%}) agree; {median(took):.3f} s of computing in the "
        f"median, at most {max(took):.2f} s"
    ]


def _lost(root: Path, path: Path, why: str) -> Verdict:
    name = str(path.relative_to(root))
    kind = classified(path.read_text("utf-8", "replace"), name).kind
    return Verdict(name, kind, load=False, reasons={"load": f"bug: {why}"})


def _is_refused(verdict: Verdict) -> bool:
    return verdict.load is False or verdict.check is False


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="files whose path matches this expression")
    parser.add_argument("--skip", default="", help=f"steps, with commas: {', '.join(STEPS)}")
    parser.add_argument("--rules", default="release", help="the profile that decides")
    parser.add_argument("--seconds", type=float, default=120.0, help="of computing, for a file")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--journal", type=Path, help="keep verdicts here, and go on from them")
    parser.add_argument("--json", type=Path, help="write the verdict of every file here")
    parser.add_argument("--table", type=Path, help="write the table of what is refused here")
    asked = parser.parse_args()
    files = {
        name: path
        for path in sorted(asked.folder.rglob("*.pto"))
        if re.search(asked.only, name := str(path.relative_to(asked.folder)))
    }
    skip = frozenset(word for word in asked.skip.split(",") if word)
    if skip - {*STEPS}:
        parser.error(f"the steps are {', '.join(STEPS)}")
    journal = Journal(asked.journal, (asked.folder, sorted(skip), asked.rules, asked.seconds))
    sys.path.insert(0, str(ROOT))  # for the second interpreter
    left = [path for name, path in files.items() if name not in journal.known]
    work = partial(judged, asked.folder, skip, asked.rules, asked.seconds)
    for each in followed(
        apart(left, work, partial(_lost, asked.folder), asked.jobs),
        "corpus",
        len(files),
        len(files) - len(left),
        lambda each: each.kind == "tile" and bool(each.reasons),
    ):
        journal.add(each.file, asdict(each))
    found = [Verdict.of(journal.known[name]) for name in files]
    if asked.json is not None:
        asked.json.write_text(json.dumps([asdict(v) for v in found], indent=1) + "\n", "utf-8")
    if asked.table is not None:
        asked.table.write_text(page(found, skip), "utf-8")
    else:
        print(table(found), end="")
    print("\n".join(summary(found)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
