"""A Qwen3 checkpoint of one small layer as a Hugging Face folder, whose every number a test may set."""

import json
import os
import random
import struct

import support

N, HEADS, VOCAB = 128, 2, 260  # elements of a row, heads, tokens


def byte_texts():
    """The 256 characters by which byte-level BPE writes bytes."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in plain]
    return [chr(b) if b in plain else chr(256 + others.index(b)) for b in range(256)]


CODES = {"F32": "f", "F16": "e"}


def packed(dtype, numbers):
    if dtype == "BF16":
        return b"".join(struct.pack("<f", x)[2:] for x in numbers)
    return struct.pack(f"<{len(numbers)}{CODES[dtype]}", *numbers)


class Case(support.Case):
    """`tensors` {name: [dtype, shape, numbers]} and `config`; save() writes them."""

    def setUp(self):
        super().setUp()
        self.folder = os.path.join(self.home, "checkpoint")
        self.config = {
            "model_type": "qwen3", "hidden_act": "silu", "vocab_size": VOCAB, "hidden_size": N,
            "max_position_embeddings": 128, "num_hidden_layers": 1, "intermediate_size": N,
            "num_attention_heads": HEADS, "num_key_value_heads": HEADS, "head_dim": N // HEADS,
            "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": False}
        draw = random.Random(7)
        matrix = lambda rows, dtype="BF16": [dtype, [rows, N], [draw.choice((-0.25, 0.25, 0.5)) for _ in range(rows * N)]]
        ones = lambda n: ["F32", [n], [1.0] * n]
        layer = "model.layers.0."
        self.tensors = {"model.embed_tokens.weight": matrix(VOCAB), "lm_head.weight": matrix(VOCAB),
                        "model.norm.weight": ones(N)}
        for name in ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",
                     "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"):
            self.tensors[f"{layer}{name}.weight"] = matrix(N)
        for name in ("input_layernorm", "post_attention_layernorm"):
            self.tensors[f"{layer}{name}.weight"] = ones(N)
        for name in ("q_norm", "k_norm"):
            self.tensors[f"{layer}self_attn.{name}.weight"] = ones(N // HEADS)

    def write(self, name, content):
        return self.path("checkpoint/" + name, content if isinstance(content, (bytes, str)) else json.dumps(content))

    def write_tensors(self, tensors, name="model.safetensors"):
        header, data = {}, b""
        for key, (dtype, shape, numbers) in tensors.items():
            content = packed(dtype, numbers)
            header[key] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(content)]}
            data += content
        text = json.dumps(header).encode()
        self.write(name, struct.pack("<Q", len(text)) + text + data)

    def save(self):
        words = {"type": "ByteLevel", "use_regex": True, "add_prefix_space": False}
        self.write("config.json", self.config)
        self.write("tokenizer.json", {
            "added_tokens": [{"id": 256 + i, "content": t, "special": True} for i, t in enumerate(("<s>", "</s>"))],
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": [words]},
            "model": {"type": "BPE", "merges": ["a b"],
                      "vocab": {**{t: i for i, t in enumerate(byte_texts())}, "ab": VOCAB - 1}}})
        self.write("tokenizer_config.json", {"bos_token": "<s>", "eos_token": "</s>", "add_bos_token": False})
        self.write_tensors(self.tensors)
        return self.folder

    def set(self, name, element, number, dtype=None):
        tensor = self.tensors[name]
        tensor[0] = dtype or tensor[0]
        tensor[2][element] = number
