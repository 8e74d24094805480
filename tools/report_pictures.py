"""Pictures of reports for the guide, taken in headless Chromium.

    python tools/report_pictures.py [FOLDER]     # needs playwright and a Chromium

gemm, attention on a cluster and softmax, at the widths of a desk and of a hand, light and dark.
The guide shows some of them; all of them are worth a look when the page changes.
"""

from __future__ import annotations

import shutil
import sys
import warnings
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "examples")]
PICTURES = ROOT / "docs" / "guide" / "pictures"
SHOWN = ("gemm_manual-1280-light", "flash_attention_cluster-1280-dark", "softmax-390-light")
EXAMPLES = ("gemm_manual", "flash_attention_cluster", "softmax")


def main() -> None:
    from playwright.sync_api import sync_playwright

    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURES
    folder.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    with sync_playwright() as started, TemporaryDirectory() as place:
        chromium = shutil.which("chromium") or shutil.which("google-chrome")
        browser = started.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for name in EXAMPLES:
            case = import_module(name).CASES[0]
            values = case.inputs(np.random.default_rng(7))
            page = case.kernel.report(case.blocks, values, target="a2a3", **case.consts)
            file = Path(place) / f"{name}.html"
            page.write(file)
            for width in (1280, 390):
                for scheme in ("light", "dark"):
                    picture = f"{name}-{width}-{scheme}"
                    if folder == PICTURES and picture not in SHOWN:
                        continue
                    size = {"width": width, "height": 900}
                    tab = browser.new_page(viewport=size, color_scheme=scheme)
                    tab.goto(file.as_uri())
                    tab.wait_for_timeout(300)
                    tab.screenshot(path=folder / f"{picture}.png", full_page=True)
                    tab.close()
        browser.close()


if __name__ == "__main__":
    main()
