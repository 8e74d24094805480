"""Compiled functions in the cache: found again, made anew where something is wrong with a file."""

from __future__ import annotations

import ctypes
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Barrier, BrokenBarrierError

import pytest

pytest.importorskip("llvmlite")

from ptokit.engines.compiled import host as host_module
from ptokit.engines.compiled.host import NAME, Host, Unsupported
from ptokit.engines.compiled.text import Function


def adding(number: int, helper: str = "plus") -> str:
    """A function of one number, with a function and a table of its own under common names."""
    return f"""
@table0 = private constant [1 x i64] [i64 {number}]
define internal i64 @{helper}(i64 %a) alwaysinline nounwind {{
  %n = load i64, ptr @table0
  %r = add i64 %a, %n
  ret i64 %r
}}
define i64 @{NAME}(i64 %a) nounwind {{
  %r = call i64 @{helper}(i64 %a)
  ret i64 %r
}}
"""


TEXTS = [adding(number) for number in (1, 20, 300)]


def results(host: Host, texts: list[str] = TEXTS) -> list[int]:
    call = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)
    return [call(address)(5) for address in host.addresses(texts)]


def refuse(*_: object) -> bytes:
    raise AssertionError("this is in the cache")


def test_functions_are_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = Host(tmp_path)
    assert results(first) == [6, 25, 305]
    assert len([*tmp_path.glob("*.o")]) == 1, "what is wanted together is one object"
    monkeypatch.setattr(Host, "_compile", refuse)
    assert results(first) == [6, 25, 305]
    assert results(Host(tmp_path), TEXTS[1:2]) == [25]
    assert results(Host(tmp_path), TEXTS[::-1]) == [305, 25, 6]


def test_a_function_may_be_part_of_several_objects(tmp_path: Path) -> None:
    """Two processes that compiled different sets at the same time; a third one loads both."""
    apart = tmp_path / "other"
    assert results(Host(tmp_path), TEXTS[:2]) == [6, 25]
    assert results(Host(apart), TEXTS[1:]) == [25, 305]
    for file in apart.iterdir():
        if not (tmp_path / file.name).exists():
            file.rename(tmp_path / file.name)
    assert results(Host(tmp_path)) == [6, 25, 305]


def sharing(number: int) -> str:
    """A function that stores a number beside what a part of it stores, which others have too."""

    def store(code: Function, value: int, at: int) -> None:
        code.act(f"store i64 {value}, ptr {code.behind(code.pointer(0), str(8 * at))}")

    code = Function(NAME)
    code.part(lambda part: store(part, 77, 0))
    store(code, number, 1)
    return code.text()


def stored(host: Host, texts: list[str]) -> list[list[int]]:
    """What functions leave in memory that they are handed as their words say."""
    call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
    found: list[list[int]] = []
    for address in host.addresses(texts):
        memory, words = (ctypes.c_int64 * 2)(), (ctypes.c_int64 * 2)()
        bases = (ctypes.c_void_p * 1)(ctypes.addressof(memory))
        call(address)(ctypes.addressof(words), ctypes.addressof(bases))
        found.append([*memory])
    return found


def test_what_functions_share_is_compiled_once(tmp_path: Path) -> None:
    texts = [sharing(1), sharing(2)]
    assert stored(Host(tmp_path), texts) == [[77, 1], [77, 2]]
    (file,) = tmp_path.glob("*.o")
    assert len({*re.findall(rb"part_[\w.]+", file.read_bytes())}) == 1
    # Other objects have it too, and may be loaded beside this one.
    assert stored(Host(tmp_path), [sharing(3)]) == [[77, 3]]
    assert stored(Host(tmp_path), [*texts, sharing(3)]) == [[77, 1], [77, 2], [77, 3]]


def _torn(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-7])


def _flipped(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def _foreign(file: Path) -> None:
    """What stands under another name, whole and with its checksum."""
    others = (each for each in sorted(file.parent.iterdir()) if each.suffix == file.suffix)
    kept = file.read_bytes()
    found = (own for each in others if (own := each.read_bytes()) != kept)
    file.write_bytes(next(found, b""))


def _folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


@pytest.mark.parametrize("damage", [_torn, _flipped, _foreign, _folder, Path.unlink])
@pytest.mark.parametrize("pattern", ["*.o", "*[!o]"])
def test_damaged_files_are_made_anew(
    damage: Callable[[Path], None], pattern: str, tmp_path: Path
) -> None:
    results(Host(tmp_path), TEXTS[:1])
    results(Host(tmp_path), TEXTS[1:])
    for file in sorted(tmp_path.glob(pattern)):
        damage(file)
    assert results(Host(tmp_path)) == [6, 25, 305]
    assert results(Host(tmp_path)) == [6, 25, 305]


def test_a_cache_that_cannot_be_written_is_no_cache(tmp_path: Path) -> None:
    taken = tmp_path / "file"
    taken.write_text("")
    assert results(Host(taken / "below")) == [6, 25, 305]


def test_one_that_cannot_be_compiled_leaves_the_others(tmp_path: Path) -> None:
    """Of a helper function of the compiler that nobody provides only its caller is refused."""
    wide = f"""
define i64 @{NAME}(i64 %a) nounwind {{
  %x = zext i64 %a to i128
  %y = udiv i128 170141183460469231731687303715884105727, %x
  %r = trunc i128 %y to i64
  ret i64 %r
}}
"""
    host = Host(tmp_path)
    with pytest.raises(Unsupported, match="__udivti3"):
        host.addresses([*TEXTS, wide])
    assert results(host) == [6, 25, 305]


def test_threads_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that want the same functions at the same time: one compiles them, the others wait."""
    compiling, both, compiled = Host._compile, Barrier(2), list[int]()

    def slowly(self: Host, texts: Mapping[str, str], home: str, is_hasty: bool) -> bytes:
        with suppress(BrokenBarrierError):
            both.wait(0.5)  # where there is a second one in here, both go on
        compiled.append(len(texts))
        return compiling(self, texts, home, is_hasty)

    monkeypatch.setattr(Host, "_compile", slowly)
    host = Host(tmp_path)
    with ThreadPoolExecutor(3) as threads:
        found = [threads.submit(results, host, TEXTS[:many]) for many in (3, 3, 1)]
    assert [each.result() for each in found] == [[6, 25, 305], [6, 25, 305], [6]]
    assert sum(compiled) == 3


def test_there_is_one_compiler_for_all_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    both, made = Barrier(2), list[Path]()

    def slowly(folder: Path) -> Path:
        with suppress(BrokenBarrierError):
            both.wait(0.5)
        made.append(folder)
        return folder

    monkeypatch.setattr(host_module, "Host", slowly)
    host_module._begun.cache_clear()
    try:
        with ThreadPoolExecutor(2) as threads:
            assert len({*threads.map(lambda _: host_module.host(), range(2))}) == 1
        assert len(made) == 1
    finally:
        host_module._begun.cache_clear()


def test_processes_at_once(tmp_path: Path) -> None:
    """Several that compile, write and read the same files: each finds what it wants."""
    code = (
        "import sys; from pathlib import Path\n"
        "from tests.engines.test_cache import TEXTS, results\n"
        "from ptokit.engines.compiled.host import Host\n"
        "for many in (1, 2, 3):\n"
        "    assert results(Host(Path(sys.argv[1])), TEXTS[:many]) == [6, 25, 305][:many]\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    started = [subprocess.Popen(command, cwd=Path(__file__).parents[2]) for _ in range(3)]
    assert [each.wait() for each in started] == [0, 0, 0]
    assert not [*tmp_path.glob("tmp*")]
