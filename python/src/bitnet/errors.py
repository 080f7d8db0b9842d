"""Errors of the library's calls: one class for each status of bitnet/abi/base.h."""

from __future__ import annotations


class Error(Exception):
    """A call failed. The message is the library's: what was expected, what was found, what to do.

    A class has the `retryable` and `user_fixable` of its status. An error of the library has those of the error's
    flags, to which a backend may have added its own.
    """

    status: int = 0  #: BITNET_* of bitnet/abi/base.h; 0 if the library was not called
    where: str = ""  #: the C function that failed
    domain: str = ""  #: the domain of `native_code`: "errno", "vulkan" ...
    native_code: int = 0
    retryable: bool = False  #: the same call may succeed later, without a change
    user_fixable: bool = False  #: a user can remove the cause: a file, a setting, a driver


class InvalidArgument(Error, ValueError):
    """The caller's mistake; retrying is pointless."""

    status = 1


class Unsupported(Error):
    """A valid request that this model, backend or version cannot do."""

    status = 2


class Unavailable(Error):
    """No driver, device or backend here."""

    status = 3
    user_fixable = True


class Incompatible(Error):
    """A file or a backend of an incompatible version."""

    status = 4
    user_fixable = True


class OutOfMemory(Error, MemoryError):
    status = 5
    retryable = user_fixable = True


class OutOfDeviceMemory(Error, MemoryError):
    status = 6
    retryable = user_fixable = True


class BadData(Error, ValueError):
    """A model or other outside data is malformed."""

    status = 7
    user_fixable = True


class DeviceLost(Error):
    status = 8
    retryable = True


class ContextPoisoned(Error):
    """Only a new process helps."""

    status = 9


class Cancelled(Error):
    status = 10


class Timeout(Error, TimeoutError):
    status = 11
    retryable = True


class NotFound(Error, FileNotFoundError):
    status = 12
    user_fixable = True


class LeftOut(UserWarning):
    """A warning: the context of a Chat is full, and its oldest messages were left out."""


class Unbound(UserWarning):
    """A warning: the library cannot enforce a tool's schema, so a required call may have any arguments."""


class Rejected(Error):
    """A plugin broke the rules of inspection or trust."""

    status = 13
    user_fixable = True


class ContextFull(Error):
    """The tokens do not fit the context; the session is as it was."""

    status = 14
    user_fixable = True


class Internal(Error):
    """A bug of bitnet."""

    status = 15


class FileError(Error, OSError):
    """A file cannot be written."""

    status = 16
    user_fixable = True


class Forbidden(Error, PermissionError):
    """The user's own rules do not allow it."""

    status = 17
    user_fixable = True


class Closed(Error, ValueError):
    """The object is closed, or was opened before this process was forked."""


class Busy(Error, RuntimeError):
    """Another call uses the session."""

    status = 18
    retryable = True


BY_STATUS = {kind.status: kind for kind in Error.__subclasses__() if kind.status}
