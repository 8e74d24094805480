"""Scripts that compute in NumPy what a kernel must give, as some folders have them.

A script `X_golden.py` above the kernel `X.pto` reads the sizes of the arrays and the numbers from a
`main.cpp` in the current folder, the names of the outputs from `outputs.txt`, and writes inputs as
`NAME.bin` and results as `golden_NAME.bin`. What it needs is made here, in a temporary folder.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ptokit import PtoError, load
from ptokit.folders.arrays import is_changed
from ptokit.folders.inputs import RANGES, Draw, attempts, draw, is_misled
from ptokit.from_text import Program
from ptokit.ir.core import Function
from tests.models.compare import Verdict, difference

_TYPES = {
    "float32": "float",
    "float16": "half",
    "bfloat16": "bfloat16_t",
    **{f"{u}int{n}": f"{u}int{n}_t" for u in ("", "u") for n in (8, 16, 32, 64)},
}


def golden_of(path: Path) -> Path | None:
    """The script of a kernel, in the folders above it."""
    places = [above / f"{path.stem}_golden.py" for above in list(path.parents)[:3]]
    return next((each for each in places if each.is_file()), None)


def _first_run(
    program: Program, function: Function, launched: Callable[[list[Any]], list[Any]]
) -> tuple[Draw, list[Any] | None]:
    """Arguments that the kernel can take, and what it leaves in them; None: it takes none.

    Those on which it changes something come first.
    """
    numbers = [p.name for p in function.params if not hasattr(p.type, "element")]
    given = {each: int(n > 0) for n, each in enumerate(numbers)}  # a place, then counts
    module = program.launchable
    first = partial(draw, module, function, 0, RANGES[0], given)
    found: tuple[Draw, list[Any] | None] = first, None
    for made in (first, *(each for _, each in attempts(module, function, 0, {}))):
        try:
            after = launched(made())
        except PtoError as error:
            if not is_misled(error):
                break
            continue
        pairs = zip(made(), after, strict=True)
        if any(isinstance(old, np.ndarray) and is_changed(old, new) for old, new in pairs):
            return made, after
        if found[1] is None:
            found = made, after
    return found


def compare_golden(path: Path, name: str) -> Verdict:
    """Run a kernel on what its script makes, which may be inputs and no results."""
    script = golden_of(path)
    assert script is not None
    program = load(path)
    kernel = program.entry()
    params = kernel.function.params

    def launched(values: list[Any]) -> list[Any]:
        with warnings.catch_warnings(action="ignore"):
            kernel[1](*values, rules="release", sync="insert")
        return values

    made, after = _first_run(program, kernel.function, launched)
    nothing = Verdict(name, True, is_about_results=False)
    if after is None:
        return nothing
    slots = re.findall(r"gm_slot_buffer = %(\w+)", path.read_text("utf-8"))  # not the script's
    names = {n: f"v{n + 1}" for n, value in enumerate(after) if isinstance(value, np.ndarray)}
    outputs = [
        n
        for n, old in enumerate(made())
        if n in names and params[n].name not in slots and is_changed(old, after[n])
    ]
    if not outputs:
        return nothing
    with tempfile.TemporaryDirectory() as folder:
        numbers = [value for n, value in enumerate(after) if n not in names]
        main = [f"int32_t n{n} = {value};" for n, value in enumerate(numbers)]
        for n, each in names.items():
            kind = _TYPES[after[n].dtype.name]
            main.append(f"size_t elemCount_{each} = {after[n].size};")
            main.append(f"size_t fileSize_{each} = elemCount_{each} * sizeof({kind});")
            main.append(f'ReadFile("./{each}.bin"')
        Path(folder, "main.cpp").write_text("\n".join(main))
        Path(folder, "outputs.txt").write_text("\n".join(names[n] for n in outputs))
        beside = os.pathsep.join(map(str, list(script.parents)[:2]))
        done = subprocess.run(
            [sys.executable, str(script)],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": beside},
            capture_output=True,
            text=True,
            timeout=900,
        )
        if done.returncode:
            return Verdict(name, False, reasons=(done.stderr.strip().splitlines()[-1],))
        results = {n: Path(folder, f"golden_{names[n]}.bin") for n in outputs}
        if not results or not all(each.is_file() for each in results.values()):
            return nothing
        given = {n: Path(folder, f"{name}.bin") for n, name in names.items()}
        values = [  # a script need not make what is only scratch
            np.fromfile(given[n], old.dtype) if n in given and given[n].is_file() else old
            for n, old in enumerate(made())
        ]
        before = [np.array(values[n]) for n in outputs]
        wanted = [np.fromfile(results[n], after[n].dtype) for n in outputs]
    launched(values)
    reasons: list[str] = []
    for n, old, expected in zip(outputs, before, wanted, strict=True):
        told = np.flatnonzero(expected.view(np.uint8).reshape(len(old), -1).any(1))
        found = difference(values[n][told], expected[told], told)
        reasons += [f"%{n}: {found}"] if found else []
    return Verdict(name, True, reasons=tuple(reasons))
