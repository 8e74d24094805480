"""`python -m tests.models DIR`: the kernels of a folder through both interpreters."""

from __future__ import annotations

import argparse
import multiprocessing
import re
from functools import partial
from pathlib import Path
from statistics import median

from tests.models.compare import Verdict, compare
from tests.models.goldens import compare_golden, golden_of


def main() -> int:
    """Print every difference with its reason, and how many kernels run and agree."""
    options = argparse.ArgumentParser(prog="python -m tests.models")
    options.add_argument("folder", type=Path)
    options.add_argument("--only", default="", help="kernels whose path matches this")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--step", type=int, default=1, help="every so many-th kernel only")
    options.add_argument("--jobs", type=int, default=1)
    options.add_argument("--goldens", action="store_true", help="only kernels with NumPy scripts")
    options.add_argument("-v", action="store_true", help="list all kernels")
    asked = options.parse_args()
    paths = [p for p in sorted(asked.folder.rglob("*.pto")) if re.search(asked.only, str(p))][
        :: asked.step
    ]
    if asked.goldens:
        return _goldens(asked.folder, [p for p in paths if golden_of(p)])
    work = partial(_verdict, asked.folder, asked.seed)
    found: list[Verdict] = []
    with multiprocessing.Pool(asked.jobs) as pool:
        for each in pool.imap(work, paths):
            found.append(each)
            if not each.agrees or asked.v:
                told = "agrees" if each.agrees else "differs" if each.ran else "stopped"
                print(f"{told}  {each.seconds:.3f}  {each.program}", flush=True)
                print(*(f"    {line}\n" for line in (*each.reasons, *each.remarks)), sep="", end="")
    ran = [each for each in found if each.ran]
    print(
        "open:", sum(bool(each.remarks) for each in found), "kernels store what nobody has written"
    )
    print("idle:", sum(not each.written for each in ran), "kernels change nothing on these inputs")
    agree = share(sum(each.agrees for each in found), len(found))
    seconds = [each.seconds for each in ran] or [0.0]
    took = f"{median(seconds):.3f} s of computing in the median, at most {max(seconds):.2f} s"
    print(f"models: {len(ran)} of {len(found)} run, {agree} agree; {took}")
    return 0 if all(each.agrees for each in found) else 1


def share(part: int, whole: int) -> str:
    """A count, and what it is of all."""
    return f"{part} ({part / max(whole, 1):.1%})"


def _goldens(folder: Path, paths: list[Path]) -> int:
    """Hold kernels against the scripts beside them; many of these only make inputs."""
    found = [each for p in paths if (each := compare_golden(p, str(p.relative_to(folder))))]
    for each in found:
        if not each.agrees:
            print("differs" if each.ran else "stopped", each.program, *each.reasons, sep="\n    ")
    print(f"goldens: {sum(each.agrees for each in found)} of {len(found)} agree")
    return 0 if all(each.agrees for each in found) else 1


def _verdict(folder: Path, seed: int, path: Path) -> Verdict:
    try:
        return compare(path, str(path.relative_to(folder)), seed)
    except Exception as error:
        return Verdict(
            str(path.relative_to(folder)), True, 0, (f"{type(error).__name__}: {error}",)
        )


if __name__ == "__main__":
    raise SystemExit(main())
