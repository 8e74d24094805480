"""Which findings stop a program: from the call, from the kernel, and from a project file.

A file `ptokit.toml`, or the table `[tool.ptokit]` of a `pyproject.toml`, beside a kernel's file or
above it holds for all kernels below; it is read once per process:

    rules = "release"
    allow = ["PA-0044", "E8@softmax.py:41"]
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from ptokit.base.diagnostics import PtoError, usage_error
from ptokit.base.location import Location
from ptokit.base.policy import PROFILES, Allowed, Policy
from ptokit.base.spelling import meant
from ptokit.isa import INSTRUCTIONS
from ptokit.isa.verify import code_of, type_code
from ptokit.machine.codes import CODES

# Findings that are no rules of an instruction: of a run, and of a text as a whole.
_OTHERS = ("argument-overlap", "hidden-register", "poison-read", "poison-store", "tile-overlap")
_FILES = {"ptokit.toml": (), "pyproject.toml": ("tool", "ptokit")}


def policy_for(
    file: str, rules: str | None = None, allow: Iterable[str] = (), outer: Policy | None = None
) -> Policy:
    """The policy in force for code of a file: that of the call, then `outer`, then the project's.

    What is allowed adds up; of the profiles the innermost counts.
    """
    if outer is None:
        outer = project_policy(file)
    if rules is None and not allow:
        return outer
    return Policy(_profile(rules or outer.profile), outer.allow | _allowed(_words(allow)))


@cache
def project_policy(file: str) -> Policy:
    """What the nearest project file says, upwards of a source file or of the current folder."""
    path = Path(file)
    folder = path.resolve().parent if path.is_file() else Path.cwd()
    for above in (folder, *folder.parents):
        for name, table in _FILES.items():
            found = _read(above / name, table)
            if found is not None:
                return found
    return Policy()


def _read(path: Path, table: tuple[str, ...]) -> Policy | None:
    if not path.is_file():
        return None
    import tomllib  # where there is such a file

    try:
        data: Any = tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        if table:
            return None  # a file of others: they will say what is wrong with it
        raise _wrong(path, str(error)) from None
    for word in table:
        if word not in data:
            return None
        data = data[word]
    unknown = sorted(set(data) - {"rules", "allow"})
    if unknown:
        raise _wrong(path, f"{unknown[0]!r} is no setting", "the settings are rules and allow")
    allow = data.get("allow", [])
    if not isinstance(allow, list):
        raise _wrong(path, "allow is a list of ids", 'allow = ["PA-0044", "E8@softmax.py:41"]')
    site = Location(str(path), 0)
    return Policy(_profile(data.get("rules", "default"), site), _allowed(_words(allow), site))


def _wrong(path: Path, what: str, fix: str = "") -> PtoError:
    return usage_error("project-file", what, fix=fix, site=Location(str(path), 0))


def _profile(name: str, site: Location | None = None) -> str:
    if name not in PROFILES:
        raise usage_error(
            "rules",
            f"rules is one of {', '.join(PROFILES)}, not {name!r}",
            fix=meant(str(name), PROFILES),
            site=site,
        )
    return name


def _words(allow: Iterable[str]) -> tuple[str, ...]:
    words = (allow,) if isinstance(allow, str) else tuple(allow)
    if not all(isinstance(word, str) for word in words):
        raise usage_error("allow", "allow lists ids", got=[("allow", words)], fix='("PA-0044",)')
    return words


@cache
def _allowed(words: tuple[str, ...], site: Location | None = None) -> frozenset[Allowed]:
    found = frozenset(map(Allowed.read, words))
    for each in sorted(found):
        if each.code not in known_codes():
            raise usage_error(
                "allow",
                f"{each.code!r} is the id of no finding that can be allowed",
                got=[("allow", each)],
                fix=meant(each.code, known_codes(), 3) or "the message shows the id",
                site=site,
            )
    return found


@cache
def known_codes() -> frozenset[str]:
    """The ids that `allow` knows: of the rules of every instruction, and of checked runs."""
    found = {*CODES, *_OTHERS}
    for insn in INSTRUCTIONS.values():
        found |= {code_of(insn, rule) for rule in insn.rules}
        found |= {o.refused for o in insn.operands if o.refused}
        for group in insn.types:
            named = (device for device in group.allowed if group.ids.get(device) != "")
            found |= {type_code(insn, group, device) for device in named}
    return frozenset(found - {""})
