"""`ptokit targets`: the devices with their memories."""

from __future__ import annotations

from ptokit.cli import Defines
from ptokit.cli.answer import AsJson, answer
from ptokit.isa.targets import TARGETS


def command(define: Defines = None, as_json: AsJson = False) -> None:
    """Show every target's memory spaces: capacity, alignment and the macro that overrides it."""
    targets = [t.override(define) for t in TARGETS.values()]
    lines = [f"{t.name:<10} {t.title}; TileLeft is {t.left_layout}" for t in targets]
    lines.append("\nMemory in KB (- does not exist), alignment in bytes, macro for -D:\n")
    heads = "".join(f"{t.name:>10}" for t in targets)
    lines.append(f"{'':<11}{heads}  align")
    for tile_type, space in targets[0].spaces.items():
        sizes = "".join(f"{_size(t.spaces[tile_type].capacity):>10}" for t in targets)
        lines.append(f"{tile_type.name:<11}{sizes}  {space.alignment:>5}")
    lines.append("")
    for tile_type, space in targets[0].spaces.items():
        macros = f"{space.size_macro}, {space.align_macro}"
        lines.append(f"{tile_type.name:<11}{space.memory:<11}{macros}")
    answer(
        "\n".join(lines),
        targets={
            t.name: {
                kind.name: {"memory": s.memory, "bytes": s.capacity, "alignment": s.alignment}
                for kind, s in t.spaces.items()
            }
            for t in targets
        },
    )


def _size(capacity: int) -> str:
    if not capacity:
        return "-"
    return str(capacity // 1024) if capacity % 1024 == 0 else f"{capacity / 1024:.2f}"
