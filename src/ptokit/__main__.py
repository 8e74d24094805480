"""The `ptokit` command; `python -m ptokit` is the same."""

import gc
import sys


def main() -> None:
    if sys.argv[1:] == ["--version"]:  # asked by scripts, again and again: nothing else is loaded
        from importlib.metadata import version

        print(f"ptokit {version('ptokit')}")
        return
    gc.disable()  # until the command is loaded: all that is made till then is kept
    from ptokit.base.starting import late

    for library in ("numpy", "ml_dtypes"):  # whoever only reads a text computes nothing
        late(library)
    from ptokit.cli import main

    main()


if __name__ == "__main__":
    main()
