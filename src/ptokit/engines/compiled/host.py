"""The computer the compiled code runs on: from LLVM text to functions, kept by their content.

A function is compiled once for this processor and found again in the next process: its object code
lies in the cache under a name made of the text, the processor and the version of the compiler.
Files appear there complete or not at all; one that does not fit its own checksum is made anew.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from ptokit.base.cache import cache_folder

# What the processor has no instruction for the compiler leaves to a function that nobody provides.
_HELPER = re.compile(rb"\0(__[a-z]\w+)\0")
_DIGEST = 32  # bytes of the checksum in front of the object code


class Unsupported(Exception):  # noqa: N818 - named after what happened
    """There is no code for this yet."""


class Host:
    """LLVM for this processor. Code stays loaded as long as the process lives."""

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
        self._folder = folder
        self._version = ".".join(map(str, llvm.llvm_version_info))
        self._addresses: dict[str, int] = {}

    def address(self, text: str, name: str, *, is_hasty: bool = False) -> int:
        """Where the function `name` of an LLVM module lies in memory.

        In haste it is compiled ten times as fast, and left as it was written.
        """
        level = "as it is" if is_hasty else ""
        digest = hashlib.sha256(
            "\0".join((self._version, self.processor, self.features, level, text)).encode()
        ).hexdigest()
        known = self._addresses.get(digest)
        if known is None:
            code = self._kept(digest)
            if code is None:
                code = self._compile(text, is_hasty)
                self._keep(digest, code)
            self._engine.add_object_file(self._llvm.object_file.ObjectFileRef.from_data(code))
            self._engine.finalize_object()
            known = self._addresses[digest] = self._engine.get_function_address(name)
        return known

    def _compile(self, text: str, is_hasty: bool) -> bytes:
        module = self._llvm.parse_assembly(text)
        module.verify()
        if is_hasty:
            return self._hasty.emit_object(module)
        options = self._llvm.create_pipeline_tuning_options(speed_level=2)
        options.loop_vectorization = options.slp_vectorization = False  # vectors are explicit
        options.loop_unrolling = False
        passes = self._llvm.create_pass_builder(self._machine, options)
        passes.getModulePassManager().run(module, passes)
        code = self._machine.emit_object(module)
        if helper := _HELPER.search(code):
            raise Unsupported(f"a helper of the compiler, {helper[1].decode()}")
        return code

    def _kept(self, digest: str) -> bytes | None:
        try:
            content = (self._folder / digest).read_bytes()
        except OSError:
            return None
        code = content[_DIGEST:]
        return code if hashlib.sha256(code).digest() == content[:_DIGEST] else None

    def _keep(self, digest: str, code: bytes) -> None:
        """A cache that cannot be written is no cache; nothing else depends on it."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=self._folder)
            with os.fdopen(handle, "wb") as file:
                file.write(hashlib.sha256(code).digest() + code)
            os.replace(name, self._folder / digest)
        except OSError:
            return


@cache
def host() -> Host | None:
    """The compiler, or None where it is not installed."""
    try:
        return Host(cache_folder() / "tiles")
    except ImportError:
        return None
