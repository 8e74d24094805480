"""`ptokit demo`: a kernel that is right, then a rule with its fix, a race and a hang."""

from __future__ import annotations

import inspect
import re
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from rich.console import Console
from rich.rule import Rule
from rich.syntax import Syntax

from ptokit.base.diagnostics import PtoError
from ptokit.cli import demo_kernels
from ptokit.cli.answer import AsJson, answer, wants_json
from ptokit.kernels import Kernel


def command(as_json: AsJson = False) -> None:
    """Run four small kernels in front of you: one is right, three have a mistake each."""
    show = _Show(Console(highlight=False, quiet=wants_json()))
    started = time.perf_counter()
    rng = np.random.default_rng(0)
    x, y, z = rng.random((3, 16, 64), np.float32)

    show.title("A kernel, with every pipe ordered by hand")
    show.source(demo_kernels.add)
    demo_kernels.add[1](x, y, z)
    show.result(z, x + y)
    show.text(str(demo_kernels.add.memory_map(x, y, z)))

    show.title("A rule, with a fix that works")
    show.source(demo_kernels.transpose)
    wide, tall = x[:, :32].copy(), np.zeros((32, 16), np.float32)
    advice = show.refused(lambda: demo_kernels.transpose[1](wide, tall, rows=4))
    rows = int(re.findall(r"tmp\.Rows = (\d+)", advice)[0])
    demo_kernels.transpose[1](wide, tall, rows=rows)
    show.text(f"transpose[1](x, y, rows={rows}), as advised:")
    show.result(tall, wide.T)

    show.title("A race, with both lines")
    show.source(demo_kernels.racy)
    show.refused(lambda: demo_kernels.racy[1](x, y, z))
    show.text('The numbers may look right. @kernel(mode="auto") orders the pipes itself.')

    show.title("A hang, explained")
    show.source(demo_kernels.unprimed)
    many = rng.random((32, 64), np.float32)
    show.refused(lambda: demo_kernels.unprimed[1](many, np.zeros_like(many)))

    seconds = time.perf_counter() - started
    show.text(f"\n{seconds:.1f} s. Next: `ptokit check FILE.py`, `ptokit isa TLOAD`, `ptokit`.")
    answer(found=(), refused=show.codes, seconds=seconds)


class _Show:
    """Prints the parts of the demo, and remembers what was refused."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self.codes: list[str] = []

    def title(self, words: str) -> None:
        self._console.print()
        self._console.print(Rule(f"[bold]{words}[/]", align="left"))

    def text(self, words: str) -> None:
        self._console.print(words, markup=False, soft_wrap=True)

    def source(self, kernel: Kernel) -> None:
        lines, first = inspect.getsourcelines(kernel.function)
        code = re.sub(r": (Any|int)\b| -> None", "", "".join(lines)).rstrip()
        shown = Syntax(
            code, "python", line_numbers=True, start_line=first, background_color="default"
        )
        self._console.print(shown)

    def result(self, result: Any, expected: Any) -> None:
        error = float(np.abs(result - expected).max())
        corner = np.array2string(result[0, :4], precision=4, separator=", ")
        size = "x".join(map(str, result.shape))
        self.text(f"-> {size}, begins {corner}; differs from NumPy by {error:.1e} at most")

    def refused(self, run: Callable[[], object]) -> str:
        """Run what must not work, and show why; gives back what was said."""
        try:
            run()
        except PtoError as error:
            said = str(error).strip().replace(demo_kernels.__file__, "demo_kernels.py")
            self._console.print(said, style="red", markup=False, soft_wrap=True)
            self.codes += error.codes
            return said
        raise AssertionError("a kernel with a mistake ran")
