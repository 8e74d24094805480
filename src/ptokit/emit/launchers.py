"""How the host calls a kernel: a function with C linkage around the launch; long lists."""

from __future__ import annotations

from collections.abc import Sequence

WIDTH = 100


def launcher(name: str, params: Sequence[tuple[str, str]]) -> str:
    """The function that launches a kernel with these parameters; arrays are addresses to it."""
    taken = {each for _, each in params}
    blocks, stream = (_apart(word, taken) for word in ("blocks", "stream"))
    given = [f"uint32_t {blocks}", f"void *{stream}"]
    given += [f"void *{n}" if t.endswith("*") else f"{t}{n}" for t, n in params]
    passed = [f"({t}){n}" if t.endswith("*") else n for t, n in params]
    call = wrapped(f"    {name}<<<{blocks}, nullptr, {stream}>>>", passed)
    head = wrapped(f'extern "C" void launch_{name}', given)
    return f"{head}\n{{\n{call};\n}}\n"


def wrapped(head: str, words: Sequence[str], brackets: str = "()") -> str:
    """A list, in brackets or not, over several lines where one is too short."""
    first, last = brackets[:1], brackets[1:]
    line = f"{head}{first}{', '.join(words)}{last}"
    if len(line) <= WIDTH:
        return line
    indent = " " * (len(head) - len(head.lstrip()) + 4)
    lines = [(head + first).rstrip()]
    row = indent
    for at, word in enumerate(words):
        mark = last if at == len(words) - 1 else ","
        if row.strip() and len(row) + len(word) + 2 > WIDTH:
            lines.append(row.rstrip())
            row = indent
        row += f"{word}{mark} "
    return "\n".join([*lines, row.rstrip()])


def _apart(word: str, taken: set[str]) -> str:
    while word in taken:
        word += "_"
    return word
