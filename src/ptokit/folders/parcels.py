"""A case together with the files that it reads, for machines that do not have them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol, TypeVar

from ptokit.base.dataclass import dataclass
from ptokit.base.plain import plain, typed
from ptokit.tasks import Executor, Journal, Work

C = TypeVar("C", bound="Movable")


class Movable(Protocol):
    """What is run, and names files."""

    def files(self) -> Iterable[Path]:
        """Those that it reads."""
        ...

    def moved(self: C, place: Callable[[Path], Path]) -> C:
        """The same, where its files are elsewhere."""
        ...


@dataclass(frozen=True)
class Parcel:
    """A case, and the contents of its files."""

    case: Any
    contents: Mapping[Path, bytes]

    @staticmethod
    def of(case: Movable) -> Parcel:
        return Parcel(case, {path: path.read_bytes() for path in case.files() if path.is_file()})


def run_parcel(parcel: Parcel, run: Callable[[Any], Any], kind: Any) -> Any:
    """What a function of a case gives back, of a type, as it does where the files are."""
    folders = list(dict.fromkeys(path.parent for path in parcel.contents))
    with TemporaryDirectory(prefix="ptokit-case-") as root:
        places = {folder: Path(root) / str(n) for n, folder in enumerate(folders)}
        for folder in places.values():
            folder.mkdir()
        for path, content in parcel.contents.items():
            (places[path.parent] / path.name).write_bytes(content)

        def place(path: Path) -> Path:
            return places[path] if path in places else places[path.parent] / path.name

        said = json.dumps(plain(run(parcel.case.moved(place))))
        for folder, there in places.items():
            said = said.replace(json.dumps(str(there))[1:-1], json.dumps(str(folder))[1:-1])
    return typed(kind, json.loads(said))


def packed(
    executor: Executor, run: Callable[[Any], Any], kind: Any
) -> tuple[Work, Callable[[Any], Any]]:
    """What is done for cases, and what a task is given of one: its files, where nobody has them."""
    if executor.is_remote:
        return Work(run_parcel, (run, kind)), Parcel.of
    return Work(run), lambda case: case


def journal_of(
    of_what: str, cases: Sequence[Movable], kind: Any, resume: bool | None
) -> AbstractContextManager[Journal | None]:
    """Where what came of cases is kept, which depends on their files; None: nowhere."""
    if resume is None:
        return nullcontext()
    found = sha256(repr((of_what, cases)).encode())
    for path in (path for case in cases for path in case.files()):
        if path.is_file():
            found.update(sha256(path.read_bytes()).digest())
    return Journal.of(found.hexdigest(), kind, resume=resume)
