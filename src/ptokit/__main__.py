"""`python -m ptokit` is the same as the `ptokit` command."""

from ptokit.cli import main

if __name__ == "__main__":
    main()
