"""The pages of docs/reference that describe JSON documents have the members that the code writes, and no others.

tests/api/documents.py compares them with documents that the library returns. Here are the members, too, that no
machine of the tests has, such as the temperature of a device."""

import json
import re
import unittest

import document_tables as tables

ROOT = tables.ROOT
# The files that write a document, or one function of a file.
WRITERS = {
    "bitnet_build_info": ["api/runtime.cpp"],
    "bitnet_runtime_report": ["api/runtime.cpp", "api/services.cpp", "select/report.cpp", "select/device_status.cpp"],
    "bitnet_backend_lint": ["api/plugin_file.cpp"],
    "bitnet_backend_verify": ["api/plugin_file.cpp"],
    "bitnet_analyze_library": ["api/library_report.cpp", "plugin/analysis/symbol_groups.hpp"],
    "bitnet_inspect": ["inspect/inspect.cpp", "model/read.cpp"],
    "bitnet_inspect_weights": ["inspect/weights.cpp"],
    "bitnet_convert": ["convert/convert.cpp", "model/read.cpp"],
    "bitnet_answer_message": ["answer/message.cpp"],
    "bitnet_session_report": ["api/session.cpp", "api/kernels_json.cpp", "api/parts_json.cpp", "api/speculation.cpp",
                              "select/device_status.cpp"],
    "bitnet_session_program": ["api/program.cpp"],
    "bitnet_receipt_verify": ["api/receipt.cpp:verdict_text"],
    "bitnet_backend_reload": ["api/reload.cpp"],
    "bitnet_shadow_report": ["api/shadow.cpp"],
    "bitnet_scheduler_report": ["api/scheduler_report.cpp", "api/scheduler.cpp", "api/speculation.cpp"],
}
# {"member", value}, of["member"], put(..., "member", value); a list of texts is none of these.
WRITTEN = re.compile(r'\{\s*"(\w+)",\s+(?!")|\["(\w+)"\]|\bput\(\s*(?:\w+, )?"(\w+)",')
COMMENTED = re.compile(r"(/\*(?:(?!\*/).)*\*/)\n^BITNET_API [^;(]*?\b(bitnet_\w+)\(", re.DOTALL | re.MULTILINE)
# A group of symbols is named by a constant of another file.
ELSEWHERE = {"bitnet_analyze_library": {"cuda"}}
# A long array of metadata, which is in a map.
IN_MAPS = {"inspect/inspect.cpp": {"count", "first"}}


def code_of(writer):
    file, _, function = writer.partition(":")
    text = (ROOT / "core/src" / file).read_text(encoding="utf-8")
    return text[text.index(f" {function}("):].split("\n}\n")[0] if function else text


def words_of(paths):
    return {name for path in paths for name in re.split(r"[.\[\]]+", path)} - {""}


class Documents(unittest.TestCase):
    def test_all_are_listed(self):
        self.assertEqual(set(tables.index()), set(WRITERS))

    def test_header_names_the_pages(self):
        """The comment of a function in bitnet.h has the page, and of docs/reference/documents.md the heading."""
        header = (ROOT / "abi/include/bitnet/bitnet.h").read_text(encoding="utf-8")
        named = {}
        for comment, function in COMMENTED.findall(header):
            text = re.sub(r"\n \* ?", " ", comment)
            if link := re.search(r'Document: docs/reference/([\w.-]+\.md)(?:, "([^"]+)")?\. ', text):
                named[function] = (link[1], link[2] and tables.slug(link[2]))
        self.assertGreater(len(named), 15)
        for function, (page, anchor) in tables.index().items():
            with self.subTest(function):
                self.assertEqual(named[function][0], page)
                self.assertIn(named[function][1], (anchor, None if page != "documents.md" else anchor))
        receipts = {name for name in named if name.endswith("_receipt")}
        self.assertEqual(set(named) - set(tables.index()), receipts)

    def test_members_are_those_of_the_code(self):
        on_pages = {name: words_of(tables.rows(*place)) for name, place in tables.index().items()}
        for function, names in on_pages.items():
            with self.subTest(function):
                self.assertGreater(len(names), 2)
                quoted = set(re.findall(r'"(\w+)"', "".join(map(code_of, WRITERS[function]))))
                self.assertEqual(names - quoted - ELSEWHERE.get(function, set()), set(), "on the page, and written nowhere")
        for writer in sorted({one for writers in WRITERS.values() for one in writers}):
            with self.subTest(writer):
                written = {next(filter(None, groups)) for groups in WRITTEN.findall(code_of(writer))}
                documents = [name for name, writers in WRITERS.items() if writer in writers]
                known = set().union(*(on_pages[name] for name in documents))
                self.assertEqual(written - known - IN_MAPS.get(writer, set()), set(), f"written for {documents}, and on no page")

    def test_the_table_of_a_chat_has_the_members_that_the_library_reads(self):
        """The table of a chat's request has the members that the library reads."""
        code = "".join((ROOT / "core/src" / name).read_text(encoding="utf-8") for name in ("chat/request.cpp", "answer/tools.cpp"))
        read = set(re.findall(r'\b(?:member|text_or_nothing)\(\*?\w+, "(\w+)"', code))
        read |= set(re.findall(r'\bjson::read\(\w+(?:\.\w+)?, "(\w+)"\)', code))
        on_page = words_of(tables.rows("chat-json.md", "messages"))
        # The first two are of a JSON Schema, the third is rejected. The template alone reads a description.
        self.assertEqual(read - {"enum", "properties", "function_call"}, on_page - {"description"})

    def test_the_schema_of_receipts_has_the_members_that_the_library_writes(self):
        """The schema's members at the top are those that the library writes."""
        schema = json.loads((tables.REFERENCE / "receipt.schema.json").read_text(encoding="utf-8"))
        code = "".join((ROOT / "core/src/api" / name).read_text(encoding="utf-8")
                       for name in ("receipt.cpp", "receipt_facts.cpp"))
        # What the program adds.
        added = {"program", "cuda_version", "sm_arch"}
        self.assertEqual({name for name in schema["properties"] if f'"{name}"' not in code}, added)

    def test_planted_differences_are_found(self):
        table = {"a.b": ("integer", ""), "a.c": ("text", "never"), "d[].e": ("number", ""), "f": ("map", "")}
        good = {"a": {"b": 1, "c": "x"}, "d": [{"e": 1.5}, {"e": 2}], "f": {"any": 1}}
        seen = set()
        self.assertEqual(list(tables.differences(good, table, seen)), [])
        self.assertEqual(seen, set(table))
        for change, of in (({"a": {"c": "x"}}, "a.b is missing"), ({"a": {"b": "1"}}, "a.b is '1'"), ({"g": 1}, "g has no row"),
                           ({"d": [{"e": 1, "h": 2}]}, "d[].h has no row"), ({"a": {"b": True}}, "a.b is True")):
            self.assertIn(of, " ".join(tables.differences(good | change, table, set())))


if __name__ == "__main__":
    unittest.main(verbosity=2)
