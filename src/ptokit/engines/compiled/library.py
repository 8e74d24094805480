"""The library of tile operations: functions by what they compute, compiled when first wanted."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable
from functools import cache, cached_property
from importlib.util import find_spec

from ptokit.engines.compiled.exponentials import completed
from ptokit.engines.compiled.host import NAME, Host, Unsupported, host
from ptokit.engines.compiled.natives import Kernel

# Runs a stream: records of a function, the number of words in all, and the words it is handed.
_RUNNER = """
define void @{name}(ptr %stream, ptr %end, ptr %bases) noinline nounwind optnone {
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
}
"""


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
        signature = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
        return signature(self.function(_RUNNER))

    def function(self, text: str, *, is_hasty: bool = False) -> int:
        """Where the function {name} of a module lies, compiled if need be."""
        return self._host.addresses([self._complete(text)], is_hasty=is_hasty)[0]

    def _complete(self, text: str) -> str:
        return completed(text, self._host.features)

    def write(self, kernel: Kernel) -> None:
        """Write a function down without compiling it; raises `Unsupported` where that cannot be."""
        if kernel not in self._texts:
            self._texts[kernel] = kernel.text(NAME)

    def has(self, kernel: Kernel) -> bool:
        """Whether a function is compiled and loaded."""
        return kernel in self._addresses

    def address(self, kernel: Kernel) -> int:
        """Where the function lies, compiled if need be; raises as `write` does."""
        return self.addresses([kernel])[0]

    def addresses(self, kernels: Iterable[Kernel]) -> list[int]:
        """Those of several, which are compiled together."""
        wanted = tuple(kernels)
        new = [each for each in dict.fromkeys(wanted) if each not in self._addresses]
        if new:
            for each in new:
                self.write(each)
            # What runs them is compiled with the first: a compiler for one function mostly starts.
            texts = [*(self._texts[each] for each in new), _RUNNER]
            found = self._host.addresses([*map(self._complete, texts)])
            self._addresses |= dict(zip(new, found[:-1], strict=True))
        return [self._addresses[each] for each in wanted]


@cache
def library() -> Library | None:
    """The library of this process; None without a compiler."""
    return None if find_spec("llvmlite") is None else Library()
