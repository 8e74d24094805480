"""Run the tile tests of another tool in text form, and compare with what they expect.

python tools/suite.py DIR --run-scripts [--only NAME,...] [--jobs N] [--journal FILE] [--keep DIR]

A test is a folder with NAME.pto, a generator and a comparison in Python (gen_data.py, compare.py)
and a host program (main.cpp, launch.cpp) that fills the arguments of the kernels from files and
writes others. The host program is compiled against a stand-in for the device runtime, which hands
each launch to the simulator. The scripts and the host program belong to the folder: they run in
processes of their own, in a scratch folder, and only where --run-scripts says that they may.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import ptokit
from ptokit.base.diagnostics import PtoError

sys.path.insert(0, str(Path(__file__).resolve().parent))
from journal import Journal, TimeUp, apart, followed, limited
from judgements import ITS_OWN_RULES

PYTHON = "PTOKIT_SUITE_PYTHON"  # the interpreter of the scripts, for the processes of tests
STANDIN = Path(__file__).parent / "standin"
GOOD = "agrees", "void"
QUALIFIERS = ("__gm__", "__global__", "AICORE")
ELEMENTS = {
    "half": 16,
    "bfloat16_t": 16,
    "hifloat8_t": 8,
    "float8_e4m3_t": 8,
    "float8_e5m2_t": 8,
    "float8_e8m0_t": 8,
    "float4_e1m2x2_t": 8,
    "float4_e2m1x2_t": 8,
}


@dataclass(frozen=True)
class Verdict:
    """What came of one case: `agrees`, `differs`, `refused`, `unread` or `crashed`.

    `void`: the assembler that the test was written for refuses it as well.
    """

    test: str
    case: str
    status: str
    reason: str = ""
    seconds: float = 0.0


class Said(NamedTuple):
    """What came of a launch: "ran", or a status and the reason."""

    status: str
    why: str

    @property
    def ran(self) -> bool:
        return self.status == "ran"


def tests(root: Path) -> list[Path]:
    """The folders below `root` that hold a test."""
    found = (path.parent for path in sorted(root.rglob("gen_data.py")))
    return [folder for folder in found if (folder / f"{folder.name}.pto").is_file()]


# ---- the host program --------------------------------------------------------------------------


class Argument(ctypes.Structure):
    """What the stand-in says of an argument of a launch."""

    _fields_ = (("value", ctypes.c_void_p), ("size", ctypes.c_uint64), ("is_pointer", ctypes.c_int))


NOTHING = Argument(0, 0, 1)  # for parameters that a launch leaves out: no kernel may touch them

Launched = ctypes.CFUNCTYPE(
    None, ctypes.c_char_p, ctypes.c_int, ctypes.c_int, ctypes.POINTER(Argument)
)


def compiled(folder: Path, scratch: Path) -> ctypes.CDLL:
    """The host program of a test as a library; its launches go through the stand-in."""
    launchers = (folder / "launch.cpp").read_text("utf-8")
    launchers = re.sub(r"(\w+)\s*<<<([^,]*),[^>]*>>>\s*\(", r"STANDIN_LAUNCH(\1, \2, ", launchers)
    rewritten = scratch / "launchers.cpp"
    rewritten.write_text(f'#include "acl/acl.h"\n{launchers}', "utf-8")
    made = scratch / "host.so"
    common = [p.parent for p in folder.parent.parent.glob("**/test_common.h")][:1]
    command = [
        *("c++", "-std=c++17", "-O0", "-w", "-fPIC", "-shared", "-o", str(made)),
        *(f"-I{path}" for path in (STANDIN, *common)),
        *(f"-D{name}=" for name in QUALIFIERS),
        *(f"-D{name}=uint{bits}_t" for name, bits in ELEMENTS.items()),
        *("-include", "cstdint", str(folder / "main.cpp"), str(rewritten)),
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise ValueError(f"the host program does not compile: {done.stderr.splitlines()[0]}")
    return ctypes.CDLL(str(made))


class Host:
    """A host program at work; `said` is what came of the launches of the case in hand."""

    def __init__(self, library: ctypes.CDLL, program: Any, seconds: float) -> None:
        self.said = Said("", "")
        self._library = library
        self._program = program
        self._seconds = seconds
        self._callback = Launched(self._launched)
        library.standin_connect(self._callback)

    def run(self, case: str) -> Said:
        """Run one case in the current folder: "ran", or why not."""
        self.said = Said("unread", "the host program launches no kernel for it")
        words = [b"host", case.encode()]
        code = self._library.main(2, (ctypes.c_char_p * 2)(*words))
        said = self.said  # by launches, meanwhile
        return Said("unread", f"the host program ends with {code}") if code and said.ran else said

    def _launched(self, name: bytes, blocks: int, count: int, given: Any) -> None:
        try:
            kernel = self._program[name.decode()]
            values = [
                _value(param.type, given[index] if index < count else NOTHING)
                for index, param in enumerate(kernel.function.params)
            ]
            asked = {"PTO_TILE_LIBRARY": 1}  # what the tests are compiled with
            kernel[blocks](*values, defines=asked, rules="release", max_seconds=self._seconds)
            self.said = Said("ran", "")
        except PtoError as error:
            is_void = not ITS_OWN_RULES.isdisjoint(error.codes)
            self.said = Said("void" if is_void else "refused", reason(error))
        except Exception as error:  # a callback has nobody to raise to
            self.said = Said("crashed", repr(error))


def _value(type_: Any, given: Argument) -> Any:
    """An argument of a launch: memory of the host program, or a number."""
    if given.is_pointer:
        kind = np.dtype(type_.element.dtype.np)
        if not given.size:
            return np.zeros(0, kind)
        memory = (ctypes.c_char * given.size).from_address(given.value)
        return np.frombuffer(memory, kind, given.size // kind.itemsize)
    raw = ctypes.string_at(given.value, given.size)
    return np.frombuffer(raw, f"{'f' if type_.is_float else 'i'}{len(raw)}")[0].item()


# ---- one test ----------------------------------------------------------------------------------


def run_test(folder: Path, scratch: Path, seconds: float) -> list[Verdict]:
    """All cases of a test; its scripts run in `scratch`, which becomes the current folder."""
    warnings.simplefilter("ignore")  # of runs: `check` tells them
    scratch.mkdir(parents=True, exist_ok=True)
    os.chdir(scratch)

    def all_of_them(status: str, why: str) -> list[Verdict]:
        return [Verdict(folder.name, case, status, why) for case in cases or ["*"]]

    cases: list[str] = []
    made = _script(folder / "gen_data.py")
    if made.returncode:
        lines = made.stderr.strip().splitlines() or ["no message"]
        return all_of_them("unread", f"the generator fails: {lines[-1]}")
    cases = sorted(p.name for p in scratch.iterdir() if any(p.glob("*.bin")))
    try:
        host = Host(compiled(folder, scratch), ptokit.load(folder / f"{folder.name}.pto"), seconds)
    except PtoError as error:
        return all_of_them("refused", reason(error))
    except (OSError, ValueError) as error:
        return all_of_them("unread", str(error))
    found: list[Verdict] = []
    for case in cases:
        start = time.perf_counter()
        status, why = host.run(case)
        found.append(Verdict(folder.name, case, status, why, time.perf_counter() - start))
    return _compared(folder, found)


def _compared(folder: Path, found: list[Verdict]) -> list[Verdict]:
    """The verdicts of the test's own comparison about what ran."""
    ran = [each for each in found if each.status == "ran"]
    if len(ran) < len(found):  # it cannot compare what is not there
        return [_judged(folder, each) if each in ran else each for each in found]
    if _script(folder / "compare.py").returncode == 0:  # one process for all
        return [replace(each, status="agrees") for each in found]
    return [_judged(folder, each) for each in found]


def _judged(folder: Path, ran: Verdict) -> Verdict:
    done = _script(folder / "compare.py", ran.case)
    if done.returncode == 0:
        return replace(ran, status="agrees")
    said = re.sub(r"\x1b\[[\d;]*m", "", done.stdout + done.stderr).splitlines()
    more = [line for line in said if "compare failed" not in line]
    return replace(ran, status="differs", reason=(more or said or [f"exit {done.returncode}"])[-1])


def _script(path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    around = os.environ | {"PYTHONPATH": f"{path.parent}:{path.parent.parent}"}
    command = [os.environ.get(PYTHON, sys.executable), str(path), *arguments]
    return subprocess.run(command, env=around, capture_output=True, text=True)


def reason(error: PtoError) -> str:
    first = error.diagnostics[0]
    return f"{first.code}: {first.message}"


# ---- all of them -------------------------------------------------------------------------------


def _judged_test(scratch: Path, seconds: float, folder: Path) -> list[Verdict]:
    """The verdicts of a test, which has so many seconds for all its cases."""
    try:
        with limited(seconds):
            return run_test(folder, scratch / folder.name, seconds)
    except TimeUp:
        return _lost(folder, f"the test takes more than {seconds:g} seconds")


def _lost(folder: Path, why: str) -> list[Verdict]:
    return [Verdict(folder.name, "*", "crashed", why)]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--run-scripts", action="store_true", help="the folder's code may run here")
    parser.add_argument("--only", default="", help="names of tests, with commas")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=600.0, help="for each test")
    parser.add_argument("--journal", type=Path, help="keep verdicts here, and go on from them")
    parser.add_argument("--json", type=Path, help="write the verdict of every case here")
    parser.add_argument("--python", help="the interpreter of the scripts, where they need others")
    parser.add_argument("--keep", type=Path, help="the scratch folder; kept")
    asked = parser.parse_args()
    if not asked.run_scripts:
        parser.error("the tests have generators and host programs of their own: --run-scripts")
    if asked.python:
        os.environ[PYTHON] = asked.python
    wanted = {name for name in asked.only.split(",") if name}
    folders = [f for f in tests(asked.folder.resolve()) if not wanted or f.name in wanted]
    journal = Journal(asked.journal, (asked.folder.resolve(), asked.seconds))
    left = [folder for folder in folders if folder.name not in journal.known]
    with tempfile.TemporaryDirectory() as made:
        work = partial(_judged_test, (asked.keep or Path(made)).resolve(), asked.seconds)
        for cases in followed(
            apart(left, work, _lost, asked.jobs, share=1),  # a host program is loaded for good
            "suite",
            len(folders),
            len(folders) - len(left),
            lambda cases: any(each.status not in GOOD for each in cases),
        ):
            journal.add(cases[0].test, [asdict(each) for each in cases])
            for each in cases:
                if each.status not in GOOD:
                    print(f"{each.status}: {each.test}/{each.case}: {each.reason}", flush=True)
    found = [Verdict(**each) for folder in folders for each in journal.known[folder.name]]
    if asked.json is not None:
        asked.json.write_text(
            json.dumps([asdict(each) for each in found], indent=1) + "\n", "utf-8"
        )
    counts = Counter(each.status for each in found)
    void = counts.pop("void", 0)
    others = ", ".join(f"{n} {status}" for status, n in counts.most_common() if status != "agrees")
    if void:
        print(f"{void} more cases are refused by the assembler they were written for, too")
    every = counts.total()
    share = f"{counts['agrees']} of {every} cases agree ({counts['agrees'] / max(every, 1):.1%})"
    print(f"suite: {share}" + (f"; {others}" * bool(others)))
    return 0 if counts["agrees"] == every else 1


if __name__ == "__main__":
    sys.exit(main())
