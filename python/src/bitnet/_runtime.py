"""The backends of this machine, and the choice between them."""

from __future__ import annotations

import _thread
import json
import logging
import os
import time
from dataclasses import dataclass, field
from typing import Any, Callable, Mapping, Sequence

from . import _handles, _native, errors
from ._native import ffi, lib
from ._owner import Owner, interruptible

logger = logging.getLogger("bitnet")
logger.addHandler(logging.NullHandler())
_LEVELS = {_native.numbers["BITNET_LOG_ERROR"]: logging.ERROR,
           _native.numbers["BITNET_LOG_WARN"]: logging.WARNING,
           _native.numbers["BITNET_LOG_INFO"]: logging.INFO,
           _native.numbers["BITNET_LOG_DEBUG"]: logging.DEBUG}


@dataclass(frozen=True)
class Backend:
    """A backend that was found, and its state."""

    name: str
    stage: str  #: the last stage of loading that it reached
    code: str  #: stable: "BN-OK", or why it is not used
    reason: str
    hint: str
    report: dict[str, Any] = field(repr=False)  #: its part of bitnet_runtime_report


def _logging(log: Callable[[int, str], object] | None) -> Any:
    def on_log(user: Any, level: int, message: Any) -> None:
        with _handles.callback():
            try:
                record = _LEVELS.get(level, logging.DEBUG), _native.text_of(message)
                log(*record) if log is not None else logger.log(*record)
            except Exception:  # an error here must not reach the library
                logger.exception("the log callback of an Engine failed")

    def on_interrupt(kind: Any, error: Any, trace: Any) -> None:
        _thread.interrupt_main()  # raised in the callback, meant for the caller

    return ffi.callback("bitnet_log_callback", on_log, onerror=on_interrupt)


class Runtime(Owner):
    """`bitnet_runtime` in bitnet.h: Engine without open_model(), which models and sessions need.

    Arguments are those of bitnet_runtime_options, by the same names. `log` is called with a level of
    `logging` and a text for each message of the library, from any thread; it must not use objects of
    bitnet. Without it messages go to the logger "bitnet".
    """

    def __init__(self, device: str | None = None, *, n_threads: int | None = None,
                 require_first: bool | None = None, allow_fallback: bool | None = None,
                 manifest_dirs: Sequence[str | os.PathLike[str]] = (),
                 log: Callable[[int, str], object] | None = None, log_level: int = logging.INFO,
                 poll: int | None = None, cpu_mask: str | None = None,
                 backend_params: Mapping[str, str] | None = None,
                 allowed_backends: str | None = None,
                 trusted_keys: str | os.PathLike[str] | None = None,
                 require_signature: bool | None = None, user_backends: bool | None = None,
                 probe_cache: str | os.PathLike[str] | None = None,
                 probe_wait_ms: int | None = None, probe_fresh: bool | None = None,
                 allow_fake: bool | None = None, strict_mode: bool | None = None,
                 cpu_strict: bool | None = None):
        if log is not None and not callable(log):
            raise TypeError(f"log is a function of a level and a text, not {log!r}")
        on_log = _logging(log)
        options = _native.Options("bitnet_runtime_options").give(
            device=device, n_threads=n_threads, require_first=require_first,
            allow_fallback=allow_fallback, poll=poll, cpu_mask=cpu_mask,
            allowed_backends=allowed_backends, trusted_keys=trusted_keys,
            require_signature=require_signature, user_backends=user_backends,
            probe_cache=probe_cache, probe_wait_ms=probe_wait_ms, probe_fresh=probe_fresh,
            allow_fake=allow_fake, strict_mode=strict_mode, cpu_strict=cpu_strict, log=on_log,
            log_level=max((ours for ours, level in _LEVELS.items() if level >= log_level), default=0))
        options.give_list("manifest_dirs", "char*", [
            options.keep(ffi.new("char[]", _native.path("a folder of manifests", one)))
            for one in manifest_dirs])
        options.give_list("backend_params", "char*", [
            options.keep(ffi.new("char[]", _native.word("a setting of a backend", f"{key}={value}")))
            for key, value in (backend_params or {}).items()])

        def work() -> _handles.Handle:
            out = ffi.new("bitnet_runtime**")
            _native.call(lib.bitnet_runtime_open, options.struct, out)
            return _handles.Handle("Engine", out[0], lib.bitnet_runtime_close, keep=on_log)

        self._handle = interruptible(work, discard=_handles.Handle.close)

    def __repr__(self) -> str:
        return f"<bitnet.Engine {'closed' if self.closed else self.selection_line}>"

    def _used(self) -> Any:
        assert self._handle is not None
        return self._handle.used()

    def _call(self, function: Callable[..., int], *arguments: Any) -> None:
        """Runs a call that may take long; after a second Ctrl-C it is no longer waited for."""
        def work() -> None:
            with self._used() as runtime:
                _native.call(function, runtime, *arguments)

        interruptible(work)

    def select(self) -> None:
        """Probes the requested backends and selects one; the selection then stays."""
        self._call(lib.bitnet_runtime_select)

    def probe(self) -> None:
        """Probes every backend that was found, so that backends() reports all of them."""
        self._call(lib.bitnet_runtime_probe)

    def wait_probes(self, timeout_ms: int = 60_000) -> None:
        """Waits until slow backends have answered, too; raises Timeout if some have not."""
        ends = time.monotonic() + timeout_ms / 1000
        with self._used() as runtime:
            while True:  # Ctrl-C is handled in between
                left = max(0, round(1000 * (ends - time.monotonic())))
                try:
                    return _native.call(lib.bitnet_runtime_wait_probes, runtime, min(left, 200))
                except errors.Timeout:
                    if left <= 200:
                        raise

    @property
    def selection_line(self) -> str:
        """requested=auto detected=[cpu] selected=cpu"""
        with self._used() as runtime:
            return _native.text_from(lib.bitnet_runtime_selection_line, runtime)

    def report(self) -> dict[str, Any]:
        """The JSON of bitnet_runtime_report: the facts that are known; it opens no backend."""
        with self._used() as runtime:
            report: dict[str, Any] = _native.json_from(lib.bitnet_runtime_report, runtime)
            return report

    def backends(self) -> list[Backend]:
        return [Backend(one.get("name", ""), one.get("stage", ""), one.get("code", ""),
                        one.get("reason", ""), one.get("hint", ""), one)
                for one in self.report()["backends"]]

    def reload(self, backend: str, *, policy: str = "finish", force: bool = False,
               accept_stale: bool = False, most_old_copies: int | None = None,
               prompt_tokens: int | None = None, tolerance: float | None = None,
               canary_rows: int | None = None, canary_wait_ms: int | None = None) -> dict[str, Any]:
        """Loads the backend's file as it is now, also while sessions generate, and returns the report.

        `policy` is what open sessions do: "finish" on the old copy, "migrate", or "recompute". With
        `canary_rows` the new copy first computes that many rows of the texts that are being generated
        a second time. The reload is rejected if one differs by more than `tolerance`, or if too few
        were compared within `canary_wait_ms` (60 000).
        """
        reports: list[str] = []
        on_report = ffi.callback("void(void*, bitnet_str)",
                                 lambda user, text: reports.append(_native.piece_of(text)))
        options = _native.Options("bitnet_reload_options").give(
            policy=_native.choice("policy", "RELOAD", policy), force=force,
            accept_stale=accept_stale, most_old_copies=most_old_copies,
            prompt_tokens=prompt_tokens, tolerance=tolerance, canary_rows=canary_rows,
            canary_wait_ms=canary_wait_ms, report=on_report)
        self._call(lib.bitnet_backend_reload, _native.word("backend", backend), options.struct)
        return json.loads(reports[0]) if reports else {}
