"""Which programs of a public repository run unmodified on the stand-ins for MLIR and PyPTO.

python tools/compat_table.py DIR... [--only REGEX] [--table FILE] [--seconds N] [--journal FILE]
    [--command-seconds N] [--arguments REGEX WORDS]... [--launched REGEX] [--known]

Every Python file in the folders that imports the bindings, or a library over them, is executed as a
script, in a process of its own. What it builds is written as text and run on random arguments. The
table (Markdown) has a line for each program that does not run, with the reason, and counts the
others by folder. Libraries that a file imports are looked for in DIR itself. Files for PyPTO run by
themselves and assert what they compute: they have run when they end without an error. Those that
work on whole tensors are told apart by what they are refused for: an operation of `pl` on a tensor.

Programs with a device are run as their folder says: by the commands of its README.md, in a copy.
Those that --launched matches, which no README.md names, are started by themselves.
Files that want arguments are given those that --arguments has for their names.

All of it takes long. With a journal, what became of each program is noted as soon as it is known,
and a run that was stopped goes on where it was; what commands have made lies in a folder beside it.
With --known the table is that of the journal: what is not in it is listed as not run.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from subprocess import DEVNULL, PIPE
from tempfile import TemporaryDirectory
from typing import Any

from ptokit.compat.device.shell import environment
from ptokit.folders.runs import Outcome, Status, run_folder
from ptokit.from_text import loads
from ptokit.ir.types import ScalarType, Type

# What a program is refused for that leaves the cutting of tensors into tiles to PyPTO's compiler.
_OF_TENSORS = "`pypto.tensor`"
# Commands in a README.md: of a block for the shell, or of one that does not say what it is.
_BLOCK = re.compile(r"^```(?:bash|sh|shell)?[ \t]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^(?:\$ )?((?:bash|python3?) .*?)(?:\s+#.*)?$", re.MULTILINE)
_OPEN = re.compile(r"<\w+>")  # a word for the reader to fill in
_NOT_RUN = "was not run for this table"
_LONG = 60  # seconds of a command that are told
_KILLED = tuple(way for s in (signal.SIGXCPU, signal.SIGKILL) for way in (-s, 128 + s))
# A program runs again beside findings that its own checks do not see. Most are allowed; where that
# does not help, nobody could say how it would go on, and it has not run.
_SLACK = 1 << 20
_ROOM = {"gm-bounds": ("PTOKIT_SLACK", str(_SLACK))}
_STOPS_ITSELF = "trap"
_FINAL = (_STOPS_ITSELF, "budget")  # findings that nobody can allow
_USES = re.compile(r"^\s*(?:from|import)\s+(?:(?:ptoas\.)?mlir|ptodsl)\b", re.MULTILINE)
_SIDE = 32
# A program with a mistake, for the tests of a tool.
_MISTAKEN = re.compile(r"_(invalid|xfail)\.py$")
_PYPTO = re.compile(r"^\s*(?:from|import)\s+pypto\.language\b", re.MULTILINE)
# What a file imports that is about devices, not about programs.
_DEVICE = re.compile(r"^\s*(?:from|import)\s+(?:torch|torch_npu|acl)\b", re.MULTILINE)
_BUILD = """
import sys
from pathlib import Path
from ptokit import compat
for number, program in enumerate(compat.programs_of(sys.argv[1], sys.argv[3:])):
    (Path(sys.argv[2]) / f"{number}.pto").write_text(program.text, "utf-8")
"""
# Files for PyPTO, each in a fork of one process that has loaded what all of them import.
_SCRIPTS = """
import contextlib, io, json, os, runpy, signal, sys
from pathlib import Path
import ptokit.compat, pypto.language
from ptokit.base.diagnostics import PtoError
with contextlib.suppress(ImportError):
    import torch
    torch.set_num_threads(1)
def run(file):
    # One that imports from beside it, `from .x import y`, is a module of a package.
    root = file.parent
    while (root / "__init__.py").exists():
        root = root.parent
    if root == file.parent or "\\nfrom ." not in file.read_text():
        return runpy.run_path(str(file), run_name="__main__")
    sys.path.insert(0, str(root))
    name = ".".join(file.relative_to(root).with_suffix("").parts)
    return runpy.run_module(name, run_name="__main__", alter_sys=True)
for file in sys.argv[2:]:
    child = os.fork()
    if not child:
        signal.setitimer(signal.ITIMER_PROF, int(sys.argv[1]))
        sys.argv = [file]
        sys.path.insert(0, str(Path(file).parent))
        why = ""
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                run(Path(file))
        except PtoError as error:
            first = error.diagnostics[0]
            why = f"{', '.join(f'`{each}`' for each in error.codes)} {first.message}"
        except SystemExit as stop:
            why = f"ends with {stop.code}" if stop.code else ""
        except BaseException as error:
            why = f"{type(error).__name__}: {error}"
        print(json.dumps([file, why]), flush=True)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        print(json.dumps([file, f"takes more than {sys.argv[1]} s"]), flush=True)
"""
HEADER = """# Public programs that run unmodified

Generated by `tools/compat_table.py`; do not edit. The programs are those of public repositories,
which are not part of this one. A file is executed as a script; *built* are those that made a
program, *ran* those whose kernels ran with every check on, on random arrays and numbers, or with
32 for each number. A number that says more than a size - a logarithm of another one - is not
guessed: *by its commands* are programs that ran with the arguments of their folder's README.md
only. Files for PyPTO run their kernels themselves: they ran when they ended, with every `assert` of
theirs. *Of whole tensors* are those that call an operation of `pl` on tensors (`pypto.tensor`),
which PyPTO's compiler cuts into tiles: they are not of the tile level.

Commands are those of the README.md of a folder that are there for a device: its tool chain, its
libraries and its tensors are the stand-ins. They ran when they ended with 0, with every comparison
of theirs. *Beside a finding* are programs and commands that end well although something true is to
be said of them: a kernel leaves its array (`gm-bounds`: more room lies past each), races (`E6`,
`E8`), reads what nothing has written (`poison-read`), or breaks a rule that no compiler and no
device enforces; all of these are allowed for them.

What programs that did not run were refused for is what ptokit says about them. *Break a rule* are
those that a device's compiler would refuse, or of which nobody knows what they would do: most are
there to be compiled by another tool, not to be run. *Refused, as named* are programs with a
mistake, for tests of that tool (`..._invalid.py`), that break a rule here; one that is listed was
stopped for something else. *Stop themselves* are programs that end with a trap.
"""


@dataclass(frozen=True)
class Told:
    """What became of a file."""

    file: str
    is_built: bool
    reason: str = ""  # why it was not built, or has not run
    is_refused: bool = False  # for breaking a rule
    is_script: bool = False  # which runs its kernels itself
    beside: str = ""  # findings that it ran beside

    @property
    def is_of_tensors(self) -> bool:
        return _OF_TENSORS in self.reason

    @property
    def has_run(self) -> bool:
        return not self.reason

    @property
    def has_stopped_itself(self) -> bool:
        return self.reason.startswith(f"`{_STOPS_ITSELF}` ")

    @property
    def is_as_named(self) -> bool:
        """Whether it is refused, and its name says that it is to be."""
        return self.is_refused and _MISTAKEN.search(self.file) is not None


class Journal:
    """What is known of the programs of a repository, kept in a file if there is one to keep it."""

    def __init__(self, file: Path | None, root: Path, *, is_closed: bool = False) -> None:
        self._file, self._root = file, root.name
        self.is_closed = is_closed  # nothing is run for it
        self.folder = file and file.with_suffix(".copies")
        lines = file.read_text("utf-8").splitlines() if file and file.exists() else []
        noted = map(json.loads, lines)
        self._known = {what: known for where, what, known in noted if where == self._root}

    def has(self, what: str) -> bool:
        return what in self._known

    def get(self, what: str, find: Callable[[], Told | Command | None]) -> dict[str, Any] | None:
        """The fields of what became of something: as noted, or found now."""
        if what not in self._known:
            found = find()
            self._known[what] = None if found is None else asdict(found)
            if self._file and not self.is_closed:
                with self._file.open("a", encoding="utf-8") as file:
                    print(json.dumps([self._root, what, self._known[what]]), file=file)
        return self._known[what]


def programs(root: Path, only: str) -> list[Path]:
    """The scripts of a folder that build programs: not its libraries, tests of them, or devices."""
    found: list[Path] = []
    for file in sorted(root.rglob("*.py")):
        text = file.read_text("utf-8", errors="replace")
        if not _USES.search(text) or not re.search(only, str(file.relative_to(root))):
            continue
        is_library = (file.parent / "__init__.py").exists() or file.name.startswith("test_")
        if not is_library and not _DEVICE.search(text):
            found.append(file)
    return found


def scripts(root: Path, only: str, seconds: float, journal: Journal) -> list[Told]:
    """What becomes of the files for PyPTO that are there to be run."""
    files = [
        file
        for file in sorted(root.rglob("*.py"))
        if re.search(only, str(file.relative_to(root)))
        and _PYPTO.search(text := file.read_text("utf-8", errors="replace"))
        and "__main__" in text
        and not file.name.startswith("test_")
    ]
    names = [str(file.relative_to(root)) for file in files]
    unknown = [f for f, name in zip(files, names, strict=True) if not journal.has(name)]
    wanted = [] if journal.is_closed else list(map(str, unknown))
    words = [sys.executable, "-c", _SCRIPTS, f"{seconds:.0f}", *wanted]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([*_own(), os.environ.get("PYTHONPATH", "")])}
    if wanted:
        with subprocess.Popen(words, env=env, cwd=root, stdout=PIPE, stderr=DEVNULL) as running:
            for line in running.stdout or ():
                file, why = json.loads(line)
                name = str(Path(file).relative_to(root))
                journal.get(name, partial(Told, name, not why, why, is_script=True))
        if running.returncode:
            raise subprocess.CalledProcessError(running.returncode, words)
    missing = partial(Told, is_built=False, reason=_NOT_RUN, is_script=True)
    return [Told(**known) for name in names if (known := journal.get(name, partial(missing, name)))]


@dataclass(frozen=True)
class Command:
    """What became of a command of a README.md."""

    folder: str
    words: str
    reason: str = ""
    beside: str = ""  # findings that it ran beside
    seconds: float = 0.0  # of the processor


def walkthroughs(
    root: Path, only: str, seconds: float, journal: Journal, launched: str = ""
) -> list[Command]:
    """What becomes of the commands by which folders say that their programs are run."""
    found: list[Command] = []
    with TemporaryDirectory() as place:
        # Kept from one command to the next, which wants what it has made.
        copy = Path(journal.folder or place, root.name).resolve()
        for folder, words in commands_in(root, only, launched):
            if not (copy.exists() or journal.is_closed):
                shutil.copytree(root, copy, ignore=shutil.ignore_patterns(".git"))
            run = partial(run_command, copy, folder, words, seconds)
            if journal.is_closed:
                run = partial(Command, folder, words, _NOT_RUN)
            if known := journal.get(f"{folder}: {words}", run):
                found.append(Command(**known))
    return found


def commands_in(root: Path, only: str, launched: str) -> Iterator[tuple[str, str]]:
    """The commands of a repository, each with its folder: of README.md files, then the others."""
    named: set[Path] = set()
    for readme in sorted(root.rglob("README.md")):
        folder = readme.parent.relative_to(root)
        for words in commands_of(readme) if re.search(only, str(folder)) else ():
            named.add((readme.parent / words.split()[1]).resolve())
            yield str(folder), words
    for file in sorted(root.rglob("*.py")) if launched else ():
        name, text = file.relative_to(root), file.read_text("utf-8", errors="replace")
        is_started = "__main__" in text and not file.name.startswith("test_")
        if is_started and re.search(launched, str(name)) and file.resolve() not in named:
            yield str(name.parent), f"python ./{name.name}"


def commands_of(readme: Path) -> list[str]:
    """The commands of a folder whose programs ask for a device: those of the first block with any.

    What they name must lie in the folder.
    """
    sources = [each.read_text("utf-8", errors="replace") for each in readme.parent.glob("*.py")]
    if not any(_DEVICE.search(each) for each in sources):
        return []
    blocks = _BLOCK.findall(readme.read_text("utf-8", errors="replace"))
    found = next(filter(None, (_COMMAND.findall(each) for each in blocks)), [])
    return [
        each
        for each in found
        if (readme.parent / each.split()[1]).is_file() and not _OPEN.search(each)
    ]


def run_command(copy: Path, folder: str, words: str, seconds: float) -> Command:
    """Run it; beside findings that its own checks do not see, where there is nothing else."""
    more: dict[str, str] = {}
    before = _processor_seconds()
    reason, codes = _ran(copy / folder, words, copy, seconds, more)
    beside: list[str] = []
    while reason and codes and not any(code in beside for code in codes):
        for name, value in (_ROOM.get(code, ("PTOKIT_ALLOW", code)) for code in codes):
            more[name] = ",".join(filter(None, (more.get(name), value)))
        beside += codes
        reason, codes = _ran(copy / folder, words, copy, seconds, more)
    spent = round(_processor_seconds() - before, 1)
    return Command(folder, words, reason, "" if reason else ", ".join(beside), spent)


def _processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _ran(
    folder: Path, words: str, copy: Path, seconds: float, more: dict[str, str]
) -> tuple[str, list[str]]:
    """Why a command has not ended well, and the codes of what was found."""
    paths = os.pathsep.join([*map(str, _paths(copy)), *_own()])
    env = {**environment(replace=True), "PYTHONPATH": paths, **more}
    limited = f"ulimit -t {seconds:.0f}; {words}"  # of the processor: others may use it as well
    done = subprocess.run(
        ["bash", "-c", limited], cwd=folder, env=env, capture_output=True, text=True
    )
    said = done.stderr
    if done.returncode in _KILLED:
        return f"takes more than {seconds:g} s", []
    if not done.returncode:
        return "", []
    errors = re.findall(r"error\[([\w.-]+)\](?: \[\w+\])?: (.*)", said)
    codes = list(dict.fromkeys(code for code, _ in errors))
    if errors:
        return f"{', '.join(f'`{code}`' for code in codes)} {errors[0][1]}", codes
    return (said.strip().splitlines() or [f"ends with {done.returncode}"])[-1], []


def told(file: Path, root: Path, seconds: float, arguments: Sequence[str] = ()) -> Told | None:
    """Execute a file and run what it builds; None when it builds nothing, and is no program."""
    name = str(file.relative_to(root))
    env = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([*map(str, _paths(root)), *_own()]),
    }
    with TemporaryDirectory() as folder:
        words = [sys.executable, "-c", _BUILD, str(file), folder, *arguments]
        try:
            done = subprocess.run(
                words,
                env=env,
                cwd=folder,
                capture_output=True,
                text=True,
                timeout=seconds,
            )
        except subprocess.TimeoutExpired:
            return Told(name, False, reason=f"not built within {seconds:g} s")
        if "error[script.nothing-built]" in done.stderr:
            return None
        if done.returncode:
            lines = [line for line in done.stderr.splitlines() if "error[" in line]
            last = (lines or done.stderr.strip().splitlines() or [""])[-1]
            why = re.sub(r"^.*?error\[", "[", last)
            said = done.stderr.partition("Traceback (")[0].strip().splitlines()
            if "ended with exit code" in why and said:
                why = f"{why}: {said[-1]}"
            return Told(name, False, why)
        # One with a mistake is there to be refused.
        may_allow = _MISTAKEN.search(name) is None
        runs, beside = _run_programs(Path(folder), seconds, may_allow=may_allow)
        if _are_done(runs):
            return Told(name, True, beside=", ".join(beside))
        return Told(name, True, _why(runs), any(r.status is Status.REFUSED for r in runs))


def _codes(runs: Sequence[Outcome]) -> list[str]:
    bad = (each for each in runs if each.status is not Status.RAN)
    return list(dict.fromkeys(d.code for each in bad for d in each.diagnostics))


def _run_programs(
    place: Path, seconds: float, *, may_allow: bool
) -> tuple[Sequence[Outcome], Sequence[str]]:
    """Run what was built, on arguments of any size, or of one, and on what it may be for.

    The first way in which all runs well, else one beside findings, and what these are; else that
    in which least is wrong.
    """
    ways = [(size, target) for size in (None, _SIDE) for target in (None, "a5")]
    tried: dict[tuple[int | None, str | None], Sequence[Outcome]] = {}
    for way in ways:
        tried[way] = _run_once(place, *way, (), seconds)
        if _are_done(tried[way]):
            return tried[way], ()
    for way in ways if may_allow else ():
        runs, beside = tried[way], list[str]()
        while _may_be_allowed(codes := _codes(runs), beside):
            beside += codes
            runs = _run_once(place, *way, beside, seconds)
            if _are_done(runs):
                return runs, beside
    return max(tried.values(), key=_merit), ()


def _may_be_allowed(codes: Sequence[str], known: Sequence[str]) -> bool:
    """Whether it may help to allow these, which were not before."""
    return bool(codes) and not any(code in known or code in _FINAL for code in codes)


def _run_once(
    place: Path, size: int | None, target: str | None, allow: Sequence[str], seconds: float
) -> Sequence[Outcome]:
    """Run them with some findings allowed, in a folder of its own: a project file holds there."""
    with TemporaryDirectory() as folder:
        shutil.copytree(place, folder, dirs_exist_ok=True)
        Path(folder, "ptokit.toml").write_text(f"allow = {json.dumps(allow)}\n", "utf-8")
        if size is not None:  # its numbers may be sizes
            Path(folder, "runs.toml").write_text("".join(_tables(Path(folder), size)), "utf-8")
        return run_folder(folder, seed=1, sync="insert", target=target, max_seconds=seconds)


def _are_done(runs: Sequence[Outcome]) -> bool:
    return all(each.status is Status.RAN for each in runs)


def _why(runs: Sequence[Outcome]) -> str:
    """Why not all of them ran."""
    bad = [each for each in runs if each.status is not Status.RAN]
    said = (
        f"{', '.join(f'`{code}`' for code in _codes(runs))} {bad[0].reason if bad else ''}".strip()
    )
    return said or ("did not run" if bad else "")


def _tables(folder: Path, size: int) -> Iterator[str]:
    """A run of every kernel with the side of a small tile for each whole number."""
    for file in sorted(folder.glob("*.pto")):
        program = loads(file.read_text("utf-8"), file.name)
        for name in program.kernels:
            whole = [p.name for p in program[name].function.params if _is_whole(p.type)]
            args = ", ".join(f"{each} = {size}" for each in whole)
            head = f'[[run]]\nprogram = "{file.name}"\nkernel = "{name}"\n'
            yield f"{head}args = {{ {args} }}\n\n"


def _is_whole(kind: Type) -> bool:
    is_number = isinstance(kind, ScalarType)
    return is_number and kind.name != "i1" and (kind.dtype is None or kind.dtype.is_integer)


def _merit(runs: Sequence[Outcome]) -> tuple[int, int]:
    """The better of two targets: more has run, or less is wrong."""
    wrong = sum(len(each.diagnostics) for each in runs)
    return sum(each.status is Status.RAN for each in runs), -wrong


def _paths(root: Path) -> list[Path]:
    return [each for each in (root, root / "ptodsl") if each.is_dir()]


def _own() -> list[str]:
    return [str(Path(__file__).resolve().parents[1] / "src")]


def table(root: Path, found: list[Told], commands: list[Command]) -> str:
    """The section of a repository."""
    lines = [f"\n## {root.name}\n"]
    programs_ = [each for each in found if not each.is_script]
    scripts_ = [each for each in found if each.is_script]
    by_command = [each for each in programs_ if not each.has_run and _is_commanded(each, commands)]
    if programs_:
        counts: dict[str, Callable[[Told], bool]] = {}
        counts |= {"programs": lambda m: True, "built": lambda m: m.is_built, "ran": _has_run}
        more: dict[str, Callable[[Told], bool]] = {
            "beside a finding": lambda m: bool(m.beside),
            "by its commands": lambda m: m in by_command,
            "refused, as named": lambda m: m.is_as_named,
            "break a rule": lambda m: m.is_refused and not m.is_as_named,
            "stop themselves": lambda m: m.has_stopped_itself,
        }
        counts |= {name: test for name, test in more.items() if any(map(test, programs_))}
        lines += _counted(programs_, counts)
    if scripts_:
        counts = {"programs": lambda m: True, "of whole tensors": lambda m: m.is_of_tensors,
                  "ran": _has_run}  # fmt: skip
        lines += _counted(scripts_, counts)
    rest = [each for each in found if each.reason and not each.is_as_named]
    rest = [each for each in rest if not each.has_stopped_itself]
    rest = [each for each in rest if each not in by_command]
    if rest:
        lines += ["\n| program | built | why it does not run |", "|---|---|---|"]
        for each in rest:
            lines.append(
                f"| {each.file} | {'yes' if each.is_built else 'no'} | {_cell(each.reason)} |"
            )
    beside_ = [each for each in found if each.beside]
    if beside_:
        lines += ["\n| program | ran beside |", "|---|---|"]
        lines += [f"| {each.file} | `{each.beside}` |" for each in beside_]
    if commands:
        lines += ["\n| folder | commands | ran | beside a finding |", "|---|---|---|---|"]
        for name in [*dict.fromkeys(each.folder for each in commands), "all"]:
            members = [each for each in commands if name in (each.folder, "all")]
            ran = sum(not each.reason for each in members)
            beside = sum(bool(each.beside) for each in members)
            lines.append(f"| {name} | {len(members)} | {ran} | {beside or ''} |")
        lines += [
            "\n| command | seconds | why it does not run, or what it runs beside |",
            "|---|---|---|",
        ]
        for each in commands:
            why = each.reason or (f"ran beside `{each.beside}`" if each.beside else "")
            if why or each.seconds >= _LONG:
                shown = f"{each.seconds:.0f}"
                lines.append(f"| {each.folder}: `{each.words}` | {shown} | {_cell(why)} |")
    return "\n".join(lines) + "\n"


def _is_commanded(program: Told, commands: Sequence[Command]) -> bool:
    """Whether it is run by the commands of its folder, all of which ended well."""
    own = [each for each in commands if each.folder == str(Path(program.file).parent)]
    return bool(own) and not any(each.reason for each in own)


def _has_run(each: Told) -> bool:
    return each.has_run


def _counted(found: list[Told], counts: dict[str, Callable[[Told], bool]]) -> list[str]:
    groups: dict[str, list[Told]] = defaultdict(list)
    for each in found:
        parts = Path(each.file).parts
        groups["/".join(parts[:2]) if len(parts) > 2 else parts[0]].append(each)
    lines = [f"\n| folder | {' | '.join(counts)} |", "|---" * (len(counts) + 1) + "|"]
    for name, members in [*sorted(groups.items()), ("all", found)]:
        numbers = (sum(map(count, members)) for count in counts.values())
        lines.append(f"| {name} | {' | '.join(map(str, numbers))} |")
    return lines


def _cell(text: str) -> str:
    shown = re.sub(r"/\S*/(?=[^/\s]+)", "", text)  # of a path its last part
    return shown.replace("|", "\\|").replace("\n", " ")[:300]


def main() -> None:
    """Print the table, or write it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--only", default="", help="a pattern for the names of files")
    parser.add_argument("--table", type=Path, help="the page to write")
    parser.add_argument("--seconds", type=float, default=20, help="for one file")
    parser.add_argument("--command-seconds", type=float, help="for one command; as for a file")
    parser.add_argument("--journal", type=Path, help="where to note what is known, and go on")
    parser.add_argument("--arguments", nargs=2, action="append", default=[],
                        metavar=("REGEX", "WORDS"), help="for files of such names")  # fmt: skip
    parser.add_argument(
        "--launched", default="", help="a pattern for files that are started by themselves"
    )
    parser.add_argument("--known", action="store_true", help="only what the journal has")
    asked = parser.parse_args()
    page = HEADER
    if asked.arguments:
        told_ = "; ".join(
            f"`{words}` to those that match `{name}`" for name, words in asked.arguments
        )
        page += f"\nArguments were given: {told_}.\n"
    if asked.launched:
        page += f"\nFiles that match `{asked.launched}` were started by themselves.\n"
    if asked.only:
        page += (
            f"\nOf the repositories only files and folders that match `{asked.only}` were run.\n"
        )
    for root in asked.folders:
        journal = Journal(asked.journal, root, is_closed=asked.known)
        members: list[Told] = []
        for file in programs(root, asked.only):
            name = str(file.relative_to(root))
            words = next((w.split() for n, w in asked.arguments if re.search(n, name)), [])
            find = partial(told, file, root, asked.seconds, words)
            if journal.is_closed:
                find = partial(Told, name, False, _NOT_RUN)
            if known := journal.get(name, find):
                members.append(Told(**known))
        members += scripts(root, asked.only, asked.seconds, journal)
        seconds = asked.command_seconds or asked.seconds
        commands = walkthroughs(root, asked.only, seconds, journal, asked.launched)
        page += table(root, members, commands)
    if asked.table:
        asked.table.write_text(page, "utf-8")
    else:
        print(page)


if __name__ == "__main__":
    main()
