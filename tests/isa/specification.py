"""The instruction set as data, where it lies beside the checkout (../shared/spec).

Nothing of the package reads it; tests compare the table with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "spec"
FILES = (
    *("binding", "comm", "elementwise", "expand", "irregular", "matrix", "memory", "misc"),
    *("movement", "partial", "pipes", "quant", "reduce", "sync", "tile_scalar"),
)
DEVICES = ("a2a3", "a5", "kirin9030", "kirinx90")
ID = re.compile(r"\b(?:SA|PA|CA)-\d{4}\b")

# Entries whose name is not that of one record of the table.
RECORDS: dict[str, tuple[str, ...]] = {
    "TQUANT": ("TQUANT", "TQUANT_MX"),
    "TSYNC (event form)": ("TSYNC",),
    "TSYNC<Op> (barrier form)": ("TSYNC",),
    "PtoSetWaitFlag<SrcPipe,DstPipe>": ("PtoSetWaitFlag",),
    "ffts_cross_core_sync / wait_flag_dev (a2a3), pto.sync.set / pto.sync.wait": (
        "ffts_cross_core_sync",
        "wait_flag_dev",
    ),
    "set_intra_block / wait_intra_block (a5)": ("set_intra_block", "wait_intra_block"),
    "get_buf / rls_buf": ("get_buf", "rls_buf"),
    "dcci / dsb": ("dcci", "dsb"),
    "pto.castptr / pto.addptr / pto.load_scalar / pto.store_scalar": (
        "load_scalar",
        "store_scalar",
    ),
}
# What `check` says where an entry has no `origin`.
CHECKS = {"static": "static", "debug": "debug", "runtime": "runtime", "doc": "doc"}


@dataclass(frozen=True)
class Statement:
    """One rule of the specification as it holds on one target."""

    text: str
    origin: str
    seed: bool
    ids: frozenset[str]
    dtypes: frozenset[str] = frozenset()  # where it is a list of element types
    borrowed: bool = False  # said of another instruction that this one points to
    undefined: bool = False  # what happens otherwise is not known: an error whatever the origin
    otherwise: str = ""  # what happens otherwise


@dataclass(frozen=True)
class Entry:
    """One instruction: its element types and rules per target, as the files write them."""

    file: str
    name: str
    data: dict[str, Any]
    rules: dict[str, tuple[Statement, ...]]  # per device, what is common included


def missing() -> str:
    """Why the comparison cannot be made here; empty: it can."""
    if not FOLDER.is_dir():
        return f"the specification does not lie beside the checkout ({FOLDER.parent.name}/spec)"
    return ""


def available() -> None:
    """Skip the test where there is nothing to compare with."""
    pytest.importorskip("yaml")
    if reason := missing():
        pytest.skip(reason)


@cache
def entries() -> dict[str, list[Entry]]:
    """The entries that speak of each record of the table, by its name."""
    return _Reader().entries()


class _Reader:
    """Reads all files, and follows what points from one place to another."""

    def __init__(self) -> None:
        import yaml

        self.raw: dict[str, tuple[str, dict[str, Any]]] = {}  # key -> file, entry
        self.groups: dict[str, Any] = {}  # file -> its shared rules
        self.general: list[dict[str, Any]] = []  # what holds for all communication
        for file in FILES:
            text = (FOLDER / f"{file}.yaml").read_text("utf-8")
            loaded: Any = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
            self.groups[file] = loaded.get("shared_rules", {})
            for data in loaded["instructions"]:
                name = data["name"]
                self.raw[f"comm.{name}" if _is_comm(file, name) else name] = file, data
            if file == "comm":
                self.general = _listed(loaded)

    def entries(self) -> dict[str, list[Entry]]:
        found: dict[str, list[Entry]] = {}
        for key, (file, data) in self.raw.items():
            rules = {d: tuple(dict.fromkeys(self._rules(key, d, set()))) for d in DEVICES}
            for record in RECORDS.get(key, (key,)):
                found.setdefault(record, []).append(Entry(file, key, data, rules))
        return found

    def _rules(self, key: str, device: str, seen: set[tuple[str, str]]) -> Iterator[Statement]:
        """The rules of an entry on a device: what is common and what is its own."""
        for group in ("common", device):
            yield from self._group(key, group, device, seen)
        if key.startswith("comm."):
            yield from (_stated(item) for item in self.general)

    def _group(
        self, key: str, group: str, device: str, seen: set[tuple[str, str]]
    ) -> Iterator[Statement]:
        if (key, group) in seen:  # entries point at each other
            return
        seen.add((key, group))
        file, data = self.raw[key]
        for item in self._flat(file, (data.get("rules") or {}).get(group, [])):
            text = str(item.get("rule", ""))
            other = item.get("same_as")
            if "every A5 rule of this entry" in text:
                other = "a5"
            elif "same implementation as a2a3" in text or "path shared with a2a3" in text:
                other = "a2a3"
            if other in DEVICES:
                yield from self._group(key, other, device, seen)
            elif other:
                for borrowed in self._rules(other, device, seen):
                    yield replace(borrowed, borrowed=True)
            elif GENERAL.match(text) or item.get("kind") == "fact":
                continue  # what every tile type must be, and what forbids nothing
            elif device in item.get("targets", DEVICES):
                yield _stated(item)

    def _flat(self, file: str, items: Any) -> Iterator[dict[str, Any]]:
        for item in [items] if isinstance(items, str | dict) else items or []:
            if isinstance(item, dict):
                yield item
            elif item.startswith("@"):
                yield from self._flat(file, self.groups[file][item[1:]])
            else:
                yield {"rule": item}


def _is_comm(file: str, name: str) -> bool:
    return file == "comm" and name != "TPREFETCH_ASYNC"


def _listed(node: Any) -> list[dict[str, Any]]:
    """The rules with an id anywhere outside the entries."""
    if isinstance(node, dict):
        if "id" in node and "rule" in node:
            return [node]
        inside = [part for key, part in node.items() if key != "instructions"]
        return [rule for part in inside for rule in _listed(part)]
    return [rule for part in node for rule in _listed(part)] if isinstance(node, list) else []


GENERAL = re.compile(r"^(Rows > 0 and Cols > 0|Row-major NoneBox tile:)")  # of every tile type


def _stated(item: dict[str, Any]) -> Statement:
    text = str(item.get("rule", ""))
    origin = item.get("origin") or CHECKS.get(str(item.get("check")).split()[0], "own")
    said = f"{item.get('id', '')} {item.get('assert', '')} {text}"
    shown = f"{item['id']}: {text}" if item.get("id") else text
    types = frozenset(spelled(name) for name in item.get("dtypes", []))
    return Statement(
        shown,
        origin,
        bool(item.get("seed")),
        frozenset(ID.findall(said)),
        types,
        undefined=item.get("severity") == "error",
        otherwise=str(item.get("otherwise", "")),
    )


_SPELLINGS = {"half": "f16", "float": "f32", "bfloat16": "bf16", "hifloat8": "hif8", "int4b": "i4"}


def spelled(name: str) -> str:
    """An element type by its short name, whichever way a file writes it."""
    short = re.sub(r"^float([48])_", r"f\1", name).replace("uint", "u").replace("int", "i")
    if name in _SPELLINGS:
        return _SPELLINGS[name]
    if re.match(r"e\dm\d$", name):
        return f"f8{name}"
    return f"f4{name}" if re.match(r"e\dm\dx2$", name) else short


def element_types(entry: Entry, device: str) -> list[tuple[str, tuple[str, ...]]]:
    """The combinations of element types that the entry lists for a device.

    Each is a pair of what the file calls the operands ("" where it does not, "src,dst" for two)
    and the types; what is said in words is left out.
    """
    lists = (entry.data.get("dtypes") or {}).get(device)
    return [(of, tuple(map(spelled, kinds))) for of, kinds in _combinations("", lists)]


def _combinations(of: str, node: Any) -> Iterator[tuple[str, tuple[str, ...]]]:
    if isinstance(node, dict) and {"src", "dst", "modes"} <= set(node):  # a conversion
        yield "src,dst", (node["src"], node["dst"])
    elif isinstance(node, dict):
        for key, part in node.items():
            yield from _combinations(key, part)
    elif isinstance(node, list):
        for one in node:
            if isinstance(one, dict):
                yield from _combinations(of, one)
            else:
                yield of, tuple(re.split("->|,", one) if isinstance(one, str) else one)
