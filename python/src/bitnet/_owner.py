"""Objects that own a handle, and calls that Ctrl-C can end."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Any, Callable

from . import _handles


class Owner:
    """An object that owns a handle and closes it."""

    _handle: _handles.Handle | None = None

    def close(self) -> None:
        """Frees the object after everything that uses it is closed. A second call does nothing."""
        if self._handle is not None:
            self._handle.close()

    @property
    def closed(self) -> bool:
        return self._handle is None or self._handle.closed

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()

    def __reduce__(self) -> Any:
        raise TypeError(f"a {type(self).__name__} cannot be copied or pickled")


def interruptible(work: Callable[[], Any], stop: Callable[[], None] = lambda: None,
                  discard: Callable[[Any], None] = lambda made: None) -> Any:
    """Runs work(), on another thread if this one gets signals: Ctrl-C then calls stop(), and is raised
    after work() has ended. discard() gets the result that work() returned nevertheless.

    An interrupt may come between any two instructions of this thread, and never on the other one, which
    therefore acquires whatever must be released."""
    if threading.current_thread() is not threading.main_thread():
        return work()
    ended = _handles.Flag()
    result: list[Any] = []
    failed: list[BaseException] = []
    left: list[bool] = []

    def run() -> None:
        try:
            result.append(work())
        except BaseException as why:
            failed.append(why)
        finally:
            ended.set()
        if left and result:
            discard(result[0])

    try:
        _handles.start(run)
        interrupted = wait_for(ended, stop)
        if interrupted is not None:
            raise interrupted
    except BaseException:
        left.append(True)
        stop()
        if ended.is_set and result:
            discard(result[0])
        raise
    if failed:
        raise failed[0]
    return result[0]


def wait_for(ended: _handles.Flag, stop: Callable[[], None]) -> BaseException | None:
    """Waits until `ended` is set. An interrupt calls stop() and is returned; a second one is raised at
    once, because a device may hang."""
    interrupted: BaseException | None = None
    while not ended.is_set:
        try:
            ended.wait()
        except BaseException as why:
            if interrupted is not None:
                raise
            interrupted = why
            stop()
    return interrupted
