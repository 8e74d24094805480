"""C++ as far as it must be understood: words, brackets, kernels and launches.

What only the device's compiler takes is rewritten; lines stay where they are:

* a launch, `kernel<int><<<blocks, l2, stream>>>(x, y)`, is an expression that hands a closure over;
* a pointer to the memory of a core, `__ubuf__ T*`, is an object that knows the memory;
* a register that is read by a line of assembly is 0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import PtoError, fail
from ptokit.base.location import Location
from ptokit.base.namedtuple import NamedTuple
from ptokit.base.patterns import regex

_TOKEN = regex(
    r"""
      (?P<space>\s+|\\\n)
    | (?P<comment>//(?:\\\n|[^\n])*|/\*.*?\*/)
    | (?P<raw>(?:u8|[uUL])?R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)")
    | (?P<string>(?:u8|[uUL])?"(?:\\.|[^"\\\n])*")
    | (?P<char>(?:u8|[uUL])?'(?:\\.|[^'\\\n])+')
    | (?P<number>\.?\d(?:'?[\w.]|[eEpP][+-])*)
    | (?P<word>[A-Za-z_$][\w$]*)
    | (?P<mark3><<<|::|\#\#)
    | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_OPENING = {"(": ")", "[": "]", "{": "}"}
_CLOSING = {end: start for start, end in _OPENING.items()}


class Token(NamedTuple):
    """A piece of the text that is neither space nor comment."""

    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


@dataclass(frozen=True)
class Entry:
    """A function that a launch can name."""

    name: str
    line: int
    is_template: bool
    parameters: str  # as they are written
    body: tuple[int, int]  # where it begins and ends in the text


def tokens(text: str) -> list[Token]:
    """The words and marks of a source; whatever a compiler would not take is left to it."""
    found: list[Token] = []
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup or ""
        if kind == "mark":  # a group inside another
            kind = "raw"
        if kind not in ("space", "comment"):
            found.append(Token(kind, match.group(), match.start()))
    return found


@lru_cache(maxsize=64)  # every launch asks again
def entries(text: str) -> tuple[Entry, ...]:
    """The kernels of a source: functions marked `__global__` that have a body."""
    words = tokens(text)
    found: dict[str, Entry] = {}
    for at, word in enumerate(words):
        if word.text != "__global__":
            continue
        opened = next((n for n in range(at, len(words)) if words[n].text in "({;"), None)
        while opened is not None and words[opened - 1].text in ("__attribute__", "alignas"):
            opened = _closing(words, opened) + 1
            opened = next((n for n in range(opened, len(words)) if words[n].text in "({;"), None)
        if opened is None or words[opened].text != "(" or words[opened - 1].kind != "word":
            continue
        closed = _closing(words, opened)
        after = next((n for n in range(closed, len(words)) if words[n].text in "{;"), None)
        name = words[opened - 1].text
        if after is not None and words[after].text == "{":
            line = text.count("\n", 0, words[opened - 1].start) + 1
            inside = " ".join(text[words[opened].end : words[closed].start].split())
            body = words[after].start, words[_closing(words, after)].end
            found[name] = Entry(name, line, _is_template(words, at), inside, body)
    return tuple(found.values())


def apart(text: str, entry: Entry) -> str:
    """The source without the bodies of its other kernels."""
    for other in sorted(entries(text), key=lambda each: each.body, reverse=True):
        if other.name != entry.name:
            text = text[: other.body[0]] + "{}" + text[other.body[1] :]
    return text


def parameter_names(parameters: str) -> list[str]:
    """The last word of each parameter, before its default."""
    found: list[str] = []
    depth, last = 0, ""
    for word in (*tokens(parameters), Token("other", ",", 0)):
        if word.text == "," and depth == 0:
            found.append(last or f"argument {len(found) + 1}")
            last = ""
        depth += {"<": 1, "(": 1, ">": -1, ")": -1}.get(word.text, 0)
        if word.kind == "word" and depth == 0:
            last = word.text
    return found if parameters.strip() else []


def mentions(text: str, names: Sequence[str]) -> bool:
    """Whether a source, its preprocessor lines included, speaks of one of these names."""
    return not _names(text).isdisjoint(names)


@lru_cache(maxsize=64)  # of a launch, and again of the next one
def _names(text: str) -> frozenset[str]:
    return frozenset(word.text for word in tokens(text) if word.kind == "word")


def plain(text: str, file: str) -> str:
    """The source as other compilers take it."""
    return with_plain_launches(with_plain_words(text), file)


LOCAL_SPACES = {  # the words for the memories of a core, and the tiles that lie in them
    "__ubuf__": "Vec",
    "__cbuf__": "Mat",
    "__ca__": "Left",
    "__cb__": "Right",
    "__cc__": "Acc",
    "__fbuf__": "Scaling",
}
_QUALIFIERS = frozenset({"const", "volatile", "typename"})
_BUILT_IN = frozenset({"unsigned", "signed", "long", "short", "char", "int", "float", "double"})
_NUMBERS = frozenset({"uintptr_t", "intptr_t", "uint64_t", "int64_t", "size_t"})  # for addresses
_MARKS = frozenset(["__in__", "__out__"])  # say nothing
_ASSEMBLY = regex(r'\basm\s+volatile\s*\(\s*"MOV %0, (\w+)\\n"\s*:\s*"[+=]l"\s*(\(\w+\))\s*\)')


def with_plain_words(text: str) -> str:
    """The source with pointers to local memory as objects, and without device assembly."""
    text = _ASSEMBLY.sub(r"\2 = 0", text)
    if not any(space in text for space in LOCAL_SPACES):
        return text
    words = tokens(text)
    cuts: list[tuple[int, int, str]] = []
    for at, word in enumerate(words):
        if word.text in LOCAL_SPACES:
            cuts += _local_pointer(words, at)
        elif word.text == "reinterpret_cast":
            cuts += _address(words, at)
    return _cut(text, cuts)


def _address(words: list[Token], at: int) -> list[tuple[int, int, str]]:
    """What becomes of `reinterpret_cast<uintptr_t>`: objects are converted, not reinterpreted."""
    opening, kind, closing = ([w.text for w in words[at + 1 : at + 4]] + [""] * 3)[:3]
    if opening != "<" or closing != ">" or kind not in _NUMBERS:
        return []
    return [(words[at].start, words[at + 3].end, f"({kind})")]


def _local_pointer(words: list[Token], at: int) -> list[tuple[int, int, str]]:
    """What becomes of `__ubuf__ T*`; nothing where no such type follows."""
    first, n = at, at + 1
    pointee: list[str] = []
    while words[first - 1].text in ("const", "volatile"):  # of what it points to
        first -= 1
        pointee.append(words[first].text)
    has_name = False
    while n < len(words) and words[n].text != "*":
        word = words[n]
        if word.text in _MARKS:
            pass
        elif word.text in _QUALIFIERS | _BUILT_IN:
            pointee.append(word.text)
            has_name |= word.text in _BUILT_IN
        elif word.kind == "word" and not has_name:
            end = _type_name(words, n)
            pointee.append("".join(_spaced(words[n:end])))
            has_name = True
            n = end
            continue
        else:
            return []
        n += 1
    if n == len(words) or not has_name:
        return []
    pointer = (
        f"::ptokit::Local<::pto::TileType::{LOCAL_SPACES[words[at].text]}, {' '.join(pointee)}>"
    )
    found = [(words[first].start, words[n].end, pointer)]
    if [w.text for w in words[first - 2 : first]] == ["reinterpret_cast", "<"]:
        found.insert(0, (words[first - 2].start, words[first - 2].end, "static_cast"))
    return found


def _type_name(words: list[Token], at: int) -> int:
    """The end of the name there: `a::b<c>::d`."""
    while True:
        at += 1
        if at < len(words) and words[at].text == "<":
            depth = 0
            while at < len(words):
                depth += {"<": 1, ">": -1}.get(words[at].text, 0)
                at += 1
                if not depth:
                    break
        if at + 1 < len(words) and words[at].text == "::":
            at += 1
            continue
        return at


def _spaced(words: list[Token]) -> Iterator[str]:
    """Words as they are written, with a space where two would become one."""
    for before, word in zip((None, *words), words, strict=False):
        if before is not None and before.kind == word.kind == "word":
            yield " "
        yield word.text


def _cut(text: str, cuts: list[tuple[int, int, str]]) -> str:
    """The text with parts replaced, each in as many lines as before."""
    for start, end, written in reversed(cuts):
        lines = text.count("\n", start, end) - written.count("\n")
        text = text[:start] + written + "\n" * max(0, lines) + text[end:]
    return text


def with_plain_launches(text: str, file: str) -> str:
    """The source with every launch as an expression of plain C++."""
    words = tokens(text.replace("[aicore]", "        "))
    text = text.replace("[aicore]", "        ")
    cuts: list[tuple[int, int, str]] = []
    for at, word in enumerate(words):
        if word.text == "<<<":
            launch = _launch(words, at)
            if launch is None:
                raise _odd_launch(text, word.start, file)
            start, close, opened, closed = launch
            callee = text[words[start].start : word.start]
            config = text[word.end : words[close].start]
            args = text[words[opened].start : words[closed].end]
            told, values = "", words[opened : closed + 1]
            if _are_plain(values) and not _is_in_macro(text, word.start):
                told = f".given([&](auto&& told) {{ told{_on_one_line(values)}; }})"
            written = f"::ptokit::Launch({config}){told} + [&]() mutable {{ {callee}{args}; }}"
            cuts.append((words[start].start, words[closed].end, written))
    return _cut(text, cuts)


def _are_plain(words: list[Token]) -> bool:
    """Whether arguments can be evaluated once more: nothing in them is called or changed."""
    for before, word in pairwise(words):
        is_called = word.text == "(" and before.kind == "word"
        is_stepped = before.text == word.text and word.text in "+-"
        if is_called or is_stepped or word.text in ("=", "{"):
            return False
    return True


def _on_one_line(words: list[Token]) -> str:
    """Words as they are written, without line ends and comments."""
    gaps = [" " if a.end < b.start else "" for a, b in pairwise(words)]
    return "".join(word.text + gap for word, gap in zip(words, [*gaps, ""], strict=True))


def _is_in_macro(text: str, at: int) -> bool:
    """Whether a place is part of a macro, whose words may stand for others."""
    start = text.rfind("\n", 0, at) + 1
    while start > 1 and text[start - 2] == "\\":
        start = text.rfind("\n", 0, start - 1) + 1
    return text[start:at].lstrip().startswith("#")


def _launch(words: list[Token], at: int) -> tuple[int, int, int, int] | None:
    """Of the `<<<` there: where its callee starts, its `>>>`, and the brackets of the arguments."""
    start = _callee(words, at - 1)
    close = next(_ends(words, at + 1), None)
    if start is None or close is None:
        return None
    opened = close + 3
    if opened >= len(words) or words[opened].text != "(":
        return None
    return start, close, opened, _closing(words, opened)


def _ends(words: list[Token], at: int) -> Iterator[int]:
    """Where three `>` stand side by side, outside of brackets."""
    while at + 2 < len(words):
        text = words[at].text
        if text in _OPENING:
            at = _closing(words, at)
        elif text in _CLOSING:
            return
        elif text == ">" and words[at + 1].text == words[at + 2].text == ">":
            side_by_side = words[at + 2].start == words[at].start + 2
            yield from [at] * side_by_side
        at += 1


def _callee(words: list[Token], at: int) -> int | None:
    """The first word of the name, with template arguments or made by a macro, that ends there."""
    if at >= 0 and words[at].text == ">":
        depth = 0
        while at >= 0:
            if words[at].text in _CLOSING:
                at = _opening(words, at)
            depth += {">": 1, "<": -1}.get(words[at].text, 0)
            at -= 1
            if depth == 0:
                break
    if at >= 0 and words[at].text == ")":
        at = _opening(words, at) - 1
    if at < 0 or words[at].kind != "word":
        return None
    while at >= 2 and words[at - 1].text in ("::", "##") and words[at - 2].kind == "word":
        at -= 2
    if at >= 1 and words[at - 1].text == "::":
        at -= 1
    return at


def _closing(words: list[Token], at: int) -> int:
    """The bracket that closes the one there; the end of the text where none does."""
    depth = 0
    for n in range(at, len(words)):
        depth += words[n].text in _OPENING
        depth -= words[n].text in _CLOSING
        if depth == 0:
            return n
    return len(words) - 1


def _opening(words: list[Token], at: int) -> int:
    depth = 0
    for n in range(at, -1, -1):
        depth += words[n].text in _CLOSING
        depth -= words[n].text in _OPENING
        if depth == 0:
            return n
    return 0


def _is_template(words: list[Token], at: int) -> bool:
    """Whether the declaration that the word there belongs to begins with `template <`."""
    while at > 0 and words[at - 1].text not in (";", "}", "{"):
        at -= 1
    return words[at].text == "template" or any(w.text == "template" for w in words[at : at + 3])


def _odd_launch(text: str, at: int, file: str) -> PtoError:
    line = text.count("\n", 0, at) + 1
    return fail(
        "cpp-launch",
        "a launch is kernel<<<blocks, l2, stream>>>(arguments)",
        site=Location(file, line, at - text.rfind("\n", 0, at)),
    )
