"""Write what people must see in an editor: API signatures, instruction pages, the error index,
pages of targets and operations, memory maps and the other pictures.

python tools/gen.py            write the files
python tools/gen.py --check    fail when one of them is stale (the test suite does this)
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from language_page import page as language_page

from ptokit.base.convs import CONV_PARAMETERS
from ptokit.frontend.instruction import namespace, own_enumerations
from ptokit.frontend.logical_operations import logical_operations
from ptokit.frontend.micro_operations import MicroOperation, operations
from ptokit.isa import INSTRUCTIONS
from ptokit.isa.micro import MICRO
from ptokit.isa.record import NUMBERS, Insn, Operand
from ptokit.isa.verify import assertions, code_of, is_assertion_id, recipe
from ptokit.report import micro_pages
from ptokit.report.pages import cell, index, markdown
from ptokit.report.paths import paths_page

sys.path.insert(0, str(Path(__file__).parent))
from error_codes import WITHOUT_PROGRAM, type_codes
from error_pages import FOLDER, entries
from gallery_page import page as gallery_page
from memory_pages import pages as memory_pages
from micro_examples import section as micro_section
from operations_page import page as operations_page
from picture_pages import FOLDER as PICTURES
from picture_pages import pages as picture_pages
from target_page import page as target_page

ROOT = Path(__file__).resolve().parent.parent

HEADER = """# The instructions as editors see them{what}: names, signatures, documentation.
# Generated from the instruction table by tools/gen.py; do not edit.
# pyright: reportIncompatibleMethodOverride=false

from typing import Any, overload

from ptokit.frontend.instruction import Instruction, RecordEvent, Waitable
from ptokit.frontend.tensor_types import ConvTile, GlobalTensor
from ptokit.frontend.types import Tile
from ptokit.machine.asynchronous import AsyncEvent, AsyncSession, PrefetchAsyncContext
from ptokit.machine.objects import Pointer
{imports}

Wait = RecordEvent | Waitable

"""

ERRORS = """# Diagnostic codes

Every message names a code, the line, what must hold, the values that break it, and a fix. This page
lists the codes: first those with a page of their own, which has a program that raises the code and
a repaired one, then the rules of the instructions. The tests run all of these programs.
[Rules and severity](guide/rules.md) says which broken rules are errors, which are warnings, and how
to allow one.
"""
RULES = """
## Rules of the instructions

{count} codes. `SA-`, `PA-` and `CA-` are assertion ids of the instruction set, the others are our
own. On the page of an instruction each rule says what comes of breaking it, and the example keeps
all of them; the tests hold, for every rule, the last legal and the first illegal operand.
"""

KINDS = {
    "tile": "Tile",
    "conv": "ConvTile",
    "global": "GlobalTensor",
    "scalar": "float",
    "pointer": "Pointer",
    "fifo": "Any",
    "parallel_group": "Any",
    "ccu_trigger_context": "Any",
    "mrg_sort_executed_num_list": "Any",
    "async_session": "AsyncSession",
    "prefetch_async_context": "PrefetchAsyncContext",
}
RETURNED = {"": "RecordEvent", "i1": "bool", "async_event": "AsyncEvent"}  # else a number
CONV_KINDS = {"index": "int", "i1": "bool", "num": "float"}


def annotation(operand: Operand) -> str:
    whole = operand.takes is not None and operand.takes.is_integer
    kinds = ["int" if whole and k in NUMBERS else KINDS[k] for k in operand.kinds]
    return "Any" if "Any" in kinds else " | ".join(dict.fromkeys(kinds))


def stub(name: str, insn: Insn) -> str:
    """The class of one instruction: its calls, and its documentation."""
    lines = [f"class _{name}(Instruction):"]
    for form in insn.forms:
        args = ["self", *(f"{o}: {annotation(insn.operand(o))}" for o in form), "*events: Wait"]
        args += [f"{attr.name}: Any = ..." for attr in insn.attrs]
        lines += ["    @overload"] * (len(insn.forms) > 1)
        result = RETURNED.get(insn.returns, "Any")
        lines += [f"    def __call__({', '.join(args)}) -> {result}: ..."]
    doc = insn.doc.replace("\\", "\\\\")
    return "\n".join([*lines, "", f"{name}: _{name}", f'"""{doc}"""', ""])


def stubs(space: str, what: str) -> str:
    """The stub file of one namespace."""
    members = {name: each.insn for name, each in namespace(space).items()}
    body = "\n".join(stub(name, insn) for name, insn in members.items())
    own = {} if space else own_enumerations()
    imports = "\n".join(f"from {kind.__module__} import {n} as {n}" for n, kind in own.items())
    names = "\n".join(f'    "{name}",' for name in [*members, *own])
    return f"{HEADER.format(what=what, imports=imports)}\n{body}\n__all__ = [\n{names}\n]\n"


def micro_stubs(found: Mapping[str, MicroOperation]) -> str:
    """The stub file of micro-operations: what each takes, and its documentation."""
    kind = type(next(iter(found.values())))
    lines = [
        "# The micro-operations as editors see them: names, operands, documentation.",
        "# Generated from the table by tools/gen.py; do not edit.",
        "# pyright: reportIncompatibleMethodOverride=false",
        "",
        "from typing import Any",
        "",
        f"from {kind.__module__} import {kind.__name__}",
        "",
    ]
    for name, each in found.items():
        record = each.record
        may = False  # behind one that may be left out, all may be: by their names
        args: list[str] = []
        for slot in each.in_order:
            may = may or slot.is_optional
            args.append(f"{slot.name}: Any{' = ...' * may}")
        if record.words:
            args += [
                "*words: str",
                *(f"{w.name}: {'int' if w.is_number else 'str'} = ..." for w in record.words),
            ]
        lines += [f"class _{name}({kind.__name__}):"]
        lines += [f"    def __call__({', '.join(['self', *args])}) -> Any: ..."]
        lines += ["", f"{name}: _{name}", f'"""{record.doc}"""', ""]
    names = "\n".join(f'    "{name}",' for name in found)
    return "\n".join(lines) + f"\n__all__ = [\n{names}\n]\n"


def conv_stubs() -> str:
    """The stub file of the accessors of a ConvTile."""
    lines = ["# The accessors of a ConvTile as editors see them.",
             "# Generated from the table of parameters by tools/gen.py; do not edit.", "",
             "from collections.abc import Sequence", "",
             "from ptokit.machine.objects import ConvObject", "",
             "class ConvParameters(ConvObject):"]  # fmt: skip
    for each in CONV_PARAMETERS.values():
        taken = "Sequence[int]" if each.entries else CONV_KINDS[each.kind]
        given = "tuple[int, ...]" if each.entries else taken
        lines += [f"    def Set{each.accessor}(self, value: {taken}) -> None:",
                  f'        """Set {each.about}."""',
                  f"    def Get{each.accessor}(self) -> {given}:",
                  f'        """Get {each.about}."""']  # fmt: skip
    return "\n".join(lines) + "\n"


def errors_page() -> str:
    """Every diagnostic code: those with a program each, then the rules of the instructions."""
    found: dict[str, dict[str, set[str]]] = {}
    for insn in INSTRUCTIONS.values():
        for rule in (*insn.rules, *insn.text_rules):
            entry = found.setdefault(code_of(insn, rule), {})
            entry.setdefault(rule.text, set()).add(insn.name)
        for group in insn.types:
            for id in type_codes(insn, group):
                text = f"the element type of {', '.join(group.of)} is supported on the target"
                found.setdefault(id, {}).setdefault(text, set()).add(insn.name)
    shown = list(entries())
    lines = [ERRORS]
    for page in dict.fromkeys(each.page for each in shown):
        title = (FOLDER / f"{page}.md").read_text("utf-8").splitlines()[0].removeprefix("# ")
        lines += [f"## {title}", "", "| code | meaning |", "|---|---|"]
        lines += [
            f"| [{', '.join(each.codes)}](errors/{page}.md#{each.anchor}) | {cell(each.words)} |"
            for each in shown
            if each.page == page
        ]
        lines.append("")
    lines += ["## Codes without a program", "", "| code | why |", "|---|---|"]
    lines += [f"| {code} | {cell(why)} |" for code, why in WITHOUT_PROGRAM.items()]
    lines += [RULES.format(count=len(found))]
    lines += ["| code | what must hold | instructions | repair |", "|---|---|---|---|"]
    for code in sorted(found, key=lambda c: (not is_assertion_id(c), c)):
        for text, names in sorted(found[code].items()):
            listed = ", ".join(f"[{name}](isa/{name}.md#rules)" for name in sorted(names))
            lines.append(f"| {code} | {cell(text)} | {listed} | {cell(recipe(code))} |")
    unused = sorted(set(assertions()["assertions"]) - set(found))
    lines += ["", f"Ids of the catalogue that no rule of ours reports: {len(unused)}", ""]
    lines += ["(checks of the public CPU simulator, of type formation, or superseded ones)", ""]
    return "\n".join(lines)


def generated() -> dict[Path, str]:
    """Path -> contents of every generated file."""
    api = ROOT / "src/ptokit/frontend"
    files = {
        api / "api.pyi": formatted(stubs("", "")),
        api / "comm_api.pyi": formatted(stubs("comm", " (between devices)")),
        api / "micro_api.pyi": formatted(micro_stubs(dict(operations(MICRO)))),
        api / "vmi_api.pyi": formatted(micro_stubs(dict(logical_operations(MICRO)))),
        api / "conv_parameters.pyi": formatted(conv_stubs()),
        ROOT / "docs/isa/README.md": index(list(INSTRUCTIONS.values())),
        ROOT / "docs/errors.md": errors_page(),
        ROOT / "docs/paths.md": paths_page(INSTRUCTIONS.values()),
        ROOT / "docs/guide/language.md": language_page(),
        ROOT / "docs/guide/operations.md": operations_page(),
        ROOT / "docs/guide/targets.md": target_page(),
    }
    for insn in INSTRUCTIONS.values():
        files[ROOT / f"docs/isa/{insn.name}.md"] = markdown(insn)
    files[ROOT / "docs/isa/micro/README.md"] = micro_pages.index(MICRO.values())
    for record in MICRO.values():
        page = micro_pages.page(record) + micro_section(record)
        files[ROOT / f"docs/isa/micro/{record.name}.md"] = page
    maps = memory_pages()
    files[ROOT / "docs/gallery.md"] = gallery_page([path for path in maps if path.suffix == ".svg"])
    return files | maps | picture_pages()


def formatted(source: str) -> str:
    """A stub file as the formatter leaves it, without the imports it does not use."""
    for step in (["check", "--select", "I,F401", "--fix"], ["format"]):
        command = [sys.executable, "-m", "ruff", *step, "-q", "--stdin-filename", "api.pyi", "-"]
        done = subprocess.run(command, input=source, capture_output=True, text=True, check=True)
        source = done.stdout
    return source


def main() -> int:
    check = "--check" in sys.argv
    files = generated()
    pages = {*(ROOT / "docs/isa").rglob("*.md"), *(ROOT / "docs/memory").glob("*.svg"),
             *PICTURES.glob("*.svg")}  # fmt: skip
    stale = [p for p, text in files.items() if not p.exists() or p.read_text("utf-8") != text]
    orphans = sorted(pages - set(files))
    if check:
        for path in stale + orphans:
            print(f"stale: {path.relative_to(ROOT)} (run `make gen`)")
        return 1 if stale or orphans else 0
    for path in stale:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(files[path], "utf-8")
    for path in orphans:
        path.unlink()
    print(f"{len(stale)} of {len(files)} files written, {len(orphans)} removed")
    return 0


__all__ = ["generated"]

if __name__ == "__main__":
    sys.exit(main())
