"""Which word was meant: the known ones that are most like a word that nobody knows."""

from __future__ import annotations

from collections.abc import Callable, Iterable

ALIKE = 0.6  # the share of two words that must be common to them
_SHORT = 0.75  # where the word has two letters: `or` is like TOR, `In` has nothing to do with TMIN
_LONGEST = 80  # characters: comparing takes time with the product of the lengths


def nearest(
    word: str, known: Iterable[str], most: int | None = None, at_least: float = 0.0
) -> list[str]:
    """The known words most like this one, the likest first; capital letters count for little.

    Without `most` there is one, or those between which nothing decides, three of them.
    """
    if len(word) > _LONGEST:
        return []
    from difflib import SequenceMatcher  # nobody pays for it who makes no mistake

    needed = at_least or (_SHORT if len(word) < 3 else ALIKE)
    folded, exact = SequenceMatcher(), SequenceMatcher()
    folded.set_seq2(word.lower())  # what is kept of the second word serves for all of the first
    exact.set_seq2(word)
    found: list[tuple[tuple[float, float, int], str]] = []
    for each in dict.fromkeys(known):
        folded.set_seq1(each.lower())
        if folded.real_quick_ratio() < needed or folded.quick_ratio() < needed:
            continue
        like = folded.ratio()
        if like >= needed:
            exact.set_seq1(each)
            found.append(((-like, -exact.ratio(), -_begun_alike(each.lower(), word.lower())), each))
    found.sort()
    if most is None:
        found = [each for each in found if each[0] == found[0][0]][:3]
    return [each for _, each in found[:most]]


def _begun_alike(a: str, b: str) -> int:
    """With how many characters both begin."""
    unlike = (n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y)
    return next(unlike, min(len(a), len(b)))


def meant(
    word: str,
    known: Iterable[str],
    most: int | None = None,
    at_least: float = 0.0,
    shown: Callable[[str], str] = str,
) -> str:
    """The question "did you mean ...?", or the empty string where nothing is alike."""
    near = nearest(word, known, most, at_least)
    return f"did you mean {' or '.join(map(shown, near))}?" if near else ""
