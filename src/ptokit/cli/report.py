"""`ptokit report FILE -o k.html`: one page that shows where the time of a launch goes, and why."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from ptokit.base.files import write_text
from ptokit.cli import Allow, Defines, OnTarget
from ptokit.cli.answer import AsJson, answer
from ptokit.cli.declared import Argument, Option
from ptokit.cli.launches import Asked
from ptokit.cli.sources import ARGUMENTS
from ptokit.report.page import Page


def command(
    file: Annotated[Path, Argument(help="Python, PTO text or C++.")],
    args: Annotated[list[str] | None, Argument(help=ARGUMENTS)] = None,
    output: Annotated[Path, Option("-o", "--output", help="The page.")] = Path("report.html"),
    entry: Annotated[str, Option("--entry", "--kernel", help="The function to show.")] = "",
    grid: Annotated[int, Option("--grid", min=1, help="Number of blocks.")] = 1,
    target: OnTarget = None,
    data: Annotated[
        bool, Option("--data", help="Compute: for programs that branch on their data.")
    ] = False,
    check: Annotated[
        bool, Option("--check/--no-check", help="Run it as well, and look for races.")
    ] = True,
    define: Defines = None,
    allow: Allow = None,
    as_json: AsJson = False,
) -> None:
    """Write a page about the launches of a Python file, or of a kernel of a text or of C++."""
    asked = Asked(file, args or (), entry, grid, target, define or (), past_errors=True)
    pages = [
        call.kernel.report(
            call.blocks, call.args, check=check, data=data, allow=tuple(allow or ()), **call.options
        )
        for call in asked.calls()
    ]
    launches = [launch for page in pages for launch in page.launches]
    launches.sort(key=lambda launch: -launch["us"])
    page = Page(pages[0].title if len(pages) == 1 else file.name, launches)
    write_text(output, page.html)
    summary = [f"{each['kernel']} on {each['target']}: {each['us']:.1f} us" for each in launches]
    answer("\n".join([*summary, f"written to {output}"]), output=str(output), launches=summary)
