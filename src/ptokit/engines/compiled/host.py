"""The computer the compiled code runs on: from LLVM text to functions, kept by their content.

A function is compiled once for this processor and found again in the next process. Functions that
are wanted together are compiled and kept as one object; under a name made of text, processor and
version of the compiler the cache says which object has a function. Files appear there
complete or not at all; one that does not fit its checksum, or whose object is gone, is made anew.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

from ptokit.base.cache import Kept, cache_folder
from ptokit.base.patterns import regex

# What the processor has no instruction for the compiler leaves to a function that nobody provides.
_HELPER = regex(rb"\0(__[a-z]\w+)\0")
_OBJECT = regex("[0-9a-f]{64}")
NAME = "{name}"  # what the function of a module is called until it is compiled

# Vectors and the order of work are written out already: what is left to do before instructions are
# chosen is registers for variables, and functions in place of their calls. More takes its time, and
# gives code that is no faster.
_PASSES = ("always_inliner", "sroa")
_UNFINISHED = ("alwaysinline", " = alloca ")


class Unsupported(Exception):  # noqa: N818 - named after what happened
    """There is no code for this yet."""


class Host:
    """LLVM for this processor. Code stays loaded as long as the process lives.

    Threads take turns: what one of them compiles, the next one finds.
    """

    def __init__(self, folder: Path) -> None:
        import llvmlite.binding as llvm

        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        self._llvm: Any = llvm
        self.processor: str = llvm.get_host_cpu_name()
        self.features: str = llvm.get_host_cpu_features().flatten()
        self._machine, self._hasty = (
            llvm.Target.from_default_triple().create_target_machine(
                cpu=self.processor, features=self.features, opt=level, jit=True
            )
            for level in (2, 0)
        )
        empty = llvm.parse_assembly("")
        self._engine = llvm.create_mcjit_compiler(empty, self._machine)
        self._engine.remove_module(empty)  # which it would compile before it loads anything
        self._files = Kept(folder)
        self._version = ".".join(map(str, llvm.llvm_version_info))
        self._addresses: dict[str, int] = {}
        self._loaded: set[str] = set()
        self._turn = Lock()

    def addresses(self, texts: Sequence[str], *, is_hasty: bool = False) -> list[int]:
        """Where functions lie in memory, each of an LLVM module in which it is called {name}.

        What is not in the cache is compiled together: a compiler that is started for a short
        function does little else than start. In haste it takes a tenth of the time, and leaves
        functions as they were written.
        """
        digests = [self._digest(text, is_hasty) for text in texts]
        with self._turn:
            self._provide(dict(zip(digests, texts, strict=True)), is_hasty)
        return [self._addresses[digest] for digest in digests]

    def _provide(self, texts: Mapping[str, str], is_hasty: bool) -> None:
        """Load functions, by their digests; what is not in the cache is compiled."""
        new = {digest: text for digest, text in texts.items() if digest not in self._addresses}
        homes = {digest: home for digest in new if (home := self._kept(digest)) is not None}
        rest = {digest: text for digest, text in new.items() if digest not in homes}
        try:
            homes |= self._made(rest, is_hasty)
        except Unsupported:
            if len(rest) == 1:
                raise
            for digest, text in rest.items():  # the one that cannot be is told, others are there
                homes |= self._made({digest: text}, is_hasty)
        if new:
            self._engine.finalize_object()
        for digest in new:
            name = _name(digest, homes[digest])
            self._addresses[digest] = self._engine.get_function_address(name)

    def _digest(self, text: str, is_hasty: bool) -> str:
        """What code depends on, in short."""
        how = "as it is" if is_hasty else " ".join(_PASSES)
        parts = (self._version, self.processor, self.features, how, text)
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()

    # ---- compiling ---------------------------------------------------------------------------

    def _made(self, texts: Mapping[str, str], is_hasty: bool) -> dict[str, str]:
        """Compile functions, by their digests, as one object, and keep it; gives its name."""
        home = hashlib.sha256(" ".join(sorted(texts)).encode()).hexdigest()
        if texts and home not in self._loaded:
            code = self._compile(texts, home, is_hasty)
            self._files.write(f"{home}.o", code)  # before anybody is told of it
            for digest in texts:
                self._files.write(digest, home.encode())
            self._load(home, code)
        return dict.fromkeys(texts, home)

    def _compile(self, texts: Mapping[str, str], home: str, is_hasty: bool) -> bytes:
        named = (text.replace(NAME, _name(digest, home)) for digest, text in texts.items())
        module, *others = map(self._llvm.parse_assembly, named)
        for other in others:
            module.link_in(other)
        module.verify()
        if is_hasty:
            return self._hasty.emit_object(module)
        if any(word in text for word in _UNFINISHED for text in texts.values()):
            self._finish(module)
        code = self._machine.emit_object(module)
        if helper := _HELPER.search(code):
            raise Unsupported(f"a helper of the compiler, {helper[1].decode()}")
        return code

    def _finish(self, module: Any) -> None:
        """Do what there is to do before instructions are chosen."""
        builder = self._llvm.create_pass_builder(
            self._machine, self._llvm.create_pipeline_tuning_options(speed_level=2)
        )
        passes = self._llvm.create_new_module_pass_manager()
        for each in _PASSES:
            getattr(passes, f"add_{each}_pass")()
        passes.run(module, builder)

    # ---- the cache ---------------------------------------------------------------------------

    def _kept(self, digest: str) -> str | None:
        """The name of the object in the cache that has a function, which is loaded then."""
        home = (self._files.read(digest) or b"").decode("ascii", "replace")
        if home in self._loaded:
            return home
        code = self._files.read(f"{home}.o") if _OBJECT.fullmatch(home) else None
        if code is None:
            return None
        self._load(home, code)
        return home

    def _load(self, home: str, code: bytes) -> None:
        self._engine.add_object_file(self._llvm.object_file.ObjectFileRef.from_data(code))
        self._loaded.add(home)


def _name(digest: str, home: str) -> str:
    """What a function is called in an object; the same one may be part of several."""
    return f"tile_{digest[:24]}_{home[:16]}"


_BEGINNING = Lock()


def host() -> Host | None:
    """The compiler, or None where it is not installed."""
    with _BEGINNING:
        return _begun()


@cache
def _begun() -> Host | None:
    try:
        return Host(cache_folder() / "tiles")
    except ImportError:
        return None
