"""A model for lm-evaluation-harness; `python -m bitnet.adapters.lm_eval` is `lm_eval` with this model:

    python -m bitnet.adapters.lm_eval run --model bitnet --model_args path=model.gguf --tasks ...
"""

from __future__ import annotations

import hashlib
from typing import Any, Iterator

import numpy as np
from lm_eval.api.model import TemplateLM
from lm_eval.api.registry import register_model
from lm_eval.utils import get_rolling_token_windows, make_disjoint_window
from tqdm import tqdm

import bitnet


@register_model("bitnet")
class BitnetLM(TemplateLM):
    """Requests one after the other, in one session: a common begin is evaluated once."""

    def __init__(self, path: str = "", *, model: bitnet.Model | None = None, request: str | None = None,
                 max_length: int | str | None = None, max_gen_toks: int | str = 256, add_bos: bool | None = None,
                 template: str | None = None, batch_size: int | str | None = None,
                 max_batch_size: int | str | None = None, device: str | None = None):
        """Opens `path` on the backend of `request`, or uses an open `model`. The harness passes the last three to
        every model, with the device "cuda:0" by default; they are not used."""
        super().__init__()
        self.model = bitnet.Model(path, device=request) if model is None else model
        self.session = self.model.session(n_context=int(max_length or 0))
        self.max_gen_toks = int(max_gen_toks)
        self.add_bos = add_bos
        self.template = template

    # ---- text

    @property
    def eot_token_id(self) -> int:
        info = self.model.info
        found = next((one for one in (info.eos, info.eot, info.bos) if one is not None), None)
        if found is None:
            raise ValueError("the model has no token that ends a text")
        return found

    @property
    def prefix_token_id(self) -> int:
        return self.eot_token_id if self.model.info.bos is None else self.model.info.bos

    @property
    def max_length(self) -> int:
        return self.session.capacity

    @property
    def tokenizer_name(self) -> str:
        return hashlib.sha256(self.model.path.encode()).hexdigest()

    def tok_encode(self, string: str, add_special_tokens: bool | None = None, **kwargs: Any) -> list[int]:
        bos = self.add_bos if add_special_tokens is None else (None if add_special_tokens else False)
        ids = self.model.tokenize(string, bos=bos, special=True)
        # A chat's template may begin with it already.
        if len(ids) > 1 and ids[0] == ids[1] == self.model.info.bos:
            del ids[0]
        return ids

    def chat_template(self, chat_template: bool | str = False) -> str | None:
        return self.template or "model" if chat_template else None

    def apply_chat_template(self, chat_history: list[dict[str, str]], add_generation_prompt: bool = True) -> str:
        if not add_generation_prompt:
            raise NotImplementedError("bitnet's chat forms end where an answer begins")
        return self.model.format_chat(chat_history, template=self.template)

    # ---- requests

    def _rows(self, ids: list[int], first: int) -> "np.ndarray[Any, np.dtype[np.float32]]":
        """Logits after ids[first:]; tokens of ids that the session has already stay."""
        have = self.session.tokens
        same = next((i for i, (old, new) in enumerate(zip(have, ids)) if old != new), min(len(have), len(ids)))
        same = min(same, first)
        self.session.truncate(same)
        return self.session.eval(ids[same:], all_rows=True)[first - same:]

    def _score(self, context: list[int], continuation: list[int]) -> tuple[float, bool]:
        """Log-likelihood of the continuation, and whether greedy decoding would generate it."""
        whole = (context + continuation)[-(self.max_length + 1):]
        n = min(len(continuation), len(whole) - 1)
        if n < len(continuation):
            raise ValueError(f"a continuation of {len(continuation)} tokens does not fit {self.max_length}")
        rows = self._rows(whole[:-1], len(whole) - 1 - n).astype(np.float64)
        rows -= rows.max(axis=-1, keepdims=True)
        wanted = np.array(whole[-n:])
        chosen = rows[np.arange(n), wanted] - np.log(np.exp(rows).sum(axis=-1))
        return float(chosen.sum()), bool((rows.argmax(axis=-1) == wanted).all())

    def _loglikelihood_tokens(self, requests: list[tuple[tuple[str, str], list[int], list[int]]],
                              disable_tqdm: bool = False, **kwargs: Any) -> list[tuple[float, bool]]:
        results: list[tuple[float, bool]] = [(0.0, False)] * len(requests)
        # Sorted, so that requests with a common begin are neighbours.
        order = sorted(range(len(requests)), key=lambda i: requests[i][1] + requests[i][2])
        for i in tqdm(order, disable=disable_tqdm, desc="bitnet"):
            key, context, continuation = requests[i]
            results[i] = self._score(context, continuation) if continuation else (0.0, True)
            if key is not None:
                self.cache_hook.add_partial("loglikelihood", key, results[i])
        return results

    def loglikelihood_rolling(self, requests: list[Any], disable_tqdm: bool = False) -> list[float]:
        results = []
        for one in tqdm(requests, disable=disable_tqdm, desc="bitnet"):
            text, = one.args
            windows = map(make_disjoint_window, get_rolling_token_windows(
                self.tok_encode(text, add_special_tokens=False), self.prefix_token_id, self.max_length, 1))
            results.append(sum(self._score(context, wanted)[0] for context, wanted in windows))
            self.cache_hook.add_partial("loglikelihood_rolling", (text,), results[-1])
        return results

    def generate_until(self, requests: list[Any], disable_tqdm: bool = False) -> list[str]:
        results = []
        for one in tqdm(requests, disable=disable_tqdm, desc="bitnet"):
            context, given = one.args
            how = dict(self._generating(given))
            ids = self.tok_encode(context)[-max(self.max_length - how["max_tokens"], 1):]
            self.session.truncate(0)
            results.append(self.session.generate(ids, **how).text)
            self.cache_hook.add_partial("generate_until", one.args, results[-1])
        return results

    def _generating(self, given: dict[str, Any]) -> Iterator[tuple[str, Any]]:
        """bitnet's options of generation from the harness's, which are those of transformers."""
        given = dict(given)
        sampled = given.pop("do_sample", None)
        temperature = given.pop("temperature", None)
        yield "temperature", temperature or 0.0 if sampled is not False else 0.0
        until = given.pop("until", None) or []
        yield "stop", [until] if isinstance(until, str) else [text for text in until if text]
        most = [given.pop(name) for name in ("max_gen_toks", "max_new_tokens", "max_tokens") if name in given]
        yield "max_tokens", int(most[0]) if most else self.max_gen_toks
        for name in ("top_k", "top_p", "min_p", "seed"):
            if given.get(name) is not None:
                yield name, given.pop(name)
        if given:
            raise ValueError(f"bitnet does not know how to generate with {', '.join(sorted(given))}")


if __name__ == "__main__":
    from lm_eval.__main__ import cli_evaluate
    cli_evaluate()
