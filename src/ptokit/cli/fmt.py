"""`ptokit fmt FILE...`: print programs in their canonical text."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from ptokit.base.diagnostics import usage_error
from ptokit.base.files import write_text
from ptokit.cli.answer import AsJson, Exit, answer
from ptokit.cli.cpp_file import not_rewritten
from ptokit.cli.declared import Argument, Option
from ptokit.cli.sources import is_cpp, read_own_text, shown_name
from ptokit.from_text import formatted


def command(
    files: Annotated[list[Path], Argument(help="PTO text files; - is standard input.")],
    check: Annotated[
        bool, Option("--check", help="Change nothing; exit 1 if a file would change.")
    ] = False,
    stdout: Annotated[bool, Option("--stdout", help="Print instead of rewriting.")] = False,
    as_json: AsJson = False,
) -> None:
    """Rewrite PTO text in canonical form; comments stay with their lines."""
    printed: list[str] = []
    changed: list[str] = []
    for path in files:
        if is_cpp(path):
            raise not_rewritten(path, "fmt")
        if path.suffix == ".py":
            what = f"`ptokit fmt` rewrites PTO text, and {path.name} is a file of Python"
            raise usage_error("file", what, fix="ruff and black format Python")
        before, name = read_own_text(path), shown_name(path)
        text = formatted(before, name)
        if stdout or (name != str(path) and not check):  # what came in goes out
            printed.append(text)
        elif text != before:
            changed.append(name)
            printed.append(f"{'would rewrite' if check else 'rewrote'} {name}\n")
            if not check:
                write_text(path, text)
    code = Exit.FOUND if check and changed else Exit.OK
    answer("".join(printed), code=code, changed=changed, text="".join(printed))
