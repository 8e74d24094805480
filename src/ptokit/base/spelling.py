"""Which word was meant: the known ones that are most like a word that nobody knows."""

from __future__ import annotations

from collections.abc import Iterable

ALIKE = 0.6  # the share of two words that must be common to them
_SHORT = 0.75  # where the word has two letters: `or` is like TOR, `In` has nothing to do with TMIN
_LONGEST = 80  # characters: comparing takes time with the product of the lengths


def nearest(
    word: str, known: Iterable[str], most: int = 1, at_least: float | None = None
) -> list[str]:
    """The known words most like this one, the likest first; capital letters count for little.

    Of words that are as like, those that go on as this one begins come first.
    """
    if len(word) > _LONGEST:
        return []
    from difflib import SequenceMatcher  # nobody pays for it who makes no mistake

    needed = at_least if at_least is not None else _SHORT if len(word) < 3 else ALIKE
    folded = word.lower()
    matcher = SequenceMatcher()
    matcher.set_seq2(folded)  # what it keeps of the second word serves for all of the first
    exact = SequenceMatcher()
    exact.set_seq2(word)
    found: list[tuple[float, float, bool, str]] = []
    for each in dict.fromkeys(known):
        matcher.set_seq1(each.lower())
        if matcher.real_quick_ratio() < needed or matcher.quick_ratio() < needed:
            continue
        like = matcher.ratio()
        if like >= needed:
            exact.set_seq1(each)
            found.append((-like, -exact.ratio(), not each.lower().startswith(folded), each))
    return [each for *_, each in sorted(found)[:most]]


def meant(word: str, known: Iterable[str], most: int = 1) -> str:
    """The question "did you mean ...?", or the empty string where nothing is alike."""
    near = nearest(word, known, most)
    return f"did you mean {' or '.join(near)}?" if near else ""
