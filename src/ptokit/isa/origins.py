"""Where a rule comes from, which decides how much its violation matters.

The makers' sources state some rules as static assertions, some as assertions of debug builds only,
some as limits of the hardware and some in prose; the rest we derived. Most of it follows from the
id a rule is reported under; `origins.json` holds what does not, per instruction, rule and target.
"""

from __future__ import annotations

import json
from functools import cache
from pkgutil import get_data

from ptokit.base.policy import Origin

_BY_ID = {"SA-": Origin("static"), "PA-": Origin("debug")}


def default_origin(id: str) -> Origin:
    """The origin that follows from the class of an id."""
    return _BY_ID.get(id[:3], Origin("own"))


def origin_of(name: str, id: str, target: str) -> Origin:
    """The origin of the rule that an instruction reports under an id on a target."""
    said = _differing().get(name, {}).get(id, {})
    said = said.get(target) if isinstance(said, dict) else said
    if said is None:
        return default_origin(id)
    kind, _, seed = said.partition(", ")
    return Origin(kind, bool(seed))


@cache
def _differing() -> dict[str, dict[str, str | dict[str, str]]]:
    return json.loads(get_data(__name__, "origins.json") or b"{}")


__all__ = ["Origin", "default_origin", "origin_of"]
