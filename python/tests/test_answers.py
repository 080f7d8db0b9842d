"""Answers in their parts: messages in OpenAI's form go in, and come out."""

import json

import pytest

import bitnet

TOOLS = [{"type": "function", "function": {"name": "get_weather", "description": "The weather.", "parameters": {
    "type": "object", "properties": {"city": {"type": "string"}}}}}]
QUESTION = [{"role": "user", "content": "Tell me a story about a fox."}]


def test_an_answer_has_the_text_of_generate(model):
    answer = model.answer(QUESTION, max_tokens=12, temperature=0)
    same = model.generate(QUESTION, max_tokens=12, temperature=0)
    assert answer.content == same.text == answer.generation.text
    assert answer.message == {"role": "assistant", "content": same.text}
    assert (answer.reasoning, answer.tool_calls, answer.dialect) == ("", [], "none")
    parts = list(model.stream_answer(QUESTION, max_tokens=12, temperature=0))
    assert {part.kind for part in parts} == {"content"}
    assert "".join(part.text for part in parts) == same.text


def test_thinking_ends_at_its_budget(model):
    """The prompt opens the thinking, which the model does not end by itself."""
    asked = {"messages": [{"role": "user", "content": "Once upon a time <think>\n"}], "template": "raw", "temperature": 0}
    thought = model.answer(max_tokens=5, **asked)
    bound = model.answer(max_tokens=24, reasoning_budget=5, **asked)
    assert thought.reasoning and not thought.content
    assert bound.reasoning == thought.reasoning and bound.content
    whole = model.generate(asked["messages"], template="raw", temperature=0, max_tokens=24, reasoning_budget=5)
    assert whole.tokens == bound.generation.tokens
    plain = model.generate("Once", temperature=0, max_tokens=8, reasoning_budget=2, in_reasoning=True, reasoning_ends="</x>")
    assert "</x>" in plain.text


def test_a_required_tool_call_is_made(model):
    """The demo model knows nothing of tools: the grammar makes it call, and leaves no choice without parameters."""
    tools = [{"type": "function", "function": {"name": "get_time"}}]
    named = {"type": "function", "function": {"name": "get_time"}}
    answer = model.answer(QUESTION, tools=tools, tool_choice=named, dialect="tagged", temperature=0)
    assert answer.generation.stop_reason in ("eos", "grammar")
    call, = answer.tool_calls
    assert (call.name, json.loads(call.arguments)) == ("get_time", {})
    assert (answer.content, answer.message["content"], answer.dialect) == ("", None, "tagged")
    again = [*QUESTION, answer.message, {"role": "tool", "tool_call_id": call.id, "content": "noon"}]
    after = model.answer(again, tools=tools, dialect="tagged", max_tokens=4, temperature=0)
    assert after.generation.n_prompt > answer.generation.n_prompt
    with model.stream_answer(QUESTION, tools=tools, tool_choice=named, dialect="tagged", temperature=0) as parts:
        assert [part.kind for part in parts] == ["call_begin", "call_arguments", "call_end"]


def test_a_tool_without_a_bound_schema_is_reported(model):
    named = {"type": "function", "function": {"name": "get_time"}}

    def tool(**more):
        return {"type": "function", "function": {"name": "get_time", "parameters": {"type": "object", "not": {}}, **more}}

    how = {"tool_choice": named, "dialect": "hermes", "max_tokens": 4, "temperature": 0}
    with pytest.warns(bitnet.Unbound, match=r"get_time: tools\[0\]\.function\.parameters#/not: not is not supported"):
        model.answer(QUESTION, tools=[tool()], **how)
    with pytest.raises(bitnet.Unsupported, match=r"tools\[0\]\.function\.parameters#/not"):
        model.answer(QUESTION, tools=[tool(strict=True)], **how)


def test_invalid_arguments_are_rejected_by_name(model):
    with pytest.raises(bitnet.InvalidArgument, match=r"messages\[0\]\.content: expected a text or a list"):
        model.answer([{"role": "user", "content": 3}])
    with pytest.raises(bitnet.InvalidArgument, match="tool_choice: expected 'auto' or 'none'"):
        model.answer(QUESTION, tool_choice="required")
    with pytest.raises(bitnet.InvalidArgument, match="dialect: expected auto"):
        model.answer(QUESTION, dialect="klingon")
    with pytest.raises(TypeError, match="messages cannot be written as JSON"):
        model.answer([{"role": "user", "content": b"bytes"}])
    with pytest.raises(ValueError, match="leave grammar out"):
        model.answer(QUESTION, tools=TOOLS, tool_choice="required", grammar='root ::= "a"')
