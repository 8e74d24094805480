"""The figures that are kept of a folder of programs, by one command.

python tools/figures.py DIR --run-scripts [--jobs N] [--python PATH] [--table FILE] [--journal DIR]

DIR is the unpacked source tree of the public assembler. Three commands run over it, each of which
can be called alone: `tools/corpus.py` (every text; kernels of models among them), `python -m
tests.models --goldens` (kernels of models against the NumPy scripts beside them) and
`tools/suite.py` (the tile tests in text form against their own generators and comparisons). What
they say of single programs, and how far they are, goes to standard error; the figures are printed.
With a folder of journals a run that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FIGURE = re.compile(r"(files|print|levels|waits|runs|models|corpus|goldens|suite): ")


def commands(asked: argparse.Namespace) -> dict[str, list[str]]:
    """The commands by title; those whose folder is not there are left out."""
    samples, tests = (
        asked.folder / "test/samples",
        next(iter(sorted(asked.folder.glob("**/st/testcase"))), asked.folder / "st/testcase"),
    )

    def options(title: str) -> list[str]:
        kept = ["--journal", str(asked.journal / f"{title}.jsonl")] if asked.journal else []
        return ["--jobs", str(asked.jobs), *kept]

    table = ["--table", str(asked.table)] if asked.table else []
    python = ["--python", asked.python] if asked.python else []
    found = {
        "corpus": [str(ROOT / "tools/corpus.py"), str(asked.folder), *options("corpus"), *table],
        "goldens": ["-m", "tests.models", str(samples), "--goldens", *options("goldens")]
        if samples.is_dir() and asked.run_scripts
        else [],
        "suite": [
            str(ROOT / "tools/suite.py"),
            str(tests),
            "--run-scripts",
            *options("suite"),
            *python,
        ]
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
    parser.add_argument("--journal", type=Path, help="keep verdicts in this folder, and go on")
    asked = parser.parse_args()
    for name in ("folder", "table", "journal"):  # the commands run at the root of ptokit
        setattr(asked, name, getattr(asked, name) and getattr(asked, name).resolve())
    paths = os.pathsep.join((str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")))
    for title, command in commands(asked).items():
        with subprocess.Popen(
            [sys.executable, "-W", "ignore", *command],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": paths},
            stdout=subprocess.PIPE,
            text=True,
        ) as running:
            figures = 0
            for line in running.stdout or ():
                is_figure = FIGURE.match(line) is not None
                figures += is_figure
                print(line, end="", flush=True, file=sys.stdout if is_figure else sys.stderr)
        if not figures:
            print(f"{title}: exit {running.returncode}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
