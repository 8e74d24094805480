"""Random kernels through every door: `python -m tests.fuzz --seeds 0:2000 --jobs 2`.

Prints the kernels that get different verdicts, and a closing line that says what was looked at.
"""

from __future__ import annotations

import argparse
import gc
import sys
import tempfile
import time
from pathlib import Path

from ptokit.isa import remedies
from ptokit.tasks import Executor, Task, Work
from tests.fuzz.doors import Outcome, outcome

CHUNK = 50


def chunk(seeds: range) -> list[Outcome]:
    remedies._ORDER = ()  # verdicts have no advice in them, and the search for it takes long
    gc.freeze()  # what is imported stays
    gc.set_threshold(50_000, 20, 50)
    with tempfile.TemporaryDirectory() as folder:
        return [outcome(seed, Path(folder)) for seed in seeds]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seeds", default="0:2000", metavar="FROM:TO")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--sources", action="store_true", help="print the kernels as well")
    options = parser.parse_args()
    first, last = map(int, options.seeds.split(":"))
    chunks = [range(n, min(n + CHUNK, last)) for n in range(first, last, CHUNK)]
    began = time.monotonic()
    done = accepted = 0
    wrong: list[int] = []
    tasks = (Task(str(seeds), seeds) for seeds in chunks)
    for result in Executor(options.jobs).results(Work(chunk), tasks, ordered=True):
        outcomes = result.get()
        for each in outcomes:
            accepted += each.accepted
            if each.differences:
                wrong.append(each.program.seed)
                print(f"seed {each.program.seed} ({each.program.mode}), {each.target}:")
                print(*(f"  {d}" for d in each.differences), sep="\n")
                if options.sources:
                    print(each.program.source)
        done += len(outcomes)
        if sys.stderr.isatty():
            rate = done / (time.monotonic() - began)
            print(f"\r{done} of {last - first}, {rate:.0f}/s", end="", file=sys.stderr)
    refused = done - accepted
    said = f"{accepted} run, {refused} refused, {len(wrong)} with different verdicts"
    print(f"fuzz: {done} kernels of seeds {first}:{last}: {said}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
