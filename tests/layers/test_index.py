"""Tables load what is named: the index says the same as the records, and nothing depends on it."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from ptokit.ir.dialects import DEFINITIONS
from ptokit.ir.instructions import _forms, forms_of
from ptokit.isa import INSTRUCTIONS
from ptokit.isa.micro import MICRO
from ptokit.isa.opcodes import op_codes
from ptokit.isa.table import Table
from ptokit.isa.words import OVERLOAD, SYNTAX, classes

SHOW = """
import sys
from ptokit.isa import INSTRUCTIONS
from ptokit.isa.micro import MICRO
for table in (INSTRUCTIONS, MICRO):
    print(len(table), [name for name in table], [record.name for record in table.values()])
    print([(kind, word, [r.name for r in table.called(kind, word)])
           for kind in table.index.words for word in table.words(kind)])
"""


def shown(cache: Path, before: str = "", then: str = SHOW) -> str:
    """What a process prints whose cache is a folder."""
    env = {**os.environ, "PTOKIT_CACHE": str(cache)}
    code = f"{before}\n{then}"
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def files(cache: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (cache / "index").iterdir()}


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache with an index."""
    made = tmp_path_factory.mktemp("cache")
    shown(made)
    assert len(files(made)) == 2
    return made


@pytest.mark.parametrize("table", [INSTRUCTIONS, MICRO], ids=["instructions", "micro"])
def test_the_index_is_what_the_modules_say(table: Table[object]) -> None:  # type: ignore[type-var]
    assert table.index == table._made()


def test_what_is_written_is_found_again() -> None:
    """By the word that a text, an event or a call has for it."""
    for insn in INSTRUCTIONS.values():
        for form in _forms(insn):
            assert form in (forms_of(form.mnemonic) or ())
            assert form in (forms_of(form.mnemonic.replace(".", "_")) or ())
        for name, line in insn.asm.syntax.items() if insn.asm else ():
            assert DEFINITIONS[f"pto.{name}"].insn is insn
            assert DEFINITIONS[f"pto.{name}"].format == line
        for name, pipe in classes(insn).items():
            assert op_codes()[name].pipe is pipe
        if insn.overload_of:
            assert insn in INSTRUCTIONS.called(OVERLOAD, insn.overload_of)
    for record in MICRO.values():
        for name in (record.name, *record.aliases):
            assert DEFINITIONS[f"pto.{name}"].micro is record


def test_the_order_is_that_of_the_modules(cache: Path, tmp_path: Path) -> None:
    """Whatever was loaded first, and whether there was an index."""
    first = "import ptokit.isa.micro.staging, ptokit.isa.store, ptokit.isa.bitwise"
    with_index, without = shown(cache, first), shown(tmp_path / "new", first)
    assert with_index == without == shown(cache)


def test_a_record_loads_its_module(cache: Path) -> None:
    """And what that is made of: not the other definitions."""
    name = next(iter(INSTRUCTIONS))
    loaded = shown(cache, f"from ptokit.isa import INSTRUCTIONS\nINSTRUCTIONS[{name!r}]",
                   "import sys; print([*sys.modules])")  # fmt: skip
    homes = {*INSTRUCTIONS.index.homes.values(), *MICRO.index.homes.values()}
    assert INSTRUCTIONS.index.homes[name] in loaded
    assert len([home for home in homes if f"'{home}'" in loaded]) < len(homes) / 4


def sealed(name: str, content: bytes) -> bytes:
    """As a file of the cache has it: behind its checksum."""
    return hashlib.sha256(name.encode() + b"\0" + content).digest() + content


def torn(name: str, content: bytes) -> bytes:
    return content[: len(content) // 2]


def flipped(name: str, content: bytes) -> bytes:
    return content.replace(b"ptokit.isa.store", b"ptokit.isa.stone")


def of_other_files(name: str, content: bytes) -> bytes:
    """A file more; and nothing that is defined."""
    read = json.loads(content[32:])
    changed = {**read, "files": [*read["files"], ["/more.py", 1, 1]], "homes": {}, "words": {}}
    return sealed(name, json.dumps(changed).encode())


@pytest.mark.parametrize("damage", [torn, flipped, of_other_files])
def test_a_damaged_or_foreign_index_is_made_anew(damage, cache: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    whole = files(cache)
    (tmp_path / "index").mkdir()
    for name, content in whole.items():
        changed = damage(name, content)
        assert changed != content or damage is flipped
        (tmp_path / "index" / name).write_bytes(changed)
    assert shown(tmp_path) == shown(cache)
    assert files(tmp_path) == whole


def test_an_index_that_is_wrong_is_no_authority(cache: Path, tmp_path: Path) -> None:
    """As after a change of a file that left its size and time as they were."""
    (tmp_path / "index").mkdir()
    for name, content in files(cache).items():
        read = json.loads(content[32:])
        homes = dict.fromkeys(read["homes"], next(iter(read["homes"].values())))
        changed = json.dumps({**read, "homes": homes}).encode()
        (tmp_path / "index" / name).write_bytes(sealed(name, changed))
    last = [*INSTRUCTIONS][-1]
    then = f"from ptokit.isa import INSTRUCTIONS\nprint(INSTRUCTIONS[{last!r}])"
    assert shown(tmp_path, "", then) == f"<{last}>\n"


def test_a_cache_that_cannot_be_written_is_none(cache: Path, tmp_path: Path) -> None:
    (tmp_path / "index").write_text("a file where the folder would be")
    assert shown(tmp_path) == shown(cache)


def test_what_had_no_syntax_is_looked_up_again_in_another_index(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """That an operation has none is remembered, for as long as the tables are what they were."""
    index = INSTRUCTIONS.index
    word, names = next(iter(index.words[SYNTAX].items()))
    definitions = type(DEFINITIONS)()
    bare = replace(index, words={**index.words, SYNTAX: {}})
    monkeypatch.setitem(vars(INSTRUCTIONS), "index", bare)
    assert definitions.find(f"pto.{word}") is None
    assert definitions.get(f"pto.{word}") is None
    monkeypatch.setitem(vars(INSTRUCTIONS), "index", index)
    found = definitions.find(f"pto.{word}")
    assert found is not None, names
    assert definitions[f"pto.{word}"] is found
