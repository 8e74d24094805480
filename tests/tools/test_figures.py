"""`tools/figures.py`: the figures of a folder, by one command."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.models.kernels import KERNELS, written
from tests.tools.test_corpus import KERNEL, ROOT


def test_the_figures_of_a_folder(tmp_path: Path) -> None:
    kernels = tmp_path / "test" / "samples" / "QwenA5"
    kernels.mkdir(parents=True)
    (kernels / "norm.pto").write_text(written("a5", *KERNELS["norm"]))
    (kernels / "breaks.pto").write_text(KERNEL.format(operation="pto.tand"))
    page = tmp_path / "page.md"
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "figures.py"), str(tmp_path), "--table", str(page)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    figures = dict(line.split(": ", 1) for line in done.stdout.splitlines())
    assert list(figures) == ["files", "print", "levels", "waits", "runs", "models", "corpus"]
    assert figures["corpus"].startswith("2 of 2 load, 1 check clean, 1 run")
    assert figures["models"].startswith("1 of 2 run, 1 (50.0%) agree; ")
    assert re.search(r"; \d\.\d+ s of computing in the median, at most", figures["models"])
    assert "TAND.dtype" in page.read_text()
