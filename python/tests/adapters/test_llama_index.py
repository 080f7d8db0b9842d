import asyncio

import pytest

pytest.importorskip("llama_index.core", reason="llama-index-core is not installed")
from llama_index.core.base.llms.types import ChatMessage, ImageBlock, MessageRole
from llama_index.core.chat_engine import SimpleChatEngine

from bitnet.adapters.llama_index import BitnetLLM
from conftest import PROMPT, STORY

HOW = {"max_tokens": 20, "temperature": 0}
MESSAGES = [ChatMessage("You tell stories.", role="system"), ChatMessage("Tell me a story about a fox.")]
PLAIN = [{"role": "system", "content": "You tell stories."},
         {"role": "user", "content": "Tell me a story about a fox."}]


def test_complete_and_its_streams_give_the_same_text(model):
    llm = BitnetLLM(model, HOW)
    done = llm.complete(PROMPT)
    assert done.text.startswith(STORY) and done.raw["stop_reason"] == "length"
    pieces = list(llm.stream_complete(PROMPT))
    assert pieces[-1].text == done.text == "".join(piece.delta for piece in pieces)
    assert asyncio.run(llm.acomplete(PROMPT)).text == done.text

    async def stream():
        return [piece async for piece in await llm.astream_complete(PROMPT)][-1].text

    assert asyncio.run(stream()) == done.text
    assert len(llm.complete(PROMPT, max_tokens=3).text) < len(done.text)


def test_a_chat_has_the_texts_of_the_model(model):
    llm = BitnetLLM(model, HOW)
    want = model.generate(PLAIN, **HOW).text
    assert llm.chat(MESSAGES).message.content == want
    pieces = list(llm.stream_chat(MESSAGES))
    assert pieces[-1].message.content == want == "".join(piece.delta for piece in pieces)
    assert asyncio.run(llm.achat(MESSAGES)).message.content == want

    async def stream():
        return [piece async for piece in await llm.astream_chat(MESSAGES)][-1].message.content

    assert asyncio.run(stream()) == want
    with pytest.raises(ValueError, match="tool"):
        llm.chat([ChatMessage("x", role=MessageRole.TOOL)])
    with pytest.raises(ValueError, match="text only"):
        llm.chat([ChatMessage(blocks=[ImageBlock(url="http://example.org/x.png")])])


def test_a_chat_engine_of_llama_index_answers(model):
    llm = BitnetLLM(model, HOW)
    assert llm.metadata.context_window == 512 and llm.metadata.is_chat_model
    engine = SimpleChatEngine.from_defaults(llm=llm, system_prompt="You tell stories.")
    assert str(engine.chat("Tell me a story about a fox.")) == model.generate(PLAIN, **HOW).text
