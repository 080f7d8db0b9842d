"""Handles of the library: closed in any order, by any thread, each after everything that uses it.

A handle is held by the object that owns it, by the handles that were opened from it, and by each
call that uses it. The last holder that releases it closes it.
"""

from __future__ import annotations

import _thread
import atexit
import collections
import contextlib
import os
import threading
import time
import weakref
from typing import Any, Callable, Iterator

from . import errors

# Locked while counts change, never while the library is called. Reentrant: the garbage collector may
# close an object while this thread has the lock.
_counts = threading.RLock()
_all: "weakref.WeakSet[Handle]" = weakref.WeakSet()
_running: "dict[Flag, Flag]" = {}  # per thread: the event of its end, and whether it has begun
_here = threading.local()
_ending = False
# Handles released inside a callback of the library, which holds locks then; the next call closes them.
_waiting: "collections.deque[Handle]" = collections.deque()


class Handle:
    def __init__(self, kind: str, pointer: Any, close: Callable[[Any], None],
                 parent: "Handle | None" = None, keep: Any = None):
        """Takes over one hold of `parent`, see hold()."""
        self.kind = kind
        self._pointer = pointer
        self._close = close
        self._parent = parent
        self._keep = keep  # what the library points to
        self._needed: list[Handle] = []  # in addition to the parent
        self._holds = 1
        self._closed = False
        self._forked = False
        self.stop: Callable[[], None] = lambda: None  # ends calls that use it, soon
        _all.add(self)

    @property
    def closed(self) -> bool:
        return self._closed or self._forked

    def hold(self) -> Any:
        """The pointer, which is valid until let_go()."""
        if _waiting and not in_callback():
            _close_waiting()
        with _counts:
            if self._forked:
                raise errors.Closed(f"this {self.kind} was opened before the process was forked; "
                                    "open another one in the child")
            if self._closed:
                raise errors.Closed(f"this {self.kind} is closed")
            self._holds += 1
            return self._pointer

    def let_go(self) -> None:
        with _counts:
            self._holds -= 1
            if self._holds or self._forked:
                return
        if in_callback():
            _waiting.append(self)
        else:
            self._end()

    def _end(self) -> None:
        self._close(self._pointer)
        self._pointer = self._keep = None
        if self._parent is not None:
            self._parent.let_go()
        while self._needed:
            self._needed.pop().let_go()

    def need(self, other: "Handle") -> None:
        """Holds `other` until this one is closed. The caller must hold this one."""
        with _counts:
            if other not in self._needed:
                other.hold()
                self._needed.append(other)

    @contextlib.contextmanager
    def used(self) -> Iterator[Any]:
        pointer = self.hold()
        try:
            yield pointer
        finally:
            self.let_go()

    def close(self) -> None:
        """Called by the owner. Calls that use the handle end soon; then it is closed."""
        with _counts:
            if self._closed:
                return
            self._closed = True
        if not self._forked:
            self.stop()
        self.let_go()


def _close_waiting() -> None:
    with contextlib.suppress(IndexError):
        while True:
            _waiting.popleft()._end()


def in_callback() -> bool:
    return getattr(_here, "depth", 0) > 0


@contextlib.contextmanager
def callback() -> Iterator[None]:
    """Surrounds code in a callback of the library, in which the library must not be called."""
    _here.depth = getattr(_here, "depth", 0) + 1
    try:
        yield
    finally:
        _here.depth -= 1


class Flag:
    """A flag that is set once. threading.Event is written in Python, where an interrupt may come between
    any two instructions; this one waits in a single instruction of C."""

    def __init__(self) -> None:
        self.is_set = False
        self._lock = _thread.allocate_lock()
        self._lock.acquire()

    def set(self) -> None:
        if not self.is_set:
            self.is_set = True
            self._lock.release()

    def wait(self, at_most: float = threading.TIMEOUT_MAX) -> None:
        ends = time.monotonic() + at_most
        while not self.is_set and time.monotonic() < ends:
            # Other waiting threads see is_set at most a second later.
            self._lock.acquire(timeout=min(1.0, at_most))


def start(work: Callable[[], None]) -> None:
    """Runs `work` on a thread of its own. The end of the process asks it to stop, then waits for it."""
    begun, ended = Flag(), Flag()

    def run() -> None:
        begun.set()
        try:
            work()
        finally:
            _running.pop(ended, None)
            ended.set()

    _running[ended] = begun
    if _ending:
        raise errors.Closed("the process is ending")
    try:
        _thread.start_new_thread(run, ())
    except RuntimeError as why:  # otherwise the end of the process would wait for a thread that never started
        _running.pop(ended, None)
        raise errors.OutOfMemory(f"the system makes no further thread ({why}); raise its limit (`ulimit -u`, or pids.max"
                                 " of a control group), or end other processes") from None


@atexit.register
def _at_exit() -> None:
    # No callback may run in an interpreter that shuts down.
    global _ending
    _ending = True
    for handle in list(_all):
        handle.stop()
    for ended, begun in list(_running.items()):
        # An interrupt may have come before the thread was started.
        begun.wait(at_most=1)
        if begun.is_set:
            ended.wait()
    for handle in list(_all):
        handle.close()
    _close_waiting()


def _in_child() -> None:
    """The library's threads do not exist in the child, so its objects can be neither used nor closed."""
    global _counts
    _counts = threading.RLock()
    for handle in list(_all):
        handle._forked = True
    _all.clear()
    _running.clear()
    _waiting.clear()


os.register_at_fork(after_in_child=_in_child)
