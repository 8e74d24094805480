"""Run every example and close with one line; `make examples` calls this."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from harness import run_cases  # noqa: E402

NOT_EXAMPLES = {"harness", "run_all"}


def main() -> int:
    total = broken = 0
    for path in sorted(HERE.glob("*.py")):
        if path.stem in NOT_EXAMPLES:
            continue
        module = importlib.import_module(path.stem)
        passed, failed = run_cases(module.CASES, quiet=True)
        print(f"{path.stem:<24} {passed} runs passed" + (f", {failed} FAILED" if failed else ""))
        total, broken = total + passed, broken + failed
    print(f"examples: {total} passed" + (f", {broken} failed" if broken else ""))
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
