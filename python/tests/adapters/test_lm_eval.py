import numpy as np
import pytest

pytest.importorskip("lm_eval", reason="lm-eval is not installed")
import lm_eval
from lm_eval.api.instance import Instance
from lm_eval.api.registry import get_model

from bitnet.adapters.lm_eval import BitnetLM
from conftest import MODEL, PROMPT, STORY


@pytest.fixture(scope="module")
def lm(model):
    return BitnetLM(model=model)


def asked(kind, *arguments):
    return [Instance(request_type=kind, doc={}, arguments=one, idx=i) for i, one in enumerate(arguments)]


def slowly(model, context, continuation):
    """Token by token, from a distribution that is written out."""
    total, greedy = 0.0, True
    with model.session() as session:
        logits = session.eval(context).astype(np.float64)
        for token in continuation:
            p = np.exp(logits - logits.max())
            total += np.log(p[token] / p.sum())
            greedy = greedy and logits.argmax() == token
            logits = session.eval([token]).astype(np.float64)
    return total, greedy


def tolerance(model, n_tokens):
    """Of a log-likelihood that both sides compute in double from the same bits of `n_tokens` rows: a sum of n terms is
    off by n * 2^-53 of itself, which is an absolute error of its logarithm. The 64 stands for the error of exp, the
    logarithm, the subtractions and the sum over tokens."""
    return 2 * n_tokens * (model.info.n_vocab + 64) * 2**-53


def test_loglikelihood_equals_a_sum_of_single_logprobs(model, lm):
    rows = [(PROMPT, ", there was"), (PROMPT, " the moon"), ("", "Once"), (PROMPT + " ", "upon"), (PROMPT, ", there")]
    found = lm.loglikelihood(asked("loglikelihood", *rows), disable_tqdm=True)
    for (context, continuation), (score, greedy) in zip(rows, found):
        if context == PROMPT:
            whole = model.tokenize(context + continuation, special=True)
            n = len(model.tokenize(context, special=True))
            want = slowly(model, whole[:n], whole[n:])
            assert abs(score - want[0]) <= tolerance(model, len(whole) - n) and greedy == want[1]
    assert found[0][1] and found[4][1] and not found[1][1] and found[0][0] > found[1][0]


def test_rolling_loglikelihood_covers_texts_longer_than_a_context(model, lm):
    text = PROMPT + STORY
    score, = lm.loglikelihood_rolling(asked("loglikelihood_rolling", (text,)), disable_tqdm=True)
    ids = model.tokenize(text, bos=False, special=True)
    assert abs(score - slowly(model, [model.info.bos], ids)[0]) <= tolerance(model, len(ids))
    long, = lm.loglikelihood_rolling(asked("loglikelihood_rolling", (text * 30,)), disable_tqdm=True)
    assert long < 10 * score  # more than a context


def test_generate_until_ends_before_a_stop_string(lm):
    how = {"until": ["\n", "rabbit"], "max_gen_toks": 20, "do_sample": False, "temperature": 0.7}
    text, = lm.generate_until(asked("generate_until", (PROMPT, how)), disable_tqdm=True)
    assert text == STORY[:STORY.index("rabbit")]
    with pytest.raises(ValueError, match="num_beams"):
        lm.generate_until(asked("generate_until", (PROMPT, {"num_beams": 2})), disable_tqdm=True)


def test_a_chat_template_equals_format_chat_and_has_one_bos(model, lm):
    messages = [{"role": "user", "content": "Hello"}]
    text = lm.apply_chat_template(messages)
    assert text == model.format_chat(messages)
    assert lm.tok_encode(text).count(model.info.bos) == 1


def test_the_model_is_found_by_its_registered_name():
    made = get_model("bitnet").create_from_arg_string(
        f"path={MODEL},max_length=128,request=cpu", {"batch_size": 1, "device": "cuda:0"})
    assert made.max_length == 128


def test_a_task_is_scored(lm, tmp_path):
    """The harness itself, on a task of ours that needs no download."""
    (tmp_path / "data.jsonl").write_text(
        '{"start": "Once upon", "ends": [" a time", " the the"], "right": 0}\n'
        '{"start": "And they were", "ends": [" banana", " friends"], "right": 1}\n')
    task = {"task": "endings", "dataset_path": "json", "test_split": "test", "output_type": "multiple_choice",
            "dataset_kwargs": {"data_files": {"test": str(tmp_path / "data.jsonl")}},
            "doc_to_text": "{{start}}", "doc_to_choice": "{{ends}}", "doc_to_target": "{{right}}",
            "target_delimiter": "", "metric_list": [{"metric": "acc"}]}
    found = lm_eval.simple_evaluate(model=lm, tasks=[task], bootstrap_iters=0, cache_requests=False)
    assert found["results"]["endings"]["acc,none"] == 1.0
