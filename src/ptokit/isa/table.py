"""Tables of records, of which a process loads what it names.

Executing every definition takes longer than checking a small program. So a table keeps an index of
the modules of its folder, and imports a module when a record of it is wanted; whoever goes over all
records imports all of them. The index is what those modules said when all were loaded once. It lies
in the cache, and holds for the files of which it was made, by the measure that Python applies to
bytecode: names, sizes and times. An index that is missing, damaged or of other files is made anew.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, cached_property
from importlib import import_module
from pkgutil import iter_modules
from typing import Generic, Protocol, TypeVar
from zlib import crc32

from ptokit.base.cache import Kept, cache_folder
from ptokit.base.dataclass import dataclass
from ptokit.base.starting import uncollected

_FOLDER = os.path.dirname(__file__)


class Record(Protocol):
    """Whatever has a name."""

    @property
    def name(self) -> str: ...


R = TypeVar("R", bound=Record)
Words = Mapping[str, Iterable[str]]  # by kind: what else somebody may ask for a record by


@dataclass(frozen=True)
class Index:
    """What the modules of a folder define."""

    homes: dict[str, str]  # name of a record -> module
    words: dict[str, dict[str, list[str]]]  # kind of word -> word -> names of records


class Table(Mapping[str, R], Generic[R]):
    """The records that the modules of a package define, by name.

    They come in the order of the modules and of their lines, whatever was loaded first.
    """

    def __init__(self, package: str, words: Callable[[R], Words]) -> None:
        self._package, self._words = package, words
        self._defined: dict[str, R] = {}
        self._homes: dict[str, str] = {}

    def define(self, record: R) -> None:
        """Take in a record, from the module that is being imported."""
        assert record.name not in self._defined, f"{record.name} is defined twice"
        self._defined[record.name] = record
        self._homes[record.name] = _module_under_way()

    def __getitem__(self, name: str) -> R:
        if name not in self._defined:
            import_module(self.index.homes[name])
            if name not in self._defined:  # the index is of other files, for all that they show
                vars(self)["index"] = self._made()
        return self._defined[name]

    def __contains__(self, name: object) -> bool:
        return name in self._defined or name in self.index.homes

    def __iter__(self) -> Iterator[str]:
        return iter({**self.index.homes, **self._homes})

    def __len__(self) -> int:
        return len({*self.index.homes, *self._homes})

    def called(self, kind: str, word: str) -> list[R]:
        """The records that are known by a word of a kind."""
        return [self[name] for name in self.index.words.get(kind, {}).get(word, ())]

    def words(self, kind: str) -> list[str]:
        """All words of a kind; nothing is loaded for that."""
        return [*self.index.words.get(kind, {})]

    def defined_in(self, module: str) -> list[R]:
        """The records of a module that is loaded."""
        return [self._defined[name] for name, home in self._homes.items() if home == module]

    # ---- the index ---------------------------------------------------------------------------

    @cached_property
    def index(self) -> Index:
        """Read, or made by loading everything."""
        files = _files()
        kept = Kept(cache_folder() / "index")
        name = f"{self._package}-{crc32(_FOLDER.encode()):08x}"
        found = _read(kept.read(name), files) if files else None
        if found is None:
            with uncollected():
                found = self._made()
            content = {"files": files, "homes": found.homes, "words": found.words}
            if files:
                kept.write(name, json.dumps(content).encode())
        return found

    def _made(self) -> Index:
        """Load everything, and note where it is."""
        home = import_module(self._package)
        modules = [f"{self._package}.{each.name}" for each in iter_modules(home.__path__)]
        for module in modules:
            import_module(module)
        place = {module: n for n, module in enumerate(modules)}
        names = [name for name, home in self._homes.items() if home in place]
        names.sort(key=lambda name: place[self._homes[name]])  # and as they stand in each
        words: dict[str, dict[str, list[str]]] = {}
        for name in names:
            for kind, own in self._words(self._defined[name]).items():
                for word in dict.fromkeys(own):
                    words.setdefault(kind, {}).setdefault(word, []).append(name)
        return Index({name: self._homes[name] for name in names}, words)


def _module_under_way() -> str:
    """The module whose lines are being executed; whatever functions they have called."""
    frame = sys._getframe()
    while frame.f_code.co_name != "<module>" and frame.f_back is not None:
        frame = frame.f_back
    return frame.f_globals["__name__"]


@cache
def _files() -> list[list[str | int]]:
    """All that an index depends on: each file of this folder, by name, size and time.

    None, where it is no folder, as in an archive: then no index is kept.
    """
    found: list[list[str | int]] = []
    for folder, _, names in os.walk(_FOLDER):
        for name in names:
            if name.endswith(".py"):
                path = os.path.join(folder, name)
                at = os.stat(path)
                found.append([path.removeprefix(_FOLDER), at.st_size, at.st_mtime_ns])
    return [[_FOLDER, *sys.version_info[:2]], *sorted(found, key=str)] if found else []


def _read(content: bytes | None, files: list[list[str | int]]) -> Index | None:
    """An index that was made of these files."""
    if content is None:
        return None
    read = json.loads(content)
    return Index(read["homes"], read["words"]) if read["files"] == files else None
