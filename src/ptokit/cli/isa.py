"""`ptokit isa [NAME]`: the instruction table, in the terminal."""

from __future__ import annotations

from typing import Annotated, Any

from rich.console import Console
from rich.markdown import Markdown
from rich.table import Table

from ptokit.base.dtypes import ALL
from ptokit.cli.answer import AsJson, answer
from ptokit.cli.declared import Argument, Option
from ptokit.frontend.supports import instruction, supports
from ptokit.isa import INSTRUCTIONS
from ptokit.isa.devices import TARGETS
from ptokit.isa.micro import MICRO
from ptokit.isa.spec import Insn, Types
from ptokit.isa.targets import TARGETS as PROFILES
from ptokit.isa.verify import code_of
from ptokit.report.micro_pages import page as micro_page
from ptokit.report.pages import markdown
from ptokit.report.words import Language, Words


def _offered(incomplete: str) -> list[tuple[str, str]]:
    """The instructions that a shell may complete a name to, with what they do."""
    return [
        (name, each.doc.strip().partition("\n")[0])
        for table in (INSTRUCTIONS, MICRO)
        for name, each in table.items()
        if name.startswith(incomplete)
    ]


def command(
    name: Annotated[
        str,
        Argument(help="An instruction; without one, list them all.", autocompletion=_offered),
    ] = "",
    matrix: Annotated[
        bool, Option("--matrix", help="Print instruction x target x element types.")
    ] = False,
    raw: Annotated[bool, Option("--raw", help="Print the page as Markdown source.")] = False,
    lang: Annotated[
        Language, Option("--lang", help="The language of the page: en, or zh for Chinese.")
    ] = Language.en,
    as_json: AsJson = False,
) -> None:
    """Show an instruction's operands, rules per target, forms and documentation."""
    console = Console()
    if as_json:
        chosen = [instruction(name)] if name else list(INSTRUCTIONS.values())
        answer(instructions=[_record(insn, matrix) for insn in chosen])
    elif matrix:
        console.print(_matrix(list(INSTRUCTIONS.values())))
    elif not name:
        console.print(_listing(list(INSTRUCTIONS.values()), Words(lang.value)))
        console.print("ptokit isa NAME shows one of them.")
    else:
        record = MICRO.get(name)
        page = markdown(instruction(name), lang.value) if record is None else micro_page(record)
        # In a page brackets are indices and template arguments, not styles.
        console.print(page if raw else Markdown(page), markup=False, soft_wrap=raw)


def _record(insn: Insn, matrix: bool) -> dict[str, Any]:
    """An instruction as plain data; with its element types per target on request."""
    record: dict[str, Any] = {
        "name": insn.name,
        "doc": insn.doc,
        "targets": [name for name in PROFILES if name in insn.targets],
        "forms": [list(form) for form in insn.forms],
        "operands": [
            {"name": o.name, "role": o.role, "kinds": list(o.kinds)} for o in insn.operands
        ],
        "rules": [
            {"code": code_of(insn, r), "text": r.text, "targets": r.targets and sorted(r.targets)}
            for r in insn.rules
        ],
    }
    if matrix:
        record["types"] = {
            name: [_types_on(insn, group, name) for group in insn.types or (None,)]
            for name in record["targets"]
        }
    return record


def _listing(insns: list[Insn], say: Words) -> Table:
    title = say("{a} instructions, by class.").format(a=len(insns))
    table = Table(title=title, title_justify="left", box=None)
    for column in ("instruction", "Class", "devices", "what it does"):
        table.add_column(say(column), no_wrap=column != "what it does")
    for insn in sorted(insns, key=lambda i: (i.cost.name, i.name)):
        have = [t for t in TARGETS if t in insn.targets]
        devices = say("all") if len(have) == len(TARGETS) else " ".join(have) or say("none")
        first = insn.doc.splitlines()[0]
        table.add_row(insn.name, say(insn.cost.name), devices, say(first))
    return table


def _matrix(insns: list[Insn]) -> Table:
    """A line per instruction and list of element types; targets with the same list share it."""
    table = Table(title="Element types per instruction and target", title_justify="left", box=None)
    for column in ("instruction", "targets", "element types"):
        table.add_column(column, no_wrap=column != "element types")
    for insn in insns:
        for group in insn.types or (None,):
            lists: dict[str, list[str]] = {}
            for target in TARGETS:
                lists.setdefault(_types_on(insn, group, target), []).append(target)
            for types, targets in lists.items():
                shared = " ".join(targets) if len(targets) < len(TARGETS) else "all"
                table.add_row(insn.name, shared.replace("kirin9030 kirinx90", "kirin"), types)
    return table


def _types_on(insn: Insn, group: Types | None, target: str) -> str:
    if target not in insn.targets:
        return "-"
    combos = group.allowed.get(target) if group is not None else None
    if group is None or combos is None:  # rules decide
        known = [kind for kind in ALL if kind in PROFILES[target].dtypes]
        taken = [kind for kind in known if supports(insn.name, target=target, dtype=kind)]
        return "any" if taken == known else " ".join(kind.name for kind in taken)
    order = {kind: place for place, kind in enumerate(ALL)}
    ordered = sorted(combos, key=lambda combo: [order[kind] for kind in combo])
    if all(len(set(combo)) == 1 for combo in combos):
        ordered = [combo[:1] for combo in ordered]  # one type for all of them
    of = "" if group is insn.types[0] and len(group.of) == 1 else f"{','.join(group.of)}: "
    return of + " ".join(",".join(kind.name for kind in combo) for combo in ordered)
