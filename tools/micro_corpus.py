"""What becomes of every `.pto` file of the micro level: it loads, or it is said why it does not.

python tools/micro_corpus.py DIR [--only REGEX] [--jobs N] [--table FILE]

The files are those that name vector registers, logical vectors or single transfers. Files of
several modules (`// -----`) are judged module by module. A test of what must be refused has to be
refused, at the line it marks where it marks one; what is refused by others - a pass of the public
compiler that is not yet able to lower something - is a program here. Everything else that is
refused has a reason in the table (Markdown), by what it is refused under. The last line says
whether all of them have one.
"""

from __future__ import annotations

import argparse
import re
import sys
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from ptokit.base.diagnostics import Diagnostic, PtoError
from ptokit.from_text import Program, loads
from ptokit.ir.micro import micro_group
from ptokit.ir.sections import sections
from ptokit.tasks import Executor, Task, Work

sys.path.insert(0, str(Path(__file__).resolve().parent))
from corpus import Facts, classified
from micro_judgements import BY_CODE, BY_FILE, BY_GROUP, STAGES

_PART = re.compile(r"^// -----.*$", re.M)
_MARK = re.compile(r"expected-error\s*(?:@\s*([+-]?\d+|above|below))?")
_REFUSED = re.compile(r"RUN:(?:.*(?<![-\w])not\s|\s*!\s)")
_COMPLAINT = re.compile(
    "error|require|expect|must|unsupport|invalid|not support|only|incompatible|does not"
)
_SAYS = re.compile(r"//\s*[\w-]+(?:-NEXT|-DAG|-SAME)?:\s*(.*)")


@dataclass
class Verdict:
    """What became of a file: of each of its modules, what was said and why that stands."""

    file: str
    modules: int = 0
    must_fail: int = 0  # modules that have to be refused
    refused: int = 0  # of them, those that are
    clean: int = 0  # those that load and check
    printed: bool = True
    rows: list[tuple[str, str, str]] = field(default_factory=list[tuple[str, str, str]])

    @property
    def is_explained(self) -> bool:
        return self.printed and all(why for _, _, why in self.rows)


def judged(root: Path, path: Path) -> Verdict:
    """Everything that is asked of one file."""
    warnings.simplefilter("ignore")
    name, text = str(path.relative_to(root)), path.read_text("utf-8", "replace")
    facts = classified(text, name)
    found = Verdict(name)
    others = _refused_elsewhere(text)
    for part, is_refused in _parts(text):
        found.modules += 1
        marks = list(_marked(part))
        is_negative = bool(marks) or is_refused
        said, program = _said(part, facts)
        if is_negative and not others:
            found.must_fail += 1
        if said is None:
            found.clean += 1
            if program is not None:
                found.printed &= _is_fixpoint(program)
            if is_negative and not others:
                found.rows.append(("passes", _expected(text), BY_FILE.get(path.stem, "")))
        elif is_negative:
            found.refused += not others
            line = said.location.line if said.location is not None else 0
            if marks and line not in marks:
                shown = f"{_shown(said)}; the test marks line {marks[0]}"
                found.rows.append(("line", shown, BY_FILE.get(path.stem, "")))
        else:
            found.rows.append((f"{said.code}", _shown(said), _why(path.stem, said)))
    if others:
        found.rows.append(("elsewhere", others, STAGES))
    return found


def _parts(text: str) -> Iterator[tuple[str, bool]]:
    """The modules of a file, each with whether it has to be refused as far as commands tell."""
    inner = sections(text)
    is_refused = _REFUSED.search(text) is not None and "expected-error" not in text
    # Where all that is expected stands at the end, it may be as much as there are modules.
    *front, last = inner.values()
    told = [each for each in _SAYS.findall(last) if _COMPLAINT.search(each)]
    is_last = not any(map(_expected, front)) and len(told) >= len(inner)
    for name, part in inner.items():
        if not re.search(r"^\s*[^/\s]", part, re.M):
            continue
        if "split-file" in text:
            named = re.search(rf"RUN:.*(?<![-\w])not\s.*%t/{re.escape(name)}\b", text)
            yield part, named is not None
        else:
            yield part, is_refused and (not front or is_last or bool(_expected(part)))


def _marked(part: str) -> Iterator[int]:
    """The lines where an error is expected."""
    for number, line in enumerate(part.splitlines(), 1):
        for mark in _MARK.finditer(line):
            where = mark[1] or "0"
            yield (
                number + {"above": -1, "below": 1}.get(where, 0)
                if where.isalpha()
                else (number + int(where))
            )


_STAGE = re.compile(r"VMI(?:-|\{\{-\}\})?(?:UNSUPPORTED|LAYOUT-CONTRACT|PASS-INVARIANT|RESIDUAL)"
                    r"|VMI\{\{\.\*\}\}|VMI\{\{-\}\}\w+|requires? an explicit passthru lowering"
                    r"|producer boundary|conflicting mask granularities")  # fmt: skip


def _refused_elsewhere(text: str) -> str:
    """What a pass of the compiler says that refuses it; nothing where the language does."""
    if not _REFUSED.search(text):
        return ""
    said = [each for each in _SAYS.findall(text) if _STAGE.search(each)]
    return said[0].strip() if said else ""


def _expected(text: str) -> str:
    """What a test expects to be told."""
    said = [each for each in _SAYS.findall(text) if "ptoas" not in each and "opt " not in each]
    return next((each.strip() for each in said if _COMPLAINT.search(each)), "")


def _said(part: str, facts: Facts) -> tuple[Diagnostic | None, Program | None]:
    """The first error of a module, and the program if it could be read."""
    try:
        program = loads(part)
        errors = program.check(facts.target or "a5", facts.level, rules="release")
    except PtoError as error:
        return error.diagnostics[0], None
    return next((each for each in errors if each.severity == "error"), None), program


def _is_fixpoint(program: Program) -> bool:
    once = str(program)
    return str(loads(once)) == once


def _shown(said: Diagnostic) -> str:
    line = f" (line {said.location.line})" if said.location is not None else ""
    return f"{said.code}: {said.message}{line}"


def _why(stem: str, said: Diagnostic) -> str:
    """What stands behind a refusal: the file, the group of operations, the code."""
    named = re.search(r"(?:pto|llvm)\.[\w.]+", said.message)
    group = micro_group(named[0]) if named is not None and said.code == "not-supported" else ""
    return BY_FILE.get(stem) or BY_GROUP.get(group) or BY_CODE.get(said.code, "")


# ---- all of them -------------------------------------------------------------------------------


def summary(found: list[Verdict]) -> list[str]:
    """The counts; the last line says whether something is left."""
    whole = sum(not v.rows for v in found)
    must, caught = sum(v.must_fail for v in found), sum(v.refused for v in found)
    left = [v.file for v in found if not v.is_explained]
    lines = [
        f"{len(found)} files of the micro level, {sum(v.modules for v in found)} modules: "
        f"{sum(v.clean for v in found)} load, check clean and print the same",
        f"modules that must be refused: {caught} of {must} are",
        f"files without a remark: {whole}; with a reason: {len(found) - whole - len(left)}",
    ]
    if left:
        return [*lines, f"{len(left)} files are not explained: {', '.join(left[:5])}"]
    return [*lines, "all vpto and vmi files of the corpus load or are explained"]


def page(found: list[Verdict]) -> str:
    """The table as a page."""
    whys = Counter(why for v in found for why in {why for _, _, why in v.rows})
    rows = [
        f"| `{v.file}` | {_cell(shown)} | {why} |"
        for v in found
        for _, shown, why in dict.fromkeys(v.rows)
    ]
    counts = "\n".join(f"* {line}" for line in summary(found))
    reasons = "\n".join(f"| {why} | {n} |" for why, n in whys.most_common())
    return (
        f"""# Files of the micro level that are refused, or that others refuse

Generated by `tools/micro_corpus.py`; do not edit. The files are those of the public assembler's
tests and samples of August 2026, which are not part of this repository; the reasons are what ptokit
says, or what the test expects of a pass of the public compiler.

{counts}

## Why

| why it stands | files |
|---|---|
{reasons}

## Files

| file | what is said | why |
|---|---|---|
"""
        + "\n".join(rows)
        + "\n"
    )


def _cell(text: str) -> str:
    return re.sub(r"\s+", " ", text).replace("|", "\\|")[:200]


def chosen(folder: Path, only: str) -> Iterable[Path]:
    """The files of the micro level."""
    for path in sorted(folder.rglob("*.pto")):
        name = str(path.relative_to(folder))
        text = path.read_text("utf-8", "replace") if re.search(only, name) else ""
        if text and classified(text, name).kind == "micro":
            yield path


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="files whose path matches this expression")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--table", type=Path, help="write the table here")
    asked = parser.parse_args()
    files = list(chosen(asked.folder, asked.only))
    work, tasks = Work(partial(judged, asked.folder)), (Task(str(file), file) for file in files)
    found = [each.get() for each in Executor(asked.jobs).results(work, tasks, ordered=True)]
    if asked.table is not None:
        asked.table.write_text(page(found), "utf-8")
    else:
        for v in found:
            for _, shown, why in v.rows:
                print(f"{v.file}: {_cell(shown)}: {why or 'NOT EXPLAINED'}")
    print("\n".join(summary(found)))
    return 0 if all(v.is_explained for v in found) else 1


if __name__ == "__main__":
    sys.exit(main())
