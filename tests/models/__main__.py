"""`python -m tests.models DIR`: the kernels of a folder through both interpreters."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from statistics import median

from tests.models.compare import Verdict, compare
from tests.models.goldens import compare_golden, golden_of
from tools.journal import Journal, TimeUp, apart, followed, limited


def main() -> int:
    """Print every difference with its reason, and how many kernels run and agree."""
    options = argparse.ArgumentParser(prog="python -m tests.models")
    options.add_argument("folder", type=Path)
    options.add_argument("--only", default="", help="kernels whose path matches this")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--step", type=int, default=1, help="every so many-th kernel only")
    options.add_argument("--jobs", type=int, default=1)
    options.add_argument("--seconds", type=float, default=120.0, help="of computing, for a kernel")
    options.add_argument("--journal", type=Path, help="keep verdicts here, and go on from them")
    options.add_argument("--goldens", action="store_true", help="only kernels with NumPy scripts")
    options.add_argument("-v", action="store_true", help="list all kernels")
    asked = options.parse_args()
    paths = {
        str(path.relative_to(asked.folder)): path
        for path in sorted(asked.folder.rglob("*.pto"))
        if re.search(asked.only, str(path)) and (not asked.goldens or golden_of(path))
    }
    chosen = dict(list(paths.items())[:: asked.step])
    judge = compare_golden if asked.goldens else partial(compare, seed=asked.seed)
    journal = Journal(asked.journal, (asked.folder, asked.seed, asked.goldens, asked.seconds))
    left = [name for name in chosen if name not in journal.known]
    work = partial(_verdict, asked.folder, judge, asked.seconds)
    for each in followed(
        apart(left, work, _lost, asked.jobs),
        "models",
        len(chosen),
        len(chosen) - len(left),
        lambda each: not each.agrees,
    ):
        journal.add(each.program, asdict(each))
        _tell(each, asked.v)
    kept = [Verdict.of(journal.known[name]) for name in chosen]
    found = [each for each in kept if each.is_about_results]
    print(_goldens(found) if asked.goldens else _models(found))
    return 0 if all(each.agrees for each in found) else 1


def _tell(each: Verdict, is_all: bool) -> None:
    if not each.agrees or is_all:
        told = "agrees" if each.agrees else "differs" if each.ran else "stopped"
        print(f"{told}  {each.seconds:.3f}  {each.program}", flush=True)
        print(*(f"    {line}\n" for line in (*each.reasons, *each.remarks)), sep="", end="")


def _models(found: list[Verdict]) -> str:
    ran = [each for each in found if each.ran]
    seconds = [each.seconds for each in ran] or [0.0]
    agree = sum(each.agrees for each in found)
    share = f"{agree} ({agree / max(len(found), 1):.1%}) agree"
    return (
        f"open: {sum(bool(each.remarks) for each in found)} kernels store what nobody has written\n"
        f"idle: {sum(not each.written for each in ran)} kernels change nothing on these inputs\n"
        f"models: {len(ran)} of {len(found)} run, {share}; "
        f"{median(seconds):.3f} s of computing in the median, at most {max(seconds):.2f} s"
    )


def _goldens(found: list[Verdict]) -> str:
    return f"goldens: {sum(each.agrees for each in found)} of {len(found)} agree"


def _verdict(
    folder: Path, judge: Callable[[Path, str], Verdict], seconds: float, name: str
) -> Verdict:
    try:
        with limited(seconds, of_computing=True):
            return judge(folder / name, name)
    except TimeUp:
        return Verdict(name, False, seconds, (f"time: it takes more than {seconds:g} seconds",))
    except Exception as error:
        return Verdict(name, True, 0, (f"{type(error).__name__}: {error}",))


def _lost(name: str, why: str) -> Verdict:
    return Verdict(name, False, 0.0, (why,))


if __name__ == "__main__":
    raise SystemExit(main())
