"""`ptokit isa [NAME]`: the instruction table, in the terminal."""

from __future__ import annotations

import difflib
from typing import Annotated

import typer
from rich.console import Console
from rich.markdown import Markdown
from rich.table import Table

from ptokit.base.diagnostics import UsageError, fail
from ptokit.isa import INSTRUCTIONS
from ptokit.isa.spec import TARGETS, Insn
from ptokit.report.pages import markdown


def command(
    name: Annotated[str, typer.Argument(help="An instruction; without one, list them all.")] = "",
    matrix: Annotated[
        bool, typer.Option("--matrix", help="Print instruction x target x element types.")
    ] = False,
    raw: Annotated[bool, typer.Option("--raw", help="Print the page as Markdown source.")] = False,
) -> None:
    """Show an instruction's operands, rules per target, forms and documentation."""
    console = Console()
    if matrix:
        console.print(_matrix(list(INSTRUCTIONS.values())))
    elif not name:
        console.print(_listing(list(INSTRUCTIONS.values())))
        console.print("ptokit isa NAME shows one of them.")
    else:
        page = markdown(_find(name))
        console.print(page if raw else Markdown(page))


def _find(name: str) -> Insn:
    found = INSTRUCTIONS.get(name) or INSTRUCTIONS.get(name.upper())
    if found is None:
        near = difflib.get_close_matches(name.upper(), INSTRUCTIONS, 3)
        raise fail(
            "unknown-instruction",
            f"there is no instruction {name!r}",
            fix=f"did you mean {', '.join(near)}?" if near else "`ptokit isa` lists all of them",
            kind=UsageError,
        )
    return found


def _listing(insns: list[Insn]) -> Table:
    table = Table(title=f"{len(insns)} instructions", title_justify="left", box=None)
    for column in ("instruction", "family", "devices", "what it does"):
        table.add_column(column, no_wrap=column != "what it does")
    for insn in sorted(insns, key=lambda i: (i.family, i.name)):
        have = [t for t in TARGETS if t in insn.targets]
        devices = "all" if len(have) == len(TARGETS) else " ".join(have) or "none"
        table.add_row(insn.name, insn.family, devices, insn.doc.splitlines()[0])
    return table


def _matrix(insns: list[Insn]) -> Table:
    table = Table(title="Element types per instruction and target", title_justify="left", box=None)
    for column in ("instruction", "of", *TARGETS):
        table.add_column(column)
    for insn in insns:
        groups = insn.types or (None,)
        for group in groups:
            cells: list[str] = []
            for target in TARGETS:
                if target not in insn.targets:
                    cells.append("-")
                elif group is None:
                    cells.append("any")
                else:
                    combos = group.allowed.get(target, frozenset())
                    cells.append(" ".join(sorted(",".join(t.name for t in c) for c in combos)))
            table.add_row(insn.name, ",".join(group.of) if group else "", *cells)
    return table
