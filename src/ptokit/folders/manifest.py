"""What is run in a folder: every program in it, as its `runs.toml` says.

    rules = "release"            # options here hold for every run below

    [[run]]
    program = "scale.pto"        # beside the manifest, or below it
    grid = 2
    args = { x = "x.npy", factor = 0.5, scratch = { shape = [16, 64], fill = 0 } }
    expected = { y = "y.npy" }   # or { y = { fill = 1 } }
    rtol = 1e-3

Parameters that `args` does not name are drawn from the seed, and so are all of a program that no
run speaks of.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, fields, replace
from pathlib import Path
from typing import Any

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import PtoError, usage_error
from ptokit.base.policy import PROFILES
from ptokit.base.spelling import meant

NAME = "runs.toml"
PROGRAMS = ("*.pto", "*.ptobc")


@dataclass(frozen=True)
class Case:
    """One run of a program."""

    program: Path
    kernel: str = ""  # none: each kernel of the program
    name: str = ""  # among the runs of the program
    args: Mapping[str, Any] = field(default_factory=dict[str, Any])
    expected: Mapping[str, Any] = field(default_factory=dict[str, Any])
    rtol: float | None = None
    atol: float | None = None
    grid: int = 1
    target: str | None = None
    sync: str | None = None
    place: bool | None = None
    rules: str | None = None
    seed: int = 0
    max_seconds: float | None = None

    def files(self) -> Iterator[Path]:
        """The program, and the arrays that are given or expected."""
        yield self.program
        for value in (*self.args.values(), *self.expected.values()):
            if isinstance(value, str):
                yield Path(value)

    def moved(self, place: Callable[[Path], Path]) -> Case:
        """The same, where its files are elsewhere."""
        args, expected = (
            {n: str(place(Path(v))) if isinstance(v, str) else v for n, v in given.items()}
            for given in (self.args, self.expected)
        )
        return replace(self, program=place(self.program), args=args, expected=expected)


def cases_in(place: Path, defaults: Mapping[str, Any]) -> list[Case]:
    """The runs of a folder, or of one program; options of the manifest come before `defaults`."""
    if place.is_file():
        return [Case(place, **defaults)]
    if not place.is_dir():
        raise usage_error("file", f"there is no file or folder {place}")
    found: list[Case] = []
    options: dict[Path, Mapping[str, Any]] = {}  # that hold in a folder, and below
    for file in sorted(place.rglob(NAME)):
        options[file.parent], cases = _read(file, defaults)
        found += cases
    told = {case.program for case in found}
    for path in {path for kind in PROGRAMS for path in place.rglob(kind)} - told:
        nearest = next((options[above] for above in path.parents if above in options), defaults)
        found.append(Case(path, **nearest))
    if not found:
        what = " and ".join(PROGRAMS)
        raise usage_error("file", f"{place} holds no program", fix=f"it is searched for {what}")
    return sorted(found, key=lambda case: case.program)


# ---- reading -------------------------------------------------------------------------------------

_Check = Callable[[Any], bool]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_argument(value: Any) -> bool:
    if isinstance(value, dict):
        shape = value.get("shape", [])
        is_shape = isinstance(shape, list) and all(map(_is_count, shape))
        return is_shape and set(value) <= {"shape", "fill"} and _is_number(value.get("fill", 0))
    return isinstance(value, str) or _is_number(value)


def _is_expected(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, dict) and set(value) == {"fill"})


def _by_name(check: _Check) -> _Check:
    return lambda value: isinstance(value, dict) and all(map(check, value.values()))


# Every key with what it takes: a sentence, and whether a value is such.
_KEYS: dict[str, tuple[str, _Check]] = {
    "program": ("the path of a program", lambda v: isinstance(v, str)),
    "kernel": ("the name of a kernel", lambda v: isinstance(v, str)),
    "name": ("a name for the run", lambda v: isinstance(v, str)),
    "args": (
        "by parameter a number, an .npy file, or { shape = [2, 3], fill = 0 }",
        _by_name(_is_argument),
    ),
    "expected": ("by parameter an .npy file, or { fill = 0 }", _by_name(_is_expected)),
    "rtol": ("a number", _is_number),
    "atol": ("a number", _is_number),
    "grid": ("a positive number of blocks", lambda v: _is_count(v) and v > 0),
    "target": ("the name of a target", lambda v: isinstance(v, str)),
    "sync": ('"insert" or "keep"', lambda v: v in ("insert", "keep")),
    "place": ("true or false", lambda v: isinstance(v, bool)),
    "rules": (f"one of {', '.join(PROFILES)}", lambda v: v in PROFILES),
    "seed": ("a whole number", _is_count),
    "max_seconds": ("a number", lambda v: _is_number(v) and v > 0),
}
_OF_ONE_RUN = ("program", "kernel", "name", "args", "expected")


def _read(file: Path, defaults: Mapping[str, Any]) -> tuple[Mapping[str, Any], list[Case]]:
    """The options that hold for all runs of a manifest, and the runs that it lists."""
    try:
        data = tomllib.loads(file.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise _wrong(file, str(error)) from None
    listed = data.pop("run", [])
    common = dict(defaults) | _checked(file, data, [k for k in _KEYS if k not in _OF_ONE_RUN])
    if not isinstance(listed, list) or not all(isinstance(run, dict) for run in listed):
        raise _wrong(file, "run is a list of tables", "[[run]] begins each")
    return common, [_case(file, common | _checked(file, run, list(_KEYS))) for run in listed]


def _case(file: Path, options: dict[str, Any]) -> Case:
    if "program" not in options:
        raise _wrong(file, "a run names its program", 'program = "k.pto"')
    beside = file.parent
    program = beside / options.pop("program")
    if not program.is_file():
        raise _wrong(file, f"there is no program {program}")
    case = Case(program, **options)
    args, expected = (
        {k: str(beside / v) if isinstance(v, str) else v for k, v in given.items()}
        for given in (case.args, case.expected)
    )
    return replace(case, args=args, expected=expected)


def _checked(file: Path, given: dict[str, Any], keys: list[str]) -> dict[str, Any]:
    for key, value in given.items():
        if key not in keys:
            fix = meant(key, keys) or f"one of {', '.join(keys)}"
            raise _wrong(file, f"there is no option {key} here", fix)
        takes, is_such = _KEYS[key]
        if not is_such(value):
            raise _wrong(file, f"{key} is {takes}, not {value!r}")
    return given


def _wrong(file: Path, why: str, fix: str = "") -> PtoError:
    return usage_error("manifest", f"{file}: {why}", fix=fix)


assert {*_KEYS} == {each.name for each in fields(Case)}
