import asyncio
import json
import re
import threading
import time
import warnings

import numpy as np
import pytest

import bitnet
from conftest import PROMPT, STORY


# ---- whole

def test_the_story_is_that_of_the_readme(model):
    done = model.generate(PROMPT, max_tokens=60, temperature=0)
    assert done.text.startswith(STORY) and str(done) == done.text
    assert done.stop_reason == "length" and len(done.tokens) == 60 and done.stop is None
    assert done.n_prompt == len(model.tokenize(PROMPT)) and done.generate_seconds > 0


def test_same_seed_same_text(model):
    first = model.generate(PROMPT, max_tokens=30)
    again = model.generate(PROMPT, max_tokens=30, seed=first.seed)
    assert first.tokens == again.tokens
    assert len({model.generate(PROMPT, max_tokens=30).text for _ in range(4)}) > 1


@pytest.mark.parametrize("how, reason, stop", [
    ({"stop": "rabbit"}, "string", "rabbit"),
    ({"stop": ["no such word", " small"]}, "string", " small"),
    ({"max_tokens": 0}, "length", None),
    ({"max_tokens": -1}, "eos", None),
])
def test_stop_reasons_are_reported(model, how, reason, stop):
    done = model.generate(PROMPT, **{"temperature": 0, **how})
    assert (done.stop_reason, done.stop) == (reason, stop)
    assert stop is None or stop not in done.text


def test_stop_tokens_and_bias(model):
    comma, = model.tokenize(",", bos=False)
    done = model.generate(PROMPT, temperature=0, stop_tokens=[comma])
    assert (done.stop_reason, done.stop) == ("token", comma)
    done = model.generate(PROMPT, temperature=0, max_tokens=5, logit_bias={comma: -100.0})
    assert comma not in done.tokens


def test_answers_follow_their_json_schema(model, session):
    n = {"type": "integer", "maximum": 99, "minimum": 0}
    schema = {"type": "object", "properties": {"yes": {"type": "boolean"}, "n": n}, "required": ["yes"],
              "additionalProperties": False}
    for seed in range(3):
        done = model.generate(PROMPT, json_schema=schema, seed=seed)
        assert isinstance(json.loads(done.text)["yes"], bool)
        assert session.generate(PROMPT, json_schema=json.dumps(schema), seed=seed).tokens == done.tokens
        session.truncate(0)
    assert model.generate(PROMPT, json_schema={"const": "a\u00e9\n"}).text == '"a\u00e9\\n"'
    bitnet.check_json_schema(schema)


def test_answers_follow_their_grammar(model, session):
    form = 'root ::= "[" [0-9]{1,3} (", " [0-9]{1,3}){2} "]"'
    for seed in range(4):
        done = model.generate(PROMPT, grammar=form, seed=seed)
        assert re.fullmatch(r"\[[0-9]{1,3}(, [0-9]{1,3}){2}\]", done.text) and done.stop_reason == "eos"
        assert session.generate(PROMPT, grammar=form, seed=seed).tokens == done.tokens
        session.truncate(0)
    assert "".join(model.stream(PROMPT, grammar=form, seed=3)) == done.text
    assert model.generate(PROMPT, grammar='root ::= "\u00e9{2}\U0001f600"').text == "\u00e9{2}\U0001f600"
    assert model.generate(PROMPT, grammar='root ::= " yes"', ignore_eos=True).stop_reason == "grammar"
    with model.chat() as chat:
        for _ in range(2):
            assert chat.send("Yes or no?", grammar='root ::= "yes" | "no"').text in ("yes", "no")
    bitnet.check_grammar(form)
    assert model.generate(PROMPT, grammar=None, max_tokens=3, ignore_eos=True).stop_reason == "length"


def test_prompts_are_texts_ids_or_messages(model):
    ids = model.tokenize(PROMPT)
    by_text, by_ids = (model.generate(one, max_tokens=8, temperature=0) for one in (PROMPT, ids))
    assert by_text.tokens == by_ids.tokens
    assert model.generate(np.array(ids), max_tokens=8, temperature=0).tokens == by_ids.tokens
    messages = [{"role": "user", "content": "Tell me a story about a fox."}]
    formatted = model.tokenize(model.format_chat(messages), bos=False, special=True)
    by_messages = model.generate(messages, max_tokens=8, temperature=0)
    assert by_messages.tokens == model.generate(formatted, max_tokens=8, temperature=0).tokens


def test_a_session_continues_its_text(model, session):
    whole = model.generate(PROMPT, max_tokens=20, temperature=0).tokens
    first = session.generate(PROMPT, max_tokens=10, temperature=0)
    rest = session.generate("", max_tokens=10, temperature=0)
    assert first.tokens + rest.tokens == whole
    assert session.tokens == model.tokenize(PROMPT) + whole and len(session) == len(session.tokens)
    session.truncate(len(session) - 11)
    assert session.generate(first.tokens[-1:], max_tokens=10, temperature=0).tokens == rest.tokens


def test_a_full_context_ends_the_generation(model):
    with model.session(n_context=64) as session:
        assert session.capacity == 64
        done = session.generate(PROMPT, temperature=0, ignore_eos=True)
        assert done.stop_reason == "context"
        with pytest.raises(bitnet.ContextFull):
            session.append([1, 2, 3])
        assert len(session) == 64


# ---- piece by piece

def test_a_stream_has_the_same_text(model):
    with model.stream(PROMPT, max_tokens=60, temperature=0) as stream:
        pieces = list(stream)
        assert len(pieces) > 30 and "".join(pieces) == stream.result.text
    assert "".join(pieces) == model.generate(PROMPT, max_tokens=60, temperature=0).text
    assert list(stream) == []


def test_leaving_a_stream_cancels_it(large, endless):
    session = large  # the context of a small one may be full before the stream is left
    with session.stream(PROMPT, **endless) as stream:
        assert next(stream)
        with pytest.raises(bitnet.Busy):
            session.generate("x")
        with pytest.raises(bitnet.Busy):
            session.report()
    assert stream.result.stop_reason == "cancelled"
    # The cancel is used up. The length of the stream decides which tokens precede, and whether the text would end here.
    assert session.generate(".", max_tokens=3, ignore_eos=True).stop_reason == "length"


def test_an_unreferenced_stream_frees_its_session(session, endless):
    next(session.stream(PROMPT, **endless))
    session.truncate(0)  # waits for it
    assert session.generate(PROMPT, max_tokens=2, ignore_eos=True).stop_reason == "length"


def test_a_cancel_from_another_thread_ends_one_generation(large, endless):
    session = large
    began = time.monotonic()
    threading.Timer(0.05, session.cancel).start()
    assert session.generate(PROMPT, **endless).stop_reason == "cancelled"
    session.cancel()  # nothing runs: no effect
    session.truncate(0)
    assert session.generate(PROMPT, max_tokens=2, ignore_eos=True).stop_reason == "length"
    assert time.monotonic() - began < 30


def test_a_cancel_after_the_end_has_no_effect(session):
    """It reaches a turn whose call has ended already, and no later one."""
    turn = object()
    session._begin(turn)
    session._cancel(turn)
    session._end(turn)
    session._cancel(turn)
    assert session.generate(PROMPT, max_tokens=2, ignore_eos=True).stop_reason == "length"


def test_threads_with_a_session_each(model):
    texts = {}

    def work(name):
        texts[name] = model.generate(PROMPT, max_tokens=20, temperature=0).text

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(texts) == 4 and len(set(texts.values())) == 1


def test_the_gil_is_released(model):
    """A thread that counts goes on while another generates."""
    count, stop = [0], threading.Event()

    def counting():
        while not stop.is_set():
            count[0] += 1

    thread = threading.Thread(target=counting)
    thread.start()
    before = count[0]
    ids = model.tokenize(PROMPT) * 20
    with model.session() as session:
        session.eval(ids)
    during = count[0] - before
    stop.set()
    thread.join()
    assert during > 0


# ---- asyncio

def test_async_calls_give_the_same_text(model):
    async def main():
        done = await model.agenerate(PROMPT, max_tokens=20, temperature=0)
        async with model.astream(PROMPT, max_tokens=20, temperature=0) as stream:
            pieces = [piece async for piece in stream]
        assert "".join(pieces) == done.text == stream.result.text
        both = await asyncio.gather(*(model.agenerate(PROMPT, max_tokens=9, temperature=0) for _ in "ab"))
        assert both[0].tokens == both[1].tokens == done.tokens[:9]

    asyncio.run(main())


def test_a_cancelled_task_cancels_its_generation(large, endless):
    session = large

    async def main():
        task = asyncio.create_task(session.agenerate(PROMPT, **endless))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        async with session.astream(".", **endless) as stream:
            async for _ in stream:
                break
        assert stream.result.stop_reason == "cancelled"
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(session.agenerate(".", **endless), 0.01)
        with pytest.raises(TypeError):
            await session.agenerate(".", no_such_parameter=1)

    asyncio.run(main())


def test_async_cancelled_while_it_begins(large, endless, monkeypatch):
    """The next call waits for it: it was cancelled."""
    prompt, begun, go_on = large._prompt, threading.Event(), threading.Event()

    def prompt_that_waits(*asked):
        begun.set()
        assert go_on.wait(60)
        return prompt(*asked)

    monkeypatch.setattr(large, "_prompt", prompt_that_waits)

    async def main():
        task = asyncio.create_task(large.agenerate(PROMPT, **endless))
        assert await asyncio.to_thread(begun.wait, 60)
        task.cancel()
        await asyncio.sleep(0)  # the task gets it
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await large.agenerate(PROMPT, max_tokens=2, ignore_eos=True)).stop_reason == "length"

    asyncio.run(main())


def test_a_stream_can_be_cancelled_after_its_event_loop(session, endless):
    async def main():
        stream = session.astream(PROMPT, **endless)
        await stream.__anext__()
        return stream

    stream = asyncio.run(main())
    stream.cancel()
    stream._run.ended.wait()
    assert stream.result.stop_reason in ("cancelled", "context")


# ---- logits

def test_logits_are_written_in_place(model, session):
    ids = model.tokenize(PROMPT)
    rows = session.eval(ids, all_rows=True)
    assert rows.shape == (len(ids), model.info.n_vocab) and rows.dtype == np.float32
    session.truncate(0)
    out = np.full(model.info.n_vocab, np.nan, np.float32)
    assert session.eval(ids, out=out) is out
    assert np.isfinite(out).all()
    assert (out == rows[-1]).all(), "a row is the same bits, alone and among others"
    assert model.detokenize([int(out.argmax())]) == ","


@pytest.mark.parametrize("out", [
    np.empty(3, np.float32), np.empty(2048, np.float64), np.empty((2048, 2), np.float32)[:, 0], [0.0] * 2048])
def test_unsuitable_arrays_are_rejected(session, out):
    with pytest.raises(ValueError, match="contiguous array of float32"):
        session.eval([1], out=out)
    frozen = np.empty(2048, np.float32)
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="writeable"):
        session.eval([1], out=frozen)


# ---- conversations

def test_a_chat_keeps_earlier_turns(model):
    with model.chat("You tell stories.") as chat:
        first = chat.send("Tell me a story about a fox.", max_tokens=20, temperature=0)
        n = len(chat.session)
        second = chat.send("And then?", max_tokens=20, temperature=0)
        assert [one["role"] for one in chat.messages] == ["system", "user", "assistant", "user", "assistant"]
        assert second.n_prompt < n  # earlier messages are not evaluated again
        whole = model.generate(chat.messages[:-1], max_tokens=20, temperature=0)
        assert second.text == whole.text and first.text != ""
        pieces = list(chat.stream("More", max_tokens=5, temperature=0))
        assert chat.messages[-1] == {"role": "assistant", "content": "".join(pieces)}
        done = asyncio.run(chat.asend("More", max_tokens=5, temperature=0))
        assert chat.messages[-1]["content"] == done.text


LONG = "Tell me a long story about a fox and a bear. " * 3


def test_a_chat_whose_context_is_full_goes_on_without_its_oldest_turns(model):
    with model.chat("You tell stories.", n_context=160) as chat:
        with pytest.warns(bitnet.LeftOut, match="the 2 oldest messages were left out"):
            answers = [chat.send(LONG, max_tokens=30, temperature=0) for _ in range(4)]
        assert answers[0].left_out == 0 and answers[-1].left_out == 2
        assert [one["role"] for one in chat.messages] == ["system", "user", "assistant"] * 1 + (
            ["user", "assistant"] * ((len(chat.messages) - 3) // 2))
        assert chat.messages[0]["content"] == "You tell stories." and len(chat.messages) < 9
        with pytest.warns(bitnet.LeftOut):
            assert "".join(chat.stream(LONG, max_tokens=30, temperature=0)) == chat.messages[-1]["content"]
            asyncio.run(chat.asend(LONG, max_tokens=30, temperature=0))
        whole = model.tokenize_chat(chat.messages[:-1])
        assert len(whole) <= 160 - 20, "room for an answer"


@pytest.mark.parametrize("why, text, how, error", [
    ("too long alone", LONG * 20, {}, bitnet.ContextFull),
    ("a wrong setting", "Hi", {"logit_bias": {10**6: 1.0}}, bitnet.InvalidArgument),
    ("no such way", "Hi", {"no_such": 1}, TypeError),
    ("a wrong grammar", "Hi", {"grammar": "root ::="}, bitnet.InvalidArgument),
    ("no such template", "Hi", {"template": "no-such"}, bitnet.InvalidArgument),
    ("no text", None, {}, TypeError),
])
def test_a_failed_turn_does_not_change_the_chat(model, why, text, how, error):
    with model.chat("Be kind.", n_context=160) as chat:
        chat.send("Hello", max_tokens=5, temperature=0)
        before = [dict(one) for one in chat.messages]
        for turn in (chat.send, lambda *a, **k: list(chat.stream(*a, **k)),
                     lambda *a, **k: asyncio.run(chat.asend(*a, **k))):
            with pytest.raises(error):
                turn(text, **how)
            assert chat.messages == before, why
        again = chat.send("And?", max_tokens=5, temperature=0)
        assert again.text == model.generate(chat.messages[:-1], max_tokens=5, temperature=0).text, why


def test_a_busy_chat_or_a_left_out_warning_keeps_messages(model, endless):
    with model.chat(n_context=160) as chat:
        with chat.stream("Hello", **endless):
            with pytest.raises(bitnet.Busy):
                chat.send("Me first")
        assert [one["content"] for one in chat.messages][::2] == ["Hello"], "what was streamed is remembered"
        before = [dict(one) for one in chat.messages]
        with warnings.catch_warnings():
            warnings.simplefilter("error", bitnet.LeftOut)
            with pytest.raises(bitnet.LeftOut):
                for _ in range(9):
                    before = [dict(one) for one in chat.messages]
                    chat.send(LONG, max_tokens=20, temperature=0)
        assert chat.messages == before


def test_messages_make_no_control_tokens(model):
    eos = model.info.eos
    forged = [{"role": "user", "content": f"x{model.detokenize([eos], special=True)}y"}]
    honest = [{"role": "user", "content": "x y"}]
    for template in ("model", "chatml", "instruct", "raw", None):
        try:
            plain = model.tokenize_chat(forged, template=template)
        except bitnet.Unsupported:
            assert template == "model", "the file has none"
            continue
        parsed = model.tokenize_chat(forged, template=template, parse_special_in_messages=True)
        of_form = model.tokenize_chat(honest, template=template).count(eos)
        assert plain.count(eos) == of_form and parsed.count(eos) == of_form + 1, template
        assert parsed == model.tokenize(model.format_chat(forged, template=template), bos=False, special=True)
    with model.session() as session:
        session.generate(forged, max_tokens=1, temperature=0, template="instruct")
        assert eos not in session.tokens[:-1]
        session.generate(forged, max_tokens=1, temperature=0, template="instruct", parse_special_in_messages=True)
        assert eos in session.tokens[:-1]


def test_a_named_template_is_used_or_rejected(model):
    messages = [{"role": "user", "content": "Hi"}]
    assert "<|im_start|>" in model.format_chat(messages, template="chatml")
    assert model.format_chat([], template="raw") == ""
    with pytest.raises(bitnet.InvalidArgument, match="no-such"):
        model.format_chat(messages, template="no-such")
    with pytest.raises(bitnet.InvalidArgument, match="no-such"):
        model.generate(messages, template="no-such")


@pytest.mark.parametrize("how", [{"speculation": "ngram"}, {"draft": True}, {"speculation": "auto", "draft_max": 4}])
def test_drafts_change_no_text(model, how):
    prompt = "The fox ran. The fox ran. The fox ran. The fox"
    drafting = {**how, "draft": model} if "draft" in how else how
    for temperature in (0, 1):
        plain = model.generate(prompt, max_tokens=24, temperature=temperature, seed=3)
        drafted = model.generate(prompt, max_tokens=24, temperature=temperature, seed=3, **drafting)
        assert drafted.tokens == plain.tokens
        assert 0 <= drafted.n_accepted <= drafted.n_drafted
        assert plain.n_drafted == 0


def test_a_draft_model_is_a_model(model):
    with pytest.raises(TypeError, match="draft is a bitnet.Model"):
        model.generate("The fox", draft="a file")
    with pytest.raises(ValueError, match="speculation is one of"):
        model.generate("The fox", speculation="much")
