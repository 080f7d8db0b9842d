"""Receipts of answers: signed statements of how they were computed (docs/reference/receipts.md)."""

from __future__ import annotations

import json
import os
from typing import Any, Mapping

from . import _native
from ._native import ffi, lib


def receipt_options(sign: bool, key_file: str | os.PathLike[str] | None, with_tokens: bool,
                    facts: Mapping[str, Any] | None) -> _native.Options:
    """bitnet_receipt_options. Without `sign` there is no signature, and `key_file` must be None."""
    if not sign and key_file is not None:
        raise ValueError("a receipt that is not signed takes no key_file")
    options = _native.Options("bitnet_receipt_options").give(
        with_tokens=with_tokens, key_file=key_file if sign else "")
    if facts is not None:
        text = json.dumps(facts, allow_nan=False).encode()
        options.struct.facts = {"data": options.keep(ffi.new("char[]", text)), "size": len(text)}
    return options


def verify_receipt(receipt: str | bytes, *, allow_unsigned: bool = False,
                   key_file: str | os.PathLike[str] | None = None,
                   trusted_keys: str | os.PathLike[str] | None = None,
                   model: str | os.PathLike[str] | None = None, skip_plugins: bool = False,
                   require_gpu_kernels: bool = False, require_fused: float = 0.0) -> dict[str, Any]:
    """Verifies a receipt, offline: the JSON of bitnet_receipt_verify, whose `valid` is the verdict and whose `findings`
    list each fault with its field. Raises BadData if the text is not a receipt.

    Accepted signatures are by `key_file`, in place of the user's own key, and by the public keys in the folder
    `trusted_keys`. The receipt must be for `model`, a file or the folder of one. `require_fused` is in per cent of
    calls."""
    text = receipt.encode("utf-8", "surrogatepass") if isinstance(receipt, str) else bytes(receipt)
    how = _native.Options("bitnet_receipt_check").give(
        allow_unsigned=allow_unsigned, key_file=key_file, trusted_keys=trusted_keys, model=model,
        skip_plugins=skip_plugins, require_gpu_kernels=require_gpu_kernels, require_fused=require_fused)
    data = ffi.new("char[]", text)
    verdict: dict[str, Any] = _native.json_from(
        lib.bitnet_receipt_verify, {"data": data, "size": len(text)}, how.struct)
    return verdict
