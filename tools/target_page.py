"""`docs/guide/targets.md`: what each device has, from the fields of its record."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ptokit.base.dtypes import ALL
from ptokit.isa import INSTRUCTIONS
from ptokit.isa.targets import KIB, TARGETS, Target

HEAD = """# Targets

What the devices have, as ptokit knows them; made of the records in `src/ptokit/isa/targets`. `cpu`
is the permissive profile: it applies only the rules that all have in common. `k.check("all", ...)`
verifies a kernel for every device, `supports("TADD", target="a2a3", dtype="bf16")` answers for one
instruction, and `ptokit targets` prints the memories. A size or an alignment can be set for a
launch under the name of its macro: `defines={"PTO_UBUF_SIZE_BYTES": 262144}`, or `-D` on the
command line.
"""


def _names(values: Iterable[object]) -> str:
    return " ".join(sorted(getattr(each, "name", str(each)) for each in values)) or "none"


def _yes(value: object) -> str:
    return "yes" if value else "no"


FACTS: dict[str, Callable[[Target], str]] = {
    "name": lambda t: t.title,
    "layout of the left operand": lambda t: t.left_layout,
    "pipes of a cube core": lambda t: _names(t.pipes.get("cube", ())),
    "pipes of a vector core": lambda t: _names(t.pipes.get("vector", ())),
    "pipes that can be drained alone": lambda t: _names(t.barriers),
    "pipes whose work may overtake": lambda t: _names(t.overtaken),
    "event ids per pair of pipes": lambda t: str(t.event_ids),
    "counters that other cores raise": lambda t: str(t.core_flags),
    "numbered buffers (get_buf)": lambda t: _yes(t.has_buffer_ids),
    "FIFOs between cores": lambda t: (
        "none" if t.fifos is None else " ".join(d.name for d in t.fifos.directions)
    ),
    "entries go straight into the consumer's memory": lambda t: _yes(t.fifos and t.fifos.is_direct),
    "vector registers in programs": lambda t: _yes(t.has_vector_registers),
    "bits of the reduced f32 mode": lambda t: str(t.tf32_bits or "no such mode"),
    "C++ is compiled for it": lambda t: _yes(t.cpp_macros),
}


def page() -> str:
    """The text of the page."""
    every = list(TARGETS.values())
    lines = [HEAD, "## Memories", "", _row("tile", "memory", *TARGETS, "alignment", "macro")]
    lines.append("|" + "---|" * (len(every) + 4))
    for kind, space in every[0].spaces.items():
        sizes = [_size(target.spaces[kind].capacity) for target in every]
        names = f"`{space.size_macro}`" if space.size_macro else ""
        lines.append(_row(kind.name, space.memory, *sizes, f"{space.alignment} B", names))
    lines += ["", "## Cores, pipes, FIFOs", "", _row("", *TARGETS), "|" + "---|" * (len(every) + 1)]
    lines += [_row(words, *map(tell, every)) for words, tell in FACTS.items()]
    lines += ["", "## Element types", "", _row("type", *TARGETS), "|" + "---|" * (len(every) + 1)]
    lines += [_row(kind.name, *(_yes(kind in t.dtypes) for t in every)) for kind in ALL]
    lines += ["", "## Instructions", ""]
    lines += ["Those that some devices have and others have not; all others are everywhere.", ""]
    devices = [target for target in every if target.is_device]
    lines += [_row("", *(t.name for t in devices)), "|" + "---|" * (len(devices) + 1)]
    for insn in sorted(INSTRUCTIONS.values(), key=lambda each: each.name):
        have = [target.name in insn.targets for target in devices]
        if not all(have):
            lines.append(_row(f"[{insn.name}](../isa/{insn.name}.md)", *map(_yes, have)))
    return "\n".join(lines) + "\n"


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _size(nbytes: int) -> str:
    return f"{nbytes // KIB}\N{NO-BREAK SPACE}KiB" if nbytes else "-"


__all__ = ["page"]
