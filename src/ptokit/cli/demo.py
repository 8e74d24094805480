"""`ptokit demo`: three small kernels, each with its result, its memory map and one mistake."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from rich.console import Console
from rich.panel import Panel
from rich.syntax import Syntax

from ptokit.base.diagnostics import PtoError
from ptokit.cli import demo_kernels
from ptokit.frontend.session import current, device
from ptokit.machine.objects import TileObject
from ptokit.report.memory_map import Placed, memory_map


def command() -> None:
    """Run three kernels in front of you: vector add, transpose, matmul."""
    console = Console(highlight=False)
    console.print("[bold]ptokit[/]: PTO tiles on a simulated Ascend A2/A3 core\n")
    started = time.perf_counter()
    for show in (demo_kernels.vector_add, demo_kernels.transpose, demo_kernels.matmul):
        _present(console, show)
    console.print(f"Three kernels in {time.perf_counter() - started:.2f} s. Next: README.md, "
                  "`ptokit isa TLOAD`, `ptokit targets`.")  # fmt: skip


def _present(console: Console, show: Callable[[], demo_kernels.Shown]) -> None:
    with device("a2a3"):
        shown = show()
        console.print(Panel.fit(f"[bold]{shown.title}[/]", border_style="cyan"))
        console.print(Syntax(shown.source, "python", background_color="default"))
        console.print(_result(shown.result, shown.expected))
        console.print(memory_map(_placed(name, tile) for name, tile in shown.tiles.items()))
        console.print(f"\n[bold]A mistake:[/] {shown.mistake_text}")
        try:
            shown.mistake()
        except PtoError as error:
            text = str(error).strip().replace(demo_kernels.__file__, "demo_kernels.py")
            console.print(text, style="red", markup=False, soft_wrap=True)
        console.print()


def _result(result: Any, expected: Any) -> str:
    error = float(np.abs(result.astype("f8") - expected.astype("f8")).max())
    corner = np.array2string(result[:2, :4], precision=4, separator=", ").replace("\n", "")
    size = f"{result.shape[0]}x{result.shape[1]}"
    return f"result {size}, corner {corner}; differs from NumPy by {error:.1e} at most"


def _placed(name: str, tile: TileObject) -> Placed:
    space = current().target.spaces[tile.spec.loc]
    spec = tile.spec
    return Placed(name, space.memory, space.capacity, tile.address, spec.nbytes, str(spec))
