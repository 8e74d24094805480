"""`ptokit conform DIR`: run a folder of recorded cases and compare."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

from ptokit.base.files import write_text
from ptokit.cli.answer import AsJson, Exit, answer, failed
from ptokit.cli.declared import Argument, Option
from ptokit.cli.spreading import Cluster, HowMany, Resume, TaskSeconds, executor
from ptokit.conform import Summary, Verdict, load_cases, run_cases
from ptokit.tasks import progress


def command(
    folder: Annotated[Path, Argument(help="Folder with manifest.json and .npz files.")],
    only: Annotated[str, Option(help="Comma-separated instructions to run.")] = "",
    output: Annotated[
        Path | None, Option("-o", help="Write the verdict of every case here, as JSON.")
    ] = None,
    verbose: Annotated[bool, Option("-v", help="Show disputed cases too.")] = False,
    jobs: HowMany = "1",
    cluster: Cluster = "",
    task_seconds: TaskSeconds = None,
    resume: Resume = False,
    as_json: AsJson = False,
) -> None:
    """Run every recorded case on the cpu profile; exit 0 only when none failed or is missing."""
    cases = load_cases(folder, [name for name in only.split(",") if name])
    if not cases:
        sys.exit(failed("no case matches", Exit.USAGE))
    verdicts: list[Verdict] = []
    with progress(len(cases), "cases") as done:
        how = executor(jobs, cluster, task_seconds)
        for each in run_cases(folder, cases, how, resume):
            verdicts.append(each)
            if done is not None:
                done(1)
    summary = Summary(tuple(verdicts))
    rows = [vars(v) | {"id": v.id} for v in summary.verdicts]
    if output is not None:
        write_text(output, json.dumps(rows, indent=1) + "\n")
    quiet = {"passed"} if verbose else {"passed", "disputed"}
    told = [f"{v.status}: {v.id}: {v.reason}" for v in summary.verdicts if v.status not in quiet]
    code = Exit.OK if summary.clean else Exit.FOUND
    answer("\n".join([*told, str(summary)]), code=code, cases=rows)
