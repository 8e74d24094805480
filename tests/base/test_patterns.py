"""Regular expressions that are compiled late."""

from __future__ import annotations

import re

import pytest

from ptokit.base.patterns import regex


def test_it_is_compiled_when_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    compiled = re.compile

    def watched(text: str, flags: int = 0) -> re.Pattern[str]:
        seen.append(text)
        return compiled(text, flags)

    monkeypatch.setattr(re, "compile", watched)
    word = regex(r"(?P<first>[a-z])\w*", re.IGNORECASE)
    assert not seen
    for _ in range(2):
        found = word.fullmatch("Word")
        assert found is not None
        assert found["first"] == "W"
    assert word.sub("x", "a b") == "x x"
    assert seen == [word.pattern] * 3  # once for each thing that is asked of it


def test_what_is_wrong_is_said_by_python() -> None:
    with pytest.raises(re.error):
        regex("(").match("")
    with pytest.raises(AttributeError):
        _ = regex("a").nothing  # type: ignore[attr-defined]
