"""Many requests at once, in an event loop."""

import asyncio
import gc
import math
import threading

import numpy as np
import pytest

import bitnet
from bitnet import _handles, _requests
from conftest import MODEL, PROMPT, STORY, logprob_tolerance, mean_logprob_tolerance, probabilities_tolerance


@pytest.fixture(scope="module")
def many(model):
    with bitnet.AsyncEngine(model, n_context=512, n_batch=64, deterministic=True) as one:
        yield one


@pytest.fixture
def small(model):
    """An engine whose requests are paused soon after their reader stops."""
    with bitnet.AsyncEngine(model, n_context=512, deterministic=True, event_capacity=4) as one:
        yield one


def run(work):
    """asyncio.run() that ends also where an event never comes."""
    return asyncio.run(asyncio.wait_for(work, 120))


def open_requests():
    gc.collect()
    return [one for one in list(_handles._all) if one.kind == "request" and not one.closed]


async def until(true):
    """run() bounds the wait."""
    while not true():
        await asyncio.sleep(0.005)


async def idle(engine):
    """Soon after the last event nothing is left of any request."""
    await until(lambda: engine.report()["running"] == 0 and engine.report()["kv"]["used"] == 0)
    assert open_requests() == [] and len(engine._reader) == 0 and not engine._reader._is_watching


def alone(model, prompt, **how):
    with model.session(n_context=512, deterministic=True) as session:
        return session.generate(prompt, **how)


ENDLESS = {"temperature": 0, "ignore_eos": True, "max_tokens": 480}


# ---- what comes

def test_pieces_and_the_result(model, many):
    async def main():
        request = many.generate(PROMPT, max_tokens=20, temperature=0)
        with pytest.raises(RuntimeError, match="has not ended"):
            request.result
        pieces = [piece async for piece in request]
        assert [piece async for piece in request] == []
        return pieces, request.result

    pieces, done = run(main())
    wanted = alone(model, PROMPT, max_tokens=20, temperature=0)
    assert "".join(map(str, pieces)) == done.text == str(done) == wanted.text and STORY.startswith(done.text[:60])
    assert [piece.token for piece in pieces] == done.tokens == wanted.tokens
    assert {(piece.choice, piece.logprob, piece.top_logprobs) for piece in pieces} == {(0, None, ())}
    assert isinstance(done, bitnet.Generation) and done.logprobs is None and done.top_logprobs is None
    assert (done.stop_reason, done.stop, done.choice) == ("length", None, 0)
    assert done.n_prompt == len(model.tokenize(PROMPT)) and done.generate_seconds > 0 and done.preemptions == 0


def test_twenty_concurrent_requests_give_what_each_gives_alone(model, many):
    asked = [(PROMPT * (1 + i % 5) + str(i), {"max_tokens": 3 + i % 7 * 4, "temperature": i % 2 * 0.9, "seed": i})
             for i in range(20)]

    async def main():
        done = await asyncio.gather(*(many.complete(prompt, **how) for prompt, how in asked))
        await idle(many)
        return done

    all_done = run(main())
    assert len(all_done) == len(asked)
    for (prompt, how), done in zip(asked, all_done):
        wanted = alone(model, prompt, **how)
        assert (done.tokens, done.text, done.stop_reason) == (wanted.tokens, wanted.text, wanted.stop_reason)
        assert done.seed == how["seed"]


@pytest.mark.parametrize("how, reason, stop", [
    ({"stop": ["no such word", " small"]}, "string", " small"),
    ({"stop_tokens": "comma"}, "token", "comma"),
    ({"max_tokens": 3}, "length", None),
    ({"max_tokens": -1}, "eos", None),
    ({"ignore_eos": True}, "context", None),
])
def test_stop_reasons_are_reported(model, many, how, reason, stop):
    comma, = model.tokenize(",", bos=False)
    how = {name: [comma] if value == "comma" else value for name, value in how.items()}
    done = run(many.complete(PROMPT, temperature=0, **how))
    assert (done.stop_reason, done.stop) == (reason, comma if stop == "comma" else stop)
    wanted = alone(model, PROMPT, temperature=0, **how)
    # The last token of a full context has no place in it: a session returns it nevertheless.
    assert done.tokens == wanted.tokens[:len(done.tokens)] and len(wanted.tokens) - len(done.tokens) <= 1
    assert reason == "context" or done.text == wanted.text


def test_prompts_are_texts_ids_or_messages(model, many):
    messages = [{"role": "user", "content": "Tell me a story about a <|eot_id|> fox."}]
    ids = model.tokenize_chat(messages)

    async def main():
        for one, wanted in ((PROMPT, PROMPT), (model.tokenize(PROMPT), PROMPT), (messages, ids)):
            done = await many.complete(one, max_tokens=8, temperature=0)
            assert done.tokens == alone(model, wanted, max_tokens=8, temperature=0).tokens
        done = await many.complete(messages, max_tokens=1, template="chatml", parse_special_in_messages=True)
        assert done.n_prompt == len(model.tokenize_chat(messages, template="chatml", parse_special_in_messages=True))

    run(main())


def test_the_chat_form_may_begin_the_answer(many, monkeypatch):
    monkeypatch.setattr("bitnet._async_engine.begun_answer", lambda *_: "<think>\n")

    async def main():
        request = many.generate([{"role": "user", "content": "Hi"}], max_tokens=2, n=2, seed=1)
        pieces = [piece async for piece in request]
        for i in range(2):
            first = next(piece for piece in pieces if piece.choice == i)
            assert (first.text, first.token) == ("<think>\n", None)
            assert request.results[i].text.startswith("<think>\n") and len(request.results[i].tokens) == 2

    run(main())


def test_each_of_several_answers_has_its_own_text(model, many):
    async def main():
        request = many.generate(PROMPT, max_tokens=12, seed=2**32 - 1, n=3)
        pieces = [piece async for piece in request]
        done = await many.complete(PROMPT, max_tokens=12, seed=2**32 - 1, n=3)
        one, = await many.complete(PROMPT, max_tokens=2, n=1)
        assert one.choice == 0
        return pieces, request.results, done

    pieces, streamed, done = run(main())
    assert [one.choice for one in done] == [0, 1, 2] and [one.seed for one in done] == [2**32 - 1, 0, 1]
    assert [one.tokens for one in streamed] == [one.tokens for one in done]
    for one in done:
        assert one.tokens == alone(model, PROMPT, max_tokens=12, seed=one.seed).tokens
        assert one.text == "".join(piece.text for piece in pieces if piece.choice == one.choice)
    assert done[0].tokens != done[1].tokens


def test_log_probabilities_equal_those_of_a_session(model, many):
    async def main():
        request = many.generate(PROMPT, max_tokens=6, temperature=0, top_logprobs=5)
        pieces = [piece async for piece in request]
        plain = await many.complete(PROMPT, max_tokens=6, temperature=0, logprobs=True)
        return pieces, request.result, plain

    pieces, done, plain = run(main())
    assert done.logprobs == plain.logprobs == [piece.logprob for piece in pieces] and len(done.logprobs) == 6
    assert plain.top_logprobs == [()] * 6
    for piece in pieces:
        assert len(piece.top_logprobs) == 5 and piece.top_logprobs[0] == (piece.token, piece.logprob)
        assert sum(math.exp(one.logprob) for one in piece.top_logprobs) <= 1 + probabilities_tolerance(5)
    with model.session(deterministic=True) as session:
        row = session.eval(model.tokenize(PROMPT)).astype(float)
    row -= row.max()
    wanted = -math.log(sum(map(math.exp, row)))
    assert abs(done.logprobs[0] - wanted) <= logprob_tolerance(wanted, len(row))


def test_the_best_of_several_answers(many):
    how = {"max_tokens": 12, "seed": 2**32 - 2, "temperature": 1.2}

    async def main():
        everything = await many.complete(PROMPT, n=6, logprobs=True, **how)
        best = await many.complete(PROMPT, best_of=6, **how)
        two = await many.complete(PROMPT, n=2, best_of=6, top_logprobs=2, **how)
        pieces = [piece async for piece in many.generate(PROMPT, n=2, best_of=6, **how)]
        plain = await many.complete(PROMPT, **how)
        await idle(many)
        return everything, best, two, pieces, plain

    everything, best, two, pieces, plain = run(main())
    assert plain.mean_logprob is None
    for one in everything:
        mean = sum(one.logprobs) / len(one.logprobs)
        assert abs(one.mean_logprob - mean) <= mean_logprob_tolerance(mean)
    ranked = sorted(everything, key=lambda one: -one.mean_logprob)
    for got, wanted in zip((best, *two), (ranked[0], *ranked)):
        assert (got.tokens, got.text, got.seed) == (wanted.tokens, wanted.text, wanted.seed)
        assert got.mean_logprob == wanted.mean_logprob
    assert best.logprobs is None and (best.choice, [one.choice for one in two]) == (0, [0, 1])
    assert two[1].logprobs == ranked[1].logprobs and len(two[0].top_logprobs[0]) == 2
    assert [piece.choice for piece in pieces] == sorted(piece.choice for piece in pieces)
    assert {piece.logprob for piece in pieces} == {None}


def test_log_probabilities_of_the_prompt(model, many):
    ids = model.tokenize(PROMPT)

    async def main():
        done = await many.complete(ids, max_tokens=4, temperature=0, prompt_logprobs=True)
        with_top = await many.complete(ids, max_tokens=0, top_prompt_logprobs=3, n=2)
        plain = await many.complete(ids, max_tokens=4, temperature=0)
        assert plain.prompt_logprobs is None and plain.tokens == done.tokens
        return done, with_top

    done, (first, other) = run(main())
    scores = done.prompt_logprobs
    assert [one.token for one in scores] == list(ids) and scores[0].logprob is None
    assert "".join(one.text for one in scores).strip() == PROMPT
    with model.session(n_context=512, deterministic=True) as session:
        logits = session.eval(ids, all_rows=True).astype(np.float64)
    for i, one in enumerate(scores[1:]):
        row = logits[i] - logits[i].max()
        wanted = row[one.token] - np.log(np.exp(row).sum())
        assert abs(one.logprob - wanted) <= logprob_tolerance(wanted, len(row))
        assert one.top_logprobs == () and len(first.prompt_logprobs[i + 1].top_logprobs) == 3
    assert first.tokens == [] and [one[:3] for one in first.prompt_logprobs] == [one[:3] for one in scores]
    assert other.prompt_logprobs == first.prompt_logprobs


def test_samplers_are_those_of_a_session(model, many):
    ways = ({"top_n_sigma": 0.5}, {"typical_p": 0.3}, {"xtc_probability": 1.0, "xtc_threshold": 0.05},
            {"dynatemp_range": 1.0, "dynatemp_exponent": 2.0}, {"mirostat": 1, "mirostat_tau": 2.0},
            {"mirostat": 2, "mirostat_eta": 0.5, "mirostat_tau": 2.0},
            {"dry_multiplier": 5.0, "dry_base": 2.0, "dry_allowed_length": 1, "dry_penalty_last_n": -1,
             "dry_breakers": []}, {"dry_multiplier": 5.0, "dry_allowed_length": 1, "dry_breakers": ["a", "e"]},
            {"logit_bias": {7: -5.0}, "ignore_eos": True})
    for way in ways:
        how = {"max_tokens": 30, "temperature": 1.2, "seed": 5, "ignore_eos": True, **way}

        async def main(how=how):
            return await many.complete(PROMPT, **how)

        assert run(main()).text == alone(model, PROMPT, **how).text, way
    for wrong, kind in (({"dry_breakers": "ab"}, TypeError), ({"typical_p": 2.0}, bitnet.InvalidArgument),
                        ({"dry_multiplier": 1.0, "dry_breakers": [""]}, bitnet.InvalidArgument)):
        with pytest.raises(kind):
            model.generate(PROMPT, **wrong)


def test_each_request_follows_its_own_grammar(many):
    async def main():
        kept = await asyncio.gather(*(many.complete(PROMPT, grammar=f'root ::= "{word}" | "never"', seed=i)
                                      for i, word in enumerate(("yes", "no", "perhaps"))))
        assert all(done.text in (word, "never") for done, word in zip(kept, ("yes", "no", "perhaps")))
        schema = {"enum": [True, False, None]}
        valid = await many.complete(PROMPT, json_schema=schema, n=2, seed=1)
        assert {one.text for one in valid} <= {"true", "false", "null"}
        both = await many.complete(PROMPT, grammar='root ::= " yes" | " no"', n=2)
        assert {one.text for one in both} <= {" yes", " no"}

    run(main())


def test_a_prefix_is_computed_once(model, many):
    ids = model.tokenize("A prefix that no other test has. " * 40)[:200]

    async def main():
        first = await many.complete(ids, max_tokens=2, temperature=0)
        again = await many.complete([*ids, 9], max_tokens=2, temperature=0)
        assert (first.n_cached, again.n_cached, again.n_prompt) == (0, 192, 201)  # three blocks of 64
        assert again.tokens == alone(model, [*ids, 9], max_tokens=2, temperature=0).tokens
        assert many.report()["prefix"]["found"] >= 192

    run(main())


# ---- readers that leave

def test_leaving_the_loop_cancels_the_request(model, many):
    async def main():
        async for _ in many.generate(PROMPT, **ENDLESS):
            break
        await idle(many)
        async with many.generate(PROMPT, **ENDLESS) as request:
            async for _ in request:
                break
        assert request.result.stop_reason == "cancelled" and len(request.result.tokens) < 480
        assert [piece async for piece in request] == []
        request = many.generate(PROMPT, **ENDLESS)
        await request.__anext__()
        request.cancel()
        rest = [piece async for piece in request]
        assert request.result.stop_reason == "cancelled" and request.result.tokens[1:] == [one.token for one in rest]
        never = many.generate(PROMPT)
        await never.aclose()
        with pytest.raises(bitnet.Cancelled, match="before it was submitted"):
            await never.finish()
        await idle(many)
        assert many.report()["choices"]["cancelled"] >= 3

    run(main())


def test_cancelling_a_task_cancels_its_request(many):
    async def read(request):
        async for _ in request:
            pass

    async def main():
        for begin in (lambda: many.complete(PROMPT, **ENDLESS), lambda: read(many.generate(PROMPT, **ENDLESS))):
            task = asyncio.create_task(begin())
            await until(lambda: many.report()["running"] == 1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            del task
            await idle(many)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(many.complete(PROMPT, **ENDLESS), 0.02)
        await idle(many)

    run(main())


def test_another_thread_can_cancel_a_request(many):
    async def main():
        request = many.generate(PROMPT, **ENDLESS)
        threading.Timer(0.02, request.cancel).start()
        assert (await request.finish()).stop_reason in ("cancelled", "length")

    run(main())


def test_a_request_ends_at_its_timeout(many):
    async def main():
        with pytest.raises(bitnet.Timeout) as caught:
            await many.complete(PROMPT, timeout=0.001, **ENDLESS)
        assert isinstance(caught.value, TimeoutError) and caught.value.status == bitnet.Timeout.status
        assert len((await many.complete(PROMPT, max_tokens=2, timeout=3600)).tokens) == 2
        await idle(many)

    run(main())


def test_a_slow_reader_delays_no_other_and_costs_nothing(model, small):
    """Its events fill both queues; others are answered, and the loop has nothing to do for it."""
    async def main():
        slow = small.generate(PROMPT, **ENDLESS)
        first = await slow.__anext__()
        held = slow._request
        await until(lambda: held.is_left and small.report()["paused"] == 1)
        assert len(held.pieces) == _requests.READ_AHEAD
        wakes = []
        read = small._reader._read
        small._reader._read = lambda: (wakes.append(1), read())
        await asyncio.sleep(0.2)
        assert wakes == []
        quick = await small.complete(PROMPT + " and", max_tokens=9, temperature=0)
        assert quick.tokens == alone(model, PROMPT + " and", max_tokens=9, temperature=0).tokens
        assert 0 < len(wakes) <= 2 * 10 and held.is_left
        rest = [piece async for piece in slow]
        assert [first.token, *(piece.token for piece in rest)] == slow.result.tokens
        assert slow.result.tokens == alone(model, PROMPT, **ENDLESS).tokens
        await idle(small)

    run(main())


def test_paused_requests_can_be_cancelled_closed_or_finished(small):
    async def main():
        slow = [small.generate(PROMPT + str(i), **ENDLESS) for i in range(5)]
        for one in slow:
            await one.__anext__()
        await until(lambda: all(one._request.is_left for one in slow) and small.report()["paused"] == 5)
        slow[0].cancel()
        await slow[1].aclose()
        assert slow[1].result.stop_reason == "cancelled"
        assert (await slow[2].finish()).stop_reason == "length"
        assert [piece async for piece in slow[0]] and slow[0].result.stop_reason == "cancelled"
        slow.clear()
        del one
        await idle(small)

    run(main())


def test_a_request_without_a_reader_times_out(model):
    async def main():
        async with bitnet.AsyncEngine(model, n_context=512, event_capacity=2, reader_timeout_ms=50) as engine:
            request = engine.generate(PROMPT, **ENDLESS)
            await request.__anext__()
            await until(lambda: engine.report()["choices"]["stalled"] == 1)
            read = 1
            with pytest.raises(bitnet.Timeout):
                async for _ in request:
                    read += 1
            assert read < 480
            with pytest.raises(bitnet.Timeout):
                request.result

    run(main())


def test_other_tasks_run_while_the_engine_generates(many):
    """A task that only yields runs many times while requests are read."""
    async def main():
        turns = 0
        how = {**ENDLESS, "max_tokens": 100}
        work = asyncio.ensure_future(asyncio.gather(*(many.complete(PROMPT, **how) for _ in range(4))))
        while not work.done():
            turns += 1
            await asyncio.sleep(0)
        await work
        assert turns > 20

    run(main())


# ---- what is rejected

@pytest.mark.parametrize("prompt, how, kind, words", [
    (PROMPT * 200, {}, bitnet.ContextFull, "512"),
    ([], {}, bitnet.InvalidArgument, "at least one token"),
    ([10**6], {}, bitnet.InvalidArgument, "1000000"),
    (b"bytes", {}, TypeError, "a prompt is"),
    (3, {}, TypeError, "."),
    (PROMPT, {"n": 0}, ValueError, "n is a number of answers"),
    (PROMPT, {"n": -1}, OverflowError, "n_choices is an integer from 0"),
    (PROMPT, {"n": 10**6}, bitnet.InvalidArgument, "1000000"),
    (PROMPT, {"timeout": 0}, ValueError, "seconds above 0"),
    (PROMPT, {"timeout": math.nan}, ValueError, "seconds above 0"),
    (PROMPT, {"timeout": 1e9}, OverflowError, "deadline_ms"),
    (PROMPT, {"top_logprobs": 21}, bitnet.InvalidArgument, "20"),
    (PROMPT, {"n": 3, "best_of": 2}, bitnet.InvalidArgument, "best_of 2 is less than n_choices 3"),
    (PROMPT, {"best_of": 0}, ValueError, "best_of is a number"),
    (PROMPT, {"priority": "high"}, TypeError, "priority is an integer"),
    (PROMPT, {"grammar": "root ::= "}, bitnet.InvalidArgument, "line 1"),
    (PROMPT, {"top_p": 7.0}, bitnet.InvalidArgument, "top_p"),
    ([{"role": "user"}], {}, TypeError, "role and content"),
])
def test_invalid_requests_are_rejected(many, prompt, how, kind, words):
    async def main():
        for call in (lambda: many.complete(prompt, **how), lambda: many.generate(prompt, **how).__anext__()):
            with pytest.raises(kind, match=words):
                await call()
        with pytest.raises(kind, match=words):
            async with many.generate(prompt, **how):
                pass
        await idle(many)

    run(main())


@pytest.mark.parametrize("call, kind, words", [
    (lambda m, e: bitnet.AsyncEngine("x"), TypeError, "bitnet.Model"),
    (lambda m, e: bitnet.AsyncEngine(m, max_sequnces=3), TypeError, "an AsyncEngine called max_sequnces"),
    (lambda m, e: bitnet.AsyncEngine(m, profile=True), TypeError, "profile"),
    (lambda m, e: bitnet.AsyncEngine(m, max_sequences=-1), OverflowError, "max_sequences is an integer from 0"),
    (lambda m, e: bitnet.AsyncEngine(m, kv_k="f64"), ValueError, "f16, f32, q8_0, q4_0"),
    (lambda m, e: bitnet.AsyncEngine(m, n_context=10**9), bitnet.Error, "."),
    (lambda m, e: e.generate(PROMPT, temprature=1), TypeError, "temprature"),
    (lambda m, e: run(e.complete(PROMPT, temprature=1)), TypeError, "temprature"),
    (lambda m, e: __import__("copy").copy(e), TypeError, "copied"),
])
def test_invalid_calls_raise_their_error(model, many, call, kind, words):
    with pytest.raises(kind, match=words):
        call(model, many)


def test_a_full_queue_rejects_requests(model):
    async def main():
        async with bitnet.AsyncEngine(model, n_context=512, max_sequences=1, max_waiting=2) as engine:
            work = [engine.generate(PROMPT, **ENDLESS) for _ in range(9)]
            with pytest.raises(bitnet.Busy) as caught:
                for one in work:
                    await one.__aenter__()
            assert caught.value.retryable and not caught.value.user_fixable

    run(main())


# ---- how it ends

def test_closing_the_engine_ends_running_requests(model):
    async def main(close):
        engine = bitnet.AsyncEngine(model, n_context=512)
        slow = engine.generate(PROMPT, **ENDLESS)
        await slow.__anext__()
        work = [asyncio.ensure_future(engine.complete(PROMPT, **ENDLESS)) for _ in range(40)]
        await until(lambda: engine.report()["running"] > 1)
        await close(engine)
        for done in await asyncio.gather(*work, return_exceptions=True):
            assert isinstance(done, bitnet.Cancelled) and "engine was closed" in str(done)
        with pytest.raises(bitnet.Cancelled, match="engine was closed"):
            [piece async for piece in slow]
        assert engine.closed and "closed" in repr(engine) and open_requests() == []
        slow.cancel()
        await slow.aclose()
        for use in (lambda: engine.complete(PROMPT), lambda: engine.generate(PROMPT).__anext__()):
            with pytest.raises(bitnet.Closed, match="this AsyncEngine is closed"):
                await use()
        with pytest.raises(bitnet.Closed):
            engine.report()
        await engine.aclose()
        engine.close()

    async def at_once(engine):
        engine.close()

    async def from_a_thread(engine):
        await asyncio.to_thread(engine.close)

    async def by_a_block(engine):
        async with engine:
            assert "requests" in repr(engine)

    for close in (at_once, from_a_thread, by_a_block):
        run(main(close))


def test_unreferenced_engines_and_requests_are_freed(model):
    """Neither an engine nor a request has to be closed."""
    async def main():
        request = bitnet.AsyncEngine(model, n_context=512).generate(PROMPT, **ENDLESS)
        await request.__anext__()
        engines = [one for one in list(_handles._all) if one.kind == "AsyncEngine" and one is request._engine._handle]
        assert not engines[0].closed
        del request
        await until(lambda: gc.collect() >= 0 and engines[0].closed)

    run(main())
    assert open_requests() == []


def test_an_engine_outlives_its_closed_model():
    model = bitnet.Model(MODEL, device="cpu")
    with bitnet.AsyncEngine(model) as engine:
        model.close()
        assert run(engine.complete(PROMPT, max_tokens=2, temperature=0)).text == ", there"
    with pytest.raises(bitnet.Closed):
        bitnet.AsyncEngine(model)


def test_sequential_and_concurrent_event_loops_work(many):
    async def left():
        request = many.generate(PROMPT, **ENDLESS)
        await request.__anext__()
        return request

    async def one():
        return (await many.complete(PROMPT, max_tokens=3, temperature=0)).text

    request = run(left())
    assert run(one()) == run(one()) == ", there was"
    with pytest.raises(bitnet.Cancelled, match="loop"):
        request.result

    async def other():
        async with many.generate(PROMPT, **ENDLESS) as running:
            with pytest.raises(bitnet.Busy, match="an engine for each loop"):
                await asyncio.to_thread(asyncio.run, one())
            await running.__anext__()
        assert await asyncio.to_thread(asyncio.run, one()) == ", there was"
        await idle(many)

    run(other())


def test_two_engines_generate_side_by_side(model):
    async def main():
        async with bitnet.AsyncEngine(model) as a, bitnet.AsyncEngine(model, max_sequences=2) as b:
            done = await asyncio.gather(*(one.complete(PROMPT, max_tokens=9, temperature=0) for one in (a, b) * 4))
            assert len({one.text for one in done}) == 1 and b.report()["max_sequences"] == 2

    run(main())


def test_abandoned_requests_leak_no_handles(many):
    async def main():
        before = len(_handles._all)
        for i in range(200):
            async for _ in many.generate(PROMPT + str(i), max_tokens=3):
                break
        await idle(many)
        assert len(_handles._all) <= before

    run(main())


def test_a_reader_may_be_dropped_by_any_thread(many):
    async def main():
        for _ in range(20):
            held = [many.generate(PROMPT, **ENDLESS)]
            await held[0].__anext__()
            thread = threading.Thread(target=held.clear)
            thread.start()
            await asyncio.to_thread(thread.join)
        await idle(many)

    run(main())


# ---- prompts in files

def test_a_saved_prompt_is_reused_after_a_restart(model, tmp_path):
    messages = [{"role": "user", "content": STORY * 8}]
    ids = model.tokenize_chat(messages)
    file = tmp_path / "prompt.seq"

    async def first(engine):
        done = await engine.complete(messages, max_tokens=5, temperature=0)
        saved = await engine.save(messages, file)
        with pytest.raises(bitnet.NotFound, match="no whole block"):
            await engine.save("Never said. " * 40, tmp_path / "other.seq")
        longer = [*ids, *done.tokens]
        assert await engine.save(longer, str(tmp_path / "longer.seq")) >= saved
        return done, saved

    async def second(engine):
        running = asyncio.create_task(engine.complete(PROMPT, **ENDLESS))
        restored = await engine.restore(file)
        done = await engine.complete(messages, max_tokens=5, temperature=0)
        other, = await asyncio.gather(running)
        await idle(engine)
        return restored, done, other

    def engine(**options):
        return bitnet.AsyncEngine(model, n_context=512, deterministic=True, **options)

    with engine() as one:
        done, saved = run(first(one))
    assert saved == len(ids) // 64 * 64 > 0 and not (tmp_path / "other.seq").exists()
    with engine() as one:
        restored, again, other = run(second(one))
    assert restored == saved == again.n_cached and done.n_cached == 0
    assert (again.tokens, again.text) == (done.tokens, done.text)
    assert other.tokens == alone(model, PROMPT, **ENDLESS).tokens[:480]

    async def rejected(one, words, kind, path=file):
        with pytest.raises(kind, match=words):
            await one.restore(path)

    with engine(kv_k="q8_0") as one:
        run(rejected(one, "whose kv_k is", bitnet.Unsupported))
        damaged = tmp_path / "damaged.seq"
        damaged.write_bytes(file.read_bytes()[:-7])
        run(rejected(one, "the file has", bitnet.BadData, damaged))
        run(rejected(one, "cannot be opened", bitnet.NotFound, tmp_path / "none.seq"))
        run(rejected(one, "is a str or a path, not int", TypeError, 5))
        run(rejected(one, "NUL", ValueError, "a\0b"))
    with pytest.raises(bitnet.Closed):
        run(one.restore(file))
    with pytest.raises(bitnet.Closed):
        run(one.save(ids, file))


def test_a_preference_for_an_absent_device_is_rejected_and_changes_no_text(model, many):
    async def main():
        running = asyncio.create_task(many.complete(PROMPT, max_tokens=60, temperature=0))
        await many.set_preference("no-such,cpu")
        with pytest.raises(bitnet.Unavailable, match="no-such"):
            await many.set_preference("no-such")
        with pytest.raises(TypeError, match="device"):
            await many.set_preference(5)
        return await running

    assert run(main()).tokens == alone(model, PROMPT, max_tokens=60, temperature=0).tokens
    assert many.report()["backend"] == "cpu"
    with bitnet.AsyncEngine(model) as one:
        pass
    with pytest.raises(bitnet.Closed):
        run(one.set_preference("cpu"))


def test_a_task_that_is_cancelled_leaves_its_file_to_be_written(model, tmp_path):
    ids = model.tokenize(STORY * 20)[:200]

    async def main(engine):
        await engine.complete(ids, max_tokens=1)
        task = asyncio.create_task(engine.save(ids, tmp_path / "prompt.seq"))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await until(lambda: (tmp_path / "prompt.seq").exists())
        return await engine.restore(tmp_path / "prompt.seq")

    with bitnet.AsyncEngine(model, n_context=512, deterministic=True) as engine:
        assert run(main(engine)) == len(ids) // 64 * 64


# ---- embeddings

TEXTS = [STORY[i:] for i in range(0, 60, 2)] + ["a fox"]


@pytest.mark.parametrize("pooling", ["mean", "last"])
def test_embeddings_of_many_have_the_bits_of_each_alone(model, pooling):
    async def work(engine):
        rows, one, none = await asyncio.gather(engine.embed(TEXTS * 5), engine.embed("a fox"), engine.embed([]))
        await idle(engine)
        return rows, one, none
    with bitnet.AsyncEngine(model, n_context=512, embeddings=True, pooling=pooling) as engine:
        rows, one, none = run(work(engine))
    assert none.shape == (0, model.info.n_embedding)
    expected = model.embed(TEXTS, pooling=pooling)
    assert (rows == np.concatenate([expected] * 5)).all() and (one == expected[-1]).all()


def test_invalid_embedding_requests_are_rejected(model, many):
    async def work(engine):
        with pytest.raises(bitnet.InvalidArgument, match="leave generation of the request NULL"):
            await engine.complete(PROMPT)
        with pytest.raises(bitnet.ContextFull, match="do not fit the context of 16"):
            await engine.embed(["a fox", PROMPT * 40])
        with pytest.raises(TypeError, match="a text"):
            await engine.embed([PROMPT, 5])
        with pytest.raises(bitnet.InvalidArgument, match="not opened for embeddings"):
            await many.embed(PROMPT)
        assert (await engine.embed("a fox") == model.embed("a fox")).all()
        await idle(engine)
    with bitnet.AsyncEngine(model, n_context=16, embeddings=True) as engine:
        run(work(engine))


def test_embeddings_of_a_task_that_is_cancelled_end(model):
    async def work(engine):
        task = asyncio.create_task(engine.embed([STORY] * 60))
        await until(lambda: engine.report()["steps"] > 0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await idle(engine)
    with bitnet.AsyncEngine(model, n_context=512, n_batch=16, embeddings=True) as engine:
        run(work(engine))
