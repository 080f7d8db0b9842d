"""Receipts of answers, made and judged."""

import base64
import json

import pytest

import bitnet


@pytest.fixture(name="answered")
def answered_session(model, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))  # where the user's own key is made
    with model.session() as session:
        session.generate("Once upon a time", max_tokens=4, temperature=0)
        yield session


def statement(receipt):
    return json.loads(base64.b64decode(json.loads(receipt)["payload"]))


def test_a_receipt_is_valid(answered):
    receipt = answered.receipt(with_tokens=True, facts={"program": {"who": "a test"}})
    verdict = bitnet.verify_receipt(receipt)
    assert verdict["valid"] and verdict["findings"] == []
    predicate = statement(receipt)["predicate"]
    assert predicate["program"] == {"who": "a test"}
    assert len(predicate["output"]["ids"]) == 4


def test_a_changed_receipt_is_invalid(answered):
    receipt = json.loads(answered.receipt())
    changed = statement(json.dumps(receipt))
    changed["predicate"]["output"]["tokens"] = 3
    receipt["payload"] = base64.b64encode(json.dumps(changed).encode()).decode()
    verdict = bitnet.verify_receipt(json.dumps(receipt))
    assert not verdict["valid"]
    assert {finding["rule"] for finding in verdict["findings"]} >= {"signature"}


def test_an_unsigned_receipt_is_rejected_unless_allowed(answered):
    receipt = answered.receipt(sign=False)
    assert not bitnet.verify_receipt(receipt)["valid"]
    assert bitnet.verify_receipt(receipt.encode(), allow_unsigned=True)["valid"]
    with pytest.raises(ValueError, match="not signed"):
        answered.receipt(sign=False, key_file="key.pem")


def test_required_gates_and_the_model_are_checked(answered, tmp_path):
    receipt = answered.receipt()
    needs = bitnet.verify_receipt(receipt, require_gpu_kernels=True)
    assert not needs["gates_passed"] and "gpu-kernels" in {finding["rule"] for finding in needs["findings"]}
    other = tmp_path / "other.gguf"
    other.write_bytes(b"GGUF")
    assert "model" in {finding["rule"] for finding in bitnet.verify_receipt(receipt, model=other)["findings"]}


def test_input_that_is_not_a_receipt_is_rejected(model):
    with model.session() as session, pytest.raises(bitnet.InvalidArgument, match="has generated nothing"):
        session.receipt()
    for no in ("", "{}", "no JSON", b"\0"):
        with pytest.raises(bitnet.BadData):
            bitnet.verify_receipt(no)
