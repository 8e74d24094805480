"""`ptokit conform DIR`: run a folder of recorded cases and compare."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import track

from ptokit.conform import Summary, load_cases, run_case


def command(
    folder: Annotated[Path, typer.Argument(help="Folder with manifest.json and .npz files.")],
    only: Annotated[str, typer.Option(help="Comma-separated instructions to run.")] = "",
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write the verdict of every case here.")
    ] = None,
    verbose: Annotated[bool, typer.Option("-v", help="Show disputed cases too.")] = False,
) -> None:
    """Run every recorded case on the cpu profile; exit 0 only when none failed or is missing."""
    console = Console(stderr=True)
    cases = load_cases(folder, [name for name in only.split(",") if name])
    if not cases:
        console.print("no case matches")
        raise typer.Exit(2)
    shown = track(cases, "conform", console=console, disable=not console.is_terminal)
    summary = Summary(tuple(run_case(folder, case) for case in shown))
    quiet = {"passed"} if verbose else {"passed", "disputed"}
    for verdict in summary.verdicts:
        if verdict.status not in quiet:
            typer.echo(f"{verdict.status}: {verdict.id}: {verdict.reason}")
    if json_file:
        rows = [vars(v) | {"id": v.id} for v in summary.verdicts]
        json_file.write_text(json.dumps(rows, indent=1) + "\n", "utf-8")
    typer.echo(str(summary))
    raise typer.Exit(0 if summary.clean else 1)
