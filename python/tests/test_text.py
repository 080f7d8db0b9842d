import pytest

import bitnet
from conftest import MODEL


@pytest.mark.parametrize("text", ["", "Once upon a time", "Ünïcödé 🦊 text", "a\0b", " two  blanks "])
def test_detokenize_inverts_tokenize(model, text):
    ids = model.tokenize(text, bos=False)
    assert model.detokenize(ids) == text


def test_the_token_that_begins(model):
    bos = model.info.bos
    assert model.info.add_bos and model.tokenize("a")[0] == bos
    assert model.tokenize("a", bos=True)[0] == bos and bos not in model.tokenize("a", bos=False)


def test_control_tokens_are_text_unless_special(model):
    end = model.info.eot
    text = model.detokenize([end], special=True)
    assert text == "<|eot_id|>" and model.detokenize([end]) == ""
    assert model.tokenize(text, bos=False, special=True) == [end]
    assert len(model.tokenize(text, bos=False)) > 1
    assert model.ends_generation(end) and not model.ends_generation(5)


def test_a_vocabulary_alone_opens_no_session():
    with bitnet.Model(MODEL, vocabulary_only=True) as words:
        assert words.tokenize("Once")
        with pytest.raises(bitnet.InvalidArgument, match="vocabulary_only"):
            words.session()


def test_inspect_finds_no_problem():
    report = bitnet.inspect(MODEL)
    assert report["architecture"] == "bitnet-b1.58" and report["problems"] == []


def test_convert_verifies_what_it_wrote(tmp_path):
    calls = []
    report = bitnet.convert(MODEL, tmp_path / "other.gguf", type="tq2_0", verify=True,
                          progress=lambda done, total: calls.append((done, total)))
    assert report["verified"] and calls and calls[-1][0] == calls[-1][1]
    with pytest.raises(bitnet.Error):
        bitnet.convert(MODEL, tmp_path / "other.gguf", type="tq2_0")  # it is there
    with pytest.raises(bitnet.Error, match="no-such-type"):
        bitnet.convert(MODEL, tmp_path / "third.gguf", type="no-such-type")
    assert not (tmp_path / "third.gguf").exists()
    with bitnet.Model(tmp_path / "other.gguf") as model:
        assert model.generate("Once upon a time", max_tokens=3, temperature=0).text == ", there was"
