import asyncio

import pytest

pytest.importorskip("langchain_core", reason="langchain-core is not installed")
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate

from bitnet.adapters.langchain import Bitnet, ChatBitnet
from conftest import PROMPT, STORY

HOW = {"max_tokens": 20, "temperature": 0}
MESSAGES = [SystemMessage("You tell stories."), HumanMessage("Tell me a story about a fox.")]
PLAIN = [{"role": "system", "content": "You tell stories."},
         {"role": "user", "content": "Tell me a story about a fox."}]


def test_a_chat_has_the_texts_of_the_model(model):
    chat = ChatBitnet(model=model, generating=HOW)
    want = model.generate(PLAIN, **HOW)
    done = chat.invoke(MESSAGES)
    assert isinstance(done, AIMessage) and done.text == want.text
    assert done.usage_metadata["output_tokens"] == 20 and done.response_metadata["stop_reason"] == "length"
    pieces = list(chat.stream(MESSAGES))
    assert "".join(piece.text for piece in pieces) == want.text and len(pieces) > 10
    assert sum(pieces[1:], pieces[0]).usage_metadata == done.usage_metadata
    assert asyncio.run(chat.ainvoke(MESSAGES)).text == want.text

    async def stream():
        return "".join([piece.text async for piece in chat.astream(MESSAGES)])

    assert asyncio.run(stream()) == want.text
    assert [one.text for one in chat.batch([MESSAGES, MESSAGES])] == [want.text] * 2


def test_stop_and_parts(model):
    chat = ChatBitnet(model=model, generating=HOW)
    whole = chat.invoke(MESSAGES).text
    word = whole.split()[3]
    assert chat.invoke(MESSAGES, stop=[word]).text == whole[:whole.index(word)]
    assert len(chat.invoke(MESSAGES, max_tokens=3).text) < len(whole)
    parts = HumanMessage([{"type": "text", "text": "Tell me a story "}, {"type": "text", "text": "about a fox."}])
    assert chat.invoke([MESSAGES[0], parts]).text == whole
    with pytest.raises(ValueError, match="text only"):
        chat.invoke([HumanMessage([{"type": "image", "url": "x"}])])
    with pytest.raises(ValueError, match="tool"):
        chat.invoke([ToolMessage("x", tool_call_id="1")])


def test_a_model_in_a_chain_answers(model):
    chain = (ChatPromptTemplate.from_messages([("system", "You tell stories."), ("human", "{wish}")])
             | ChatBitnet(model=model, generating=HOW) | StrOutputParser())
    assert chain.invoke({"wish": "Tell me a story about a fox."}) == model.generate(PLAIN, **HOW).text


def test_invoke_stream_and_ainvoke_give_the_same_text(model):
    llm = Bitnet(model=model, generating=HOW)
    text = llm.invoke(PROMPT)
    assert text.startswith(STORY)
    assert "".join(llm.stream(PROMPT)) == text == asyncio.run(llm.ainvoke(PROMPT))
    assert "rabbit" not in llm.invoke(PROMPT, stop=["rabbit"])
