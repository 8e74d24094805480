"""The figures that are kept of a folder of programs, by one command.

python tools/figures.py DIR --run-scripts [--jobs N] [--python PATH] [--table FILE]

DIR is the unpacked source tree of the public assembler. Four commands run over it, each of which
can be called alone: `tools/corpus.py` (every text), `python -m tests.models` (kernels of models
against a second interpreter, then against the NumPy scripts beside them) and `tools/suite.py` (the
tile tests in text form against their own generators and comparisons). What they say of single
programs goes to standard error; the last lines of each are printed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MODELS = "Deepseek|Qwen"


def commands(asked: argparse.Namespace) -> dict[str, list[str]]:
    """The commands by title; those whose folder is not there are left out."""
    samples, tests = (
        asked.folder / "test/samples",
        next(iter(sorted(asked.folder.glob("**/st/testcase"))), asked.folder / "st/testcase"),
    )
    jobs = ["--jobs", str(asked.jobs)]
    models = ["-m", "tests.models", str(samples), "--only", MODELS]
    table = ["--table", str(asked.table)] if asked.table else []
    python = ["--python", asked.python] if asked.python else []
    found = {
        "corpus": [str(ROOT / "tools/corpus.py"), str(asked.folder), *jobs, *table],
        "models": [*models, *jobs] if samples.is_dir() else [],
        "goldens": [*models, "--goldens"] if samples.is_dir() and asked.run_scripts else [],
        "suite": [str(ROOT / "tools/suite.py"), str(tests), "--run-scripts", *jobs, *python]
        if tests.is_dir() and asked.run_scripts
        else [],
    }
    return {title: command for title, command in found.items() if command}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--run-scripts", action="store_true", help="the folder's code may run here")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--python", help="the interpreter of the scripts, where they need others")
    parser.add_argument("--table", type=Path, help="write the page of what is refused here")
    asked = parser.parse_args()
    asked.folder = asked.folder.resolve()
    paths = os.pathsep.join((str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")))
    for title, command in commands(asked).items():
        done = subprocess.run(
            [sys.executable, "-W", "ignore", *command],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": paths},
            stdout=subprocess.PIPE,
            text=True,
        )
        *told, last = done.stdout.splitlines() or [f"{title}: exit {done.returncode}"]
        print(*told, sep="\n", file=sys.stderr)
        print(last, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
