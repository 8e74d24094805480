"""The numbers of the model: one file per target, and none without saying where it comes from.

    [cost."matrix product".work.boxes]
    value = 1.0
    unit = "cycles a box"
    source = "fit.yaml: gemm, busy ratio of the cube"
    range = "m 128, k 64, n 256"
    residual = "1.4 %"

A number that no published figure can tell says `assumed = "why this value"` instead of source,
range and residual. Whatever lacks either is refused when the file is read.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import InternalError, fail, usage_error
from ptokit.base.namedtuple import NamedTuple
from ptokit.isa.spec import Insn

FOLDER = Path(__file__).parent / "params"
_EVIDENCE = ("source", "range", "residual")


class Number(NamedTuple):
    """A number of the model, with where it comes from."""

    value: float
    unit: str
    source: str = ""
    range: str = ""
    residual: str = ""
    assumed: str = ""


class CostLaw(NamedTuple):
    """How long a class of operations takes: the longest of some sums over features.

    `bounds` are (start, ((feature, cycles a piece), ...)). What goes through global memory takes
    the time of its bytes beside: at most `rate` bytes a cycle, `miss_rate` where they come from
    beyond the L2. All of it is complete `tail` cycles after the pipe is free for the next.
    """

    bounds: tuple[tuple[float, tuple[tuple[str, float], ...]], ...]
    rate: float = 0.0
    miss_rate: float = 0.0
    miss_start: float = 0.0  # cycles before the first byte comes from beyond the L2
    tail: float = 0.0


@dataclass(frozen=True)
class Params:
    """The parameter file of one target."""

    target: str
    path: str
    digest: str  # of the file, as results print it
    validated: str  # which kernels it was held against; "": none
    band: tuple[float, ...]  # error band of a prediction, in percent: median, largest
    numbers: Mapping[str, Number]
    changed: Mapping[str, float] = field(default_factory=dict[str, float])  # by a what-if
    _laws: dict[str, CostLaw | None] = field(default_factory=dict[str, "CostLaw | None"])

    def __getitem__(self, name: str) -> float:
        if name in self.changed:
            return self.changed[name]
        found = self.numbers.get(name)
        if found is None:
            raise fail("timing.number", f"{self.path} has no number {name}", kind=InternalError)
        return found.value

    def names(self, prefix: str = "") -> Iterator[str]:
        return (name for name in self.numbers if name.startswith(prefix))

    def what_if(self, **changed: float) -> Params:
        """The same with other values; names are those of the file, with dots."""
        return self.changed_by(changed)

    def changed_by(self, changed: Mapping[str, float]) -> Params:
        """The same with other values, by name."""
        for name in changed:
            if name not in self.numbers:
                near = [n for n in self.numbers if name.lower() in n.lower()]
                raise usage_error(
                    "timing.number",
                    f"{self.path} has no number {name!r}",
                    fix=f"one of {', '.join(near or list(self.numbers)[:12])} ...",
                )
        return replace(self, changed={**self.changed, **changed}, _laws={})

    def is_assumed(self, kind: str) -> bool:
        """Whether no number of a class of operations comes from a figure."""
        names = list(self.names(f"cost.{kind}."))
        return bool(names) and all(self.numbers[name].assumed for name in names)

    def law(self, insn: Insn, kind: str) -> CostLaw:
        """How long operations of a class take; one that nobody has described is an error."""
        found = self._laws.get(kind)
        if found is None:
            found = self._laws[kind] = self._read(kind)
        if found is None:
            raise fail(
                "timing.class",
                f"{insn.name} belongs to the class {kind!r}, of which {self.target} has no numbers",
                fix=f'add [cost."{kind}"] to {self.path}, with where the numbers come from',
                kind=InternalError,
            )
        return found

    def _read(self, kind: str) -> CostLaw | None:
        bounds: dict[str, dict[str, float]] = {}
        prefix = f"cost.{kind}."
        for name in self.names(prefix):
            bound, feature = name[len(prefix) :].rsplit(".", 1)
            bounds.setdefault(bound, {})[feature] = self[name]
        if not bounds:
            return None
        memory = bounds.pop("memory", {})
        tail = bounds.pop("completion", {}).get("tail", 0.0)
        sums = tuple(
            (terms.pop("start", 0.0), tuple(terms.items())) for terms in map(dict, bounds.values())
        )
        rate = memory.get("rate", 0.0)
        missed = memory.get("miss_rate", rate), memory.get("miss_start", 0.0)
        return CostLaw(sums, rate, *missed, tail)


def load(target: str) -> Params:
    """The parameters of a target."""
    path = FOLDER / f"{target}.toml"
    if not path.exists():
        known = ", ".join(sorted(p.stem for p in FOLDER.glob("*.toml")))
        raise usage_error("timing.target", f"there is no timing of {target}", fix=f"one of {known}")
    return read(path)


@lru_cache(maxsize=16)
def _parsed(text: str, path: str) -> Params:
    data = tomllib.loads(text)
    about: dict[str, Any] = data.pop("about", {})
    numbers = dict(_numbers(data, "", path))
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    band = tuple(float(each) for each in about.get("band", ()))
    return Params(
        Path(path).stem, Path(path).name, digest, about.get("validated", ""), band, numbers
    )


def read(path: Path) -> Params:
    """A parameter file; a number without provenance is refused."""
    return _parsed(path.read_text("utf-8"), str(path))


def _numbers(table: Mapping[str, Any], prefix: str, path: str) -> Iterator[tuple[str, Number]]:
    for key, entry in table.items():
        name = f"{prefix}{key}"
        if not isinstance(entry, dict):
            raise fail(
                "timing.provenance",
                f"{path}: {name} = {entry!r} is a bare number",
                fix="write a table: value, unit, and source, range and residual, or assumed",
                kind=InternalError,
            )
        entry = cast(dict[str, Any], entry)
        if "value" not in entry:
            yield from _numbers(entry, f"{name}.", path)
            continue
        missing = [] if "unit" in entry else ["unit"]
        if "assumed" not in entry:
            missing += [each for each in _EVIDENCE if not entry.get(each)]
        if missing or (not entry.get("assumed") and "assumed" in entry):
            raise fail(
                "timing.provenance",
                f"{path}: {name} has no {' and no '.join(missing or ['reason'])}",
                fix="say where the number comes from, or assumed = why it has this value",
                kind=InternalError,
            )
        yield name, Number(**entry)
