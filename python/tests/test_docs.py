"""What the pages show is what Python says."""

import doctest
import re
import sys

import pytest

import bitnet
from conftest import MODEL, TREE

PAGE = TREE / "docs/how-to/use-from-python.md"


def run(text, name, folder, monkeypatch):
    (folder / "model.gguf").symlink_to(MODEL)
    monkeypatch.chdir(folder)
    test = doctest.DocTestParser().get_doctest(text, {}, name, name, 0)
    assert test.examples
    found = doctest.DocTestRunner(optionflags=doctest.IGNORE_EXCEPTION_DETAIL).run(test, out=sys.stderr.write)
    assert found.failed == 0


def test_the_code_of_the_page_runs(tmp_path, monkeypatch):
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert len(blocks) > 5
    run("\n".join(blocks), PAGE.name, tmp_path, monkeypatch)


def test_the_example_of_the_package_runs(tmp_path, monkeypatch):
    run(bitnet.__doc__, "bitnet", tmp_path, monkeypatch)


@pytest.mark.parametrize("page", [TREE / "python/README.md", PAGE])
def test_names_on_pages_exist(page):
    names = re.findall(r"\bbitnet\.([A-Z]\w+)", page.read_text(encoding="utf-8"))
    assert names
    for name in names:
        assert hasattr(bitnet, name)
