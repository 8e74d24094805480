"""Copies of a process that say what they find."""

from __future__ import annotations

import os
import sys
import threading
import time
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from ptokit.base.process import Copied, end_group

Send = Callable[[Any], None]


def all_of(work: Callable[[Send], None]) -> list[Any]:
    copy, said = Copied(work), list[Any]()
    try:
        while True:
            said.append(copy.receive())
    except EOFError:
        return said
    finally:
        end_group(copy)


def test_what_it_says_comes_in_order_and_whole() -> None:
    def work(send: Send) -> None:
        send("begin")
        send(b"x" * (1 << 20))  # more than a pipe holds
        send({"pid": os.getpid()})

    begin, much, last = all_of(work)
    assert (begin, len(much)) == ("begin", 1 << 20)
    assert last["pid"] != os.getpid()


def test_one_that_ends_before_it_is_done_is_heard_of() -> None:
    def work(send: Send) -> None:
        send(1)
        os._exit(3)

    assert all_of(work) == [1]


def test_nobody_waits_for_ever() -> None:
    copy = Copied(lambda send: time.sleep(60))
    started = time.monotonic()
    assert not copy.heard(0.05)
    assert not copy.heard(-1.0)
    end_group(copy)
    assert time.monotonic() - started < 30


def test_an_exception_is_shown_and_ends_it(capfd: pytest.CaptureFixture[str]) -> None:
    def work(send: Send) -> None:
        raise KeyboardInterrupt("by hand")

    assert all_of(work) == []
    assert "KeyboardInterrupt: by hand" in capfd.readouterr().err


def test_what_comes_in_is_not_for_it() -> None:
    assert all_of(lambda send: send((sys.stdin.read(), os.read(0, 1)))) == [("", b"")]


def heard(category: type[Warning]) -> list[warnings.WarningMessage]:
    with warnings.catch_warnings(record=True) as told:
        warnings.warn("of the work itself", category, stacklevel=1)
    return told


def test_copies_beside_threads_are_no_warning() -> None:
    """Python warns from 3.12 on, and whoever makes warnings errors could launch nothing."""
    done = threading.Event()
    beside = threading.Thread(target=done.wait)
    beside.start()
    try:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            # What the work itself warns of is heard as before.
            assert all_of(lambda say: say(len(heard(DeprecationWarning)))) == [1]
        assert not told
    finally:
        done.set()
        beside.join()
