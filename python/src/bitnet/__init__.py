"""Runs ternary (1.58-bit) language models on whatever this machine has.

>>> import bitnet
>>> with bitnet.Model("model.gguf") as model:
...     print(model.generate("Once upon a time", max_tokens=6, temperature=0))
, there was a small rabbit
"""

from . import _native
from ._answers import Answer, AnswerPart, AnswerStream, ToolCall
from ._asked import Generating, Prompt, check_grammar, check_json_schema
from ._async_engine import AsyncEngine, AsyncEngineOptions, AsyncRequest, Requesting
from ._chat import Chat
from ._engine import Engine
from ._generation import AsyncStream, Generation, Stream
from ._model import Model
from ._model_file import ModelInfo, convert, inspect
from ._receipts import verify_receipt
from ._requests import Completion, Logprob, Piece, PromptToken
from ._runtime import Backend
from ._session import Session, SessionOptions
from ._text import Message
from .errors import (BadData, Busy, Cancelled, Closed, ContextFull, ContextPoisoned, DeviceLost, Error,
                     FileError, Forbidden, Incompatible, Internal, InvalidArgument, LeftOut, NotFound,
                     OutOfDeviceMemory, OutOfMemory, Rejected, Timeout, Unavailable, Unbound, Unsupported)

__version__: str = _native.text_of(_native.lib.bitnet_version())

__all__ = [
    "Answer", "AnswerPart", "AnswerStream", "AsyncEngine", "AsyncEngineOptions", "AsyncRequest", "AsyncStream", "Backend",
    "BadData", "Busy", "Cancelled", "Chat", "Closed", "Completion", "ContextFull", "ContextPoisoned", "DeviceLost", "Engine", "Error", "FileError", "Forbidden",
    "Generating", "Generation", "Incompatible", "Internal", "InvalidArgument", "LeftOut", "Logprob", "Message", "Model",
    "ModelInfo", "NotFound", "OutOfDeviceMemory", "OutOfMemory", "Piece", "Prompt", "PromptToken", "Rejected", "Requesting",
    "Session", "SessionOptions", "Stream", "Timeout", "ToolCall", "Unavailable", "Unbound", "Unsupported",
    "check_grammar", "check_json_schema", "convert", "inspect", "verify_receipt",
]
