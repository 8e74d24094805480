"""The library of tile operations: functions by what they compute, compiled when first wanted."""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Callable
from functools import cache, cached_property
from importlib.util import find_spec

from ptokit.engines.compiled.exponentials import completed
from ptokit.engines.compiled.host import Host, Unsupported, host
from ptokit.engines.compiled.natives import Kernel

# Runs a stream: records of a function, the number of words in all, and the words it is handed.
_RUNNER = """
define void @{name}(ptr %stream, ptr %end, ptr %bases) nounwind {{
entry:
  br label %head
head:
  %at = phi ptr [%stream, %entry], [%next, %body]
  %more = icmp ult ptr %at, %end
  br i1 %more, label %body, label %done
body:
  %function = load ptr, ptr %at
  %place = getelementptr i64, ptr %at, i64 1
  %size = load i64, ptr %place
  %args = getelementptr i64, ptr %at, i64 2
  call void %function(ptr %args, ptr %bases)
  %next = getelementptr i64, ptr %at, i64 %size
  br label %head
done:
  ret void
}}
"""

NAME = "{name}"  # what the function of a module is called until it is compiled


class Library:
    """Functions of tiles on this computer. The compiler is loaded when something is called."""

    def __init__(self) -> None:
        self._addresses: dict[Kernel, int] = {}
        self._texts: dict[Kernel, str] = {}

    @cached_property
    def _host(self) -> Host:
        found = host()
        if found is None:
            raise Unsupported("the compiler cannot be loaded")
        return found

    @cached_property
    def run(self) -> Callable[[int, int, int], None]:
        """What runs a stream, from one address to another, over memories that begin as listed."""
        name = "ptokit_run"
        signature = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
        return signature(self._host.address(_RUNNER.format(name=name), name))

    def function(self, text: str, *, is_hasty: bool = False) -> int:
        """Where the function {name} of a module lies, compiled if need be."""
        text = completed(text, self._host.features)
        name = f"tile_{hashlib.sha256(text.encode()).hexdigest()[:24]}"
        return self._host.address(text.replace("{name}", name), name, is_hasty=is_hasty)

    def write(self, kernel: Kernel) -> None:
        """Write a function down without compiling it; raises `Unsupported` where that cannot be."""
        if kernel not in self._texts:
            self._texts[kernel] = kernel.text(NAME)

    def has(self, kernel: Kernel) -> bool:
        """Whether a function is compiled and loaded."""
        return kernel in self._addresses

    def address(self, kernel: Kernel) -> int:
        """Where the function lies, compiled if need be; raises as `write` does."""
        found = self._addresses.get(kernel)
        if found is None:
            self.write(kernel)
            found = self._addresses[kernel] = self.function(self._texts[kernel])
        return found


@cache
def library() -> Library | None:
    """The library of this process; None without a compiler."""
    return None if find_spec("llvmlite") is None else Library()
