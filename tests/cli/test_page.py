"""The page of `bitnet serve` in a headless Chromium: its modules by themselves, what it shows of hostile answers, and a
conversation with the program."""

import json
import os
import re
import unittest

import browser
import page_upstream
import support
from page_upstream import PAUSE, answer, chunk, event
from support import needs_backend
from test_serve import Serving

needs_chromium = unittest.skipUnless(browser.CHROMIUM, "there is no chromium")
IS_IDLE = "!document.querySelector('[aria-busy=true]') && !document.querySelector('#send').hidden"
LAST = "[...document.querySelectorAll('.message')].at(-1)"

# (text, its blocks without offsets, why)
BLOCKS = [
    ("a\nb", [{"t": "p", "text": "a\nb"}], "lines of a paragraph"),
    ("# a #\n###### b\n####### c", [{"t": "h", "level": 1, "text": "a"}, {"t": "h", "level": 6, "text": "b"},
                                  {"t": "p", "text": "####### c"}], "headings"),
    ("```py\n<b>\n\n# x\n```\ny", [{"t": "code", "info": "py", "text": "<b>\n\n# x", "goes_on": False},
                                 {"t": "p", "text": "y"}], "code"),
    ("~~~\na\n```\n~~~~", [{"t": "code", "info": "", "text": "a\n```", "goes_on": False}], "a fence ends by its own mark"),
    ("```\nopen", [{"t": "code", "info": "", "text": "open", "goes_on": False}], "a fence that is not closed yet"),
    ("- - -\n***", [{"t": "hr"}, {"t": "hr"}], "rules"),
    ("> a\n> - b", [{"t": "quote", "c": [{"t": "p", "text": "a"}, {"t": "list", "ordered": False, "start": None, "items": [
        [{"t": "p", "text": "b"}]]}]}], "a list in a quote"),
    ("3. a\n   - b\n\n   c\n4. d", [{"t": "list", "ordered": True, "start": 3, "items": [
        [{"t": "p", "text": "a"}, {"t": "list", "ordered": False, "start": None, "items": [[{"t": "p", "text": "b"}]]},
         {"t": "p", "text": "c"}], [{"t": "p", "text": "d"}]]}], "a list in a list, and a paragraph behind it"),
    ("|a|b|\n|:-:|--:|\n|1|2|3|\n|4|\nx", [{"t": "table", "align": ["center", "right"], "head": ["a", "b"],
                                           "rows": [["1", "2"], ["4", ""]]}, {"t": "p", "text": "x"}], "a table"),
    ("a | b\nc", [{"t": "p", "text": "a | b\nc"}], "no table without its second line"),
    ("\r\na\r\n", [{"t": "p", "text": "a"}], "lines of Windows"),
]

# (text, its tree, why)
INLINE = [
    ("*a* **b** ***c*** ~~d~~", [{"t": "em", "c": ["a"]}, " ", {"t": "strong", "c": ["b"]}, " ",
                                 {"t": "strong", "c": [{"t": "em", "c": ["c"]}]}, " ", {"t": "del", "c": ["d"]}], "emphasis"),
    ("2 * 3 * 4, a_b_c, **x", ["2 * 3 * 4, a_b_c, **x"], "no emphasis"),
    ("*a **b* c**", [{"t": "em", "c": ["a **b"]}, " c**"], "what overlaps is text"),
    ("`` a`b `` `c", [{"t": "code", "text": "a`b"}, " `c"], "code"),
    (r"\*a\* \<b>", ["*a* <b>"], "escapes"),
    ("[a *b*](https://x.y/(z) \"t\")", [{"t": "a", "url": "https://x.y/(z)", "c": ["a ", {"t": "em", "c": ["b"]}]}], "a link"),
    ("[a](javascript:alert(1))", ["a (javascript:alert(1))"], "no link: a script"),
    ("[a](JaVaScRiPt:x) [b](data:text/html,x) [c](/etc) [d](vbscript:x)",
     ["a (JaVaScRiPt:x) b (data:text/html,x) c (/etc) d (vbscript:x)"], "no links: other schemes"),
    ("![p](https://x.y/p.png)", [{"t": "a", "url": "https://x.y/p.png", "c": ["[image: p]"]}], "no picture is fetched"),
    ("see https://x.y/a?b=1. <mailto:a@b.c>", ["see ", {"t": "a", "url": "https://x.y/a?b=1", "c": ["https://x.y/a?b=1"]}, ". ",
                                              {"t": "a", "url": "mailto:a@b.c", "c": ["mailto:a@b.c"]}], "bare addresses"),
    ("<script>alert(1)</script>", ["<script>alert(1)</script>"], "HTML is text"),
    ("[a](https://x.y", ["[a](", {"t": "a", "url": "https://x.y/", "c": ["https://x.y"]}], "half a link"),
]

HOSTILE = """<script>window.pwned = 1</script><img src=x onerror="window.pwned = 1">

[click](javascript:window.pwned=1) [tab](java\tscript:window.pwned=1) <a href="javascript:window.pwned=1">x</a>
![x](https://tracker.example/p.png) [ok](https://example.org/"onmouseover="window.pwned=1)

| <iframe src=javascript:window.pwned=1> | b |
|---|---|
| <svg onload=window.pwned=1> | [x](data:text/html,<script>window.pwned=1</script>) |

```"><script>window.pwned=1</script>
</code></pre><script>window.pwned = 1</script>
```

- <style>*{display:none}</style>
> <form action=//evil.example><input></form>
"""


@needs_chromium
class Browsing(support.Case):
    """One browser and one scripted server for all tests of a class; a new tab for each."""

    @classmethod
    def setUpClass(cls):
        cls.chromium, cls.upstream = browser.Browser(), page_upstream.Upstream()
        cls.addClassCleanup(cls.chromium.close)
        cls.addClassCleanup(cls.upstream.close)

    def setUp(self):
        super().setUp()
        up = self.upstream
        up.stream, up.requests, up.key, up.reloads = answer("Hello."), [], None, 0
        up.routes = {"/v1/models": {"data": [{"id": "fake"}]}}
        up.go_on.clear()
        up.gone.clear()
        self.addCleanup(up.go_on.set)

    def tab(self, url=None, **more):
        page = browser.Page(self.chromium, url or self.upstream.url, **more)
        self.addCleanup(page.close)
        self.addCleanup(lambda: self.assertEqual(page.troubles, []))
        return page

    def say(self, page, text, waits=True):
        page.js("document.querySelector('#message').focus()")
        page.type(text)
        page.key("Enter")
        if waits:
            page.wait(IS_IDLE, "the answer is there")

    def module(self, page, name, expression):
        return page.js(f"import('/page/{name}.js').then((m) => {expression})")


class Modules(Browsing):
    def test_markdown_becomes_blocks(self):
        page = self.tab()
        for text, want, why in BLOCKS:
            with self.subTest(why):
                got = self.module(page, "markdown", f"m.parse_blocks({json.dumps(text)})")
                self.assertEqual([{k: v for k, v in one.items() if k not in ("begin", "state")} for one in got],
                                 [one for one in self.without_offsets(got, want)])
        for text, want, why in INLINE:
            with self.subTest(why):
                self.assertEqual(self.module(page, "markdown_inline", f"m.parse_inline({json.dumps(text)})"), want)

    def test_markdown_that_grows_is_that_of_the_whole(self):
        texts = [text for text, _, _ in BLOCKS] + [HOSTILE, "\n\n".join(text for text, _, _ in BLOCKS)]
        differ = self.module(self.tab(), "render", """(() => {
            const out = [];
            for (const text of %s) {
                const whole = document.createElement("div"), grown = document.createElement("div");
                m.show_markdown(whole, text);
                const view = new m.growing_view(grown);
                for (let i = 0; i <= text.length; ++i) view.set(text.slice(0, i));
                whole.normalize();
                grown.normalize();
                if (!whole.isEqualNode(grown)) out.push([whole.innerHTML, grown.innerHTML]);
            }
            return out;
        })()""" % json.dumps(texts))
        self.assertEqual(differ, [])

    def test_markdown_takes_time_that_grows_with_the_text(self):
        page = self.tab()
        for text in ("*a ", "[", "[a](", "`a``", "> ", "- a\n", "1. ", "|a", "~~~\n", "a\n\n", "**_", "<https://", "\u202ea",
                     "# ", " "):
            with self.subTest(text):
                ms = self.module(page, "render", f"""(() => {{
                    const begin = performance.now();
                    m.show_markdown(document.createElement("div"), {json.dumps(text)}.repeat({100000 // len(text)}));
                    return performance.now() - begin;
                }})()""")
                self.assertLess(ms, 10000)  # a loaded machine needs about a second

    def test_events_split_at_every_byte(self):
        text = ": ping\n\ndata: a\n\ndata:b\r\ndata: c\r\n\r\nevent: x\ndata: d\r\r: e\n\ndata: half"
        got = self.module(self.tab(), "events", """(() => {
            const text = %s;
            return Array.from({length: text.length}, (_, i) => {
                const reader = new m.event_reader();
                return [...reader.take(text.slice(0, i)), ...reader.take(text.slice(i))];
            });
        })()""" % json.dumps(text))
        self.assertEqual(got, [["a", "b\nc", "d"]] * len(text))

    def test_hidden_characters_have_names(self):
        got = self.module(self.tab(), "text", 'm.pieces_of("a\\u202e\\u202eb\\u200dc\\ud83d\\ude00\\u2066\\t\\n")')
        self.assertEqual([one.get("text", one.get("mark")) for one in got],
                         ["a", "U+202E", "b\u200dc\U0001f600", "U+2066", "\t\n"])
        self.assertEqual((got[1]["count"], got[1]["meaning"]), (2, "right-to-left override"))

    def test_the_store_has_a_bound(self):
        got = self.module(self.tab(), "store", """import("/page/conversation.js").then((tree) => {
            const store = new m.conversation_store(null, {characters: 3000, conversations: 3});
            const made = [];
            for (let i = 0; i < 5; ++i) {
                const one = tree.new_conversation();
                tree.add_node(one, null, {text: `title ${i}`});
                one.changed = 1000 + i;
                made.push(store.save(one));
            }
            const large = tree.new_conversation();
            tree.add_node(large, null, {text: "x".repeat(4000)});
            return {made, large: store.save(large), list: store.list().map((x) => x.title)};
        })""")
        self.assertEqual([x["removed"] for x in got["made"]], [[], [], [], ["title 0"], ["title 1"]])
        self.assertEqual(got["large"], {"kept": False, "removed": []})
        self.assertEqual(got["list"], ["title 4", "title 3", "title 2"])

    def test_files_of_conversations_are_checked(self):
        node = {"id": "a", "parent": None, "role": "user", "text": "hi"}
        good = {"id": "c", "title": "t", "nodes": [node, {**node, "id": "b", "parent": "a", "role": "assistant",
                                                         "state": "running", "extra": 1, "calls": [{"id": "x", "name": "f"}]}]}
        file = {"format": "bitnet-conversations", "version": 1, "conversations": [good]}
        bad = [("{", "no JSON"), ("[]", "no conversations"), (json.dumps({**file, "version": 2}), "version 2")]
        for nodes, why in ((None, "no messages"), ([{**node, "role": "system"}], "unknown role"), ([3], "no message"),
                           ([{**node, "parent": "b"}, {**node, "id": "b", "parent": "a"}], "not above it"),
                           ([node, node], "id of its own"), ([{**node, "text": 7}], "no text"),
                           ([{**node, "id": "<b>"}], "id of its own")):
            bad.append((json.dumps({**file, "conversations": [good, {"id": "d", "nodes": nodes}]}), why))
        got = self.module(self.tab(), "store", """(() => {
            const store = new m.conversation_store(null);
            const errors = %s.map((text) => {
                try { return store.import_text(text); } catch (error) { return error.message; }
            });
            const before = store.list().length;
            const file = %s;
            const n = [store.import_text(file), store.import_text(file)];
            const again = new m.conversation_store(null);
            again.import_text(store.export_text());
            return {errors, before, n, same: again.export_text() === store.export_text(), made: store.load("c")};
        })()""" % (json.dumps([text for text, _ in bad]), json.dumps(json.dumps(file))))
        for (text, why), message in zip(bad, got["errors"]):
            self.assertIn(why, str(message), text)
        self.assertEqual((got["before"], got["same"]), (0, True))
        self.assertEqual(got["made"]["nodes"][1]["state"], "stopped")
        self.assertNotIn("extra", got["made"]["nodes"][1])

    @staticmethod
    def without_offsets(got, want):
        """`want`, with the offsets that blocks within others have in `got`."""
        def joined(a, b):
            if isinstance(b, dict):
                more = {k: a[k] for k in ("begin", "state") if isinstance(a, dict) and k in a}
                return {**{k: joined(a.get(k), v) for k, v in b.items()}, **more}
            if isinstance(b, list):
                return [joined(x, y) for x, y in zip(a, b)] if isinstance(a, list) and len(a) == len(b) else b
            return b
        return [{k: v for k, v in one.items() if k not in ("begin", "state")} for one in joined(got, want)]


class Hostile(Browsing):
    def test_text_runs_nothing_and_fetches_nothing(self):
        page = self.tab()
        for piece in (1, 5000):
            self.upstream.stream = answer(HOSTILE, piece)
            self.say(page, HOSTILE)
        self.assertIsNone(page.js("window.pwned"))
        found = page.js("""[...document.querySelectorAll('#log *')].map((x) => [x.localName, ...x.getAttributeNames()])""")
        self.assertGreater(len(found), 100)
        for name, *attributes in found:
            self.assertNotIn(name, ("script", "img", "iframe", "object", "embed", "style", "input", "base", "link"))
            self.assertEqual([x for x in attributes if x.startswith("on") or x in ("style", "src", "action")], [], name)
        links = page.js("[...document.querySelectorAll('#log a')].map((x) => [x.protocol, x.rel, x.target])")
        self.assertGreater(len(links), 2)
        for protocol, rel, target in links:
            self.assertIn(protocol, ("http:", "https:", "mailto:"))
            self.assertIn("noopener", rel)
            self.assertEqual(target, "_blank")
        self.assertIn("<script>window.pwned = 1</script>", page.js(f"{LAST}.innerText"))
        fetched = page.js("performance.getEntriesByType('resource').map((x) => x.name)")
        self.assertEqual([x for x in fetched if not x.startswith(self.upstream.url)], [])

    def test_names_of_tools_and_models_are_text(self):
        evil = '<img src=x onerror="window.pwned=1">'
        backends = {"requested": evil, "detected": [{"name": evil, "reason": evil}], "live": {evil: evil}}
        self.upstream.routes = {"/v1/models": {"data": [{"id": evil}, {"id": "b"}]}, "/props": {"model_alias": evil},
                                "/backends": backends}
        call = {"index": 0, "id": evil, "function": {"name": evil, "arguments": evil}}
        self.upstream.stream = [chunk(tool_calls=[call]), chunk("tool_calls"), b"data: [DONE]\n\n"]
        page = self.tab()
        page.wait("document.querySelector('#model')", "a choice of models")
        self.say(page, evil)
        page.click("#panel-button")
        page.wait("document.querySelector('.candidates')", "the panel")
        self.assertEqual(page.js("document.querySelectorAll('img').length"), 0)
        self.assertIn(evil, page.js("document.querySelector('.call').innerText"))

    def test_direction_is_isolated_and_its_characters_are_shown(self):
        self.upstream.stream = answer("שלום \u202eevil\u202c\n\nplain `a\u2066b`\n\n```\nif x \u202e:\n```\n\n- שלום\n- b")
        page = self.tab()
        self.say(page, "a\u202eb")
        self.assertEqual(page.js("[...document.querySelectorAll('#log .mark')].map((x) => x.textContent)"),
                         ["U+202E", "U+202E", "U+202C", "U+2066", "U+202E"])
        self.assertFalse(page.js("/[\\u202a-\\u202e\\u2066-\\u2069]/.test(document.querySelector('#log').textContent)"))
        directions = f"[...{LAST}.querySelectorAll('.text > p')].map((x) => [x.dir, getComputedStyle(x).direction])"
        self.assertEqual(page.js(directions),
                         [["auto", "rtl"], ["auto", "ltr"]])
        self.assertEqual(page.js(f"getComputedStyle({LAST}.querySelector('ul')).direction"), "rtl")

    def test_large_answers_leave_the_page_responsive(self):
        for text in ("x" * 1000000, "word " * 40000, "- item\n" * 20000, "```\n" + "code\n" * 60000, "*" * 200000):
            with self.subTest(text[:8]):
                self.upstream.stream = answer(text, 20000)
                page = self.tab()
                # What one turn adds, which does not depend on how fast the machine is: a block that is made again, a part, and
                # a line that is cut.
                page.js("""(() => {
                    window.most = 0;
                    new MutationObserver((records) => {
                        const added = records.flatMap((x) => [...x.addedNodes]).filter((x) => x.isConnected);
                        const outer = added.filter((x) => !added.some((y) => y !== x && y.contains(x)));
                        most = Math.max(most, outer.reduce((n, x) => n + x.textContent.length, 0));
                    }).observe(document.querySelector('#log'), {childList: true, subtree: true});
                })()""")
                self.say(page, "go")
                self.assertLess(page.js("most"), 65000)
                shown = page.js(f"{LAST}.querySelector('.text').textContent.length")
                self.assertGreater(shown, 0.5 * len(text.replace("- item\n", "item").replace("\n", "")))

    def test_broken_streams_keep_what_came_and_say_why(self):
        deep = b"data: " + b"[" * 100000 + b"\n\n"
        strange = event(choices=[{"delta": {"content": 5, "tool_calls": [None, {"index": 1e9}, 4]}}])
        for stream, state, why in (
                ([chunk(content="half")], "half", "ended before"),
                ([chunk(content="half"), b"data: {nonsense\n\n"], "half", "no JSON object"),
                ([chunk(content="half"), b"data: 7\n\n"], "half", "no JSON object"),
                ([chunk(content="half"), deep], "half", "no JSON object"),
                ([chunk(content="half"), event(error={"message": "the device is lost"})], "half", "the device is lost"),
                ([event(choices=7), event(choices=[None]), event(choices=[{"delta": None}]), strange, *answer("fine")],
                 "fine", ""),
                ((503, {"Retry_After": "7"}, "too many wait"), "", "too many wait (try again in 7 s)"),
                ((500, {}, "internal error"), "", "internal error")):
            with self.subTest(why or state):
                self.upstream.stream = stream
                page = self.tab()
                self.say(page, "go")
                self.assertEqual(page.js(f"{LAST}.querySelector('.text').textContent"), state)
                self.assertIn(why, page.js(f"{LAST}.querySelector('.note').textContent"))
                if not why:
                    continue
                self.upstream.stream = answer("whole now")
                page.click(".note button")
                page.wait(f"{IS_IDLE} && {LAST}.querySelector('.text').textContent === 'whole now'", "it was tried again")
                self.assertEqual(page.js("document.querySelectorAll('.versions').length"), 1 if state else 0)


class Chats(Browsing):
    def test_keyboard_streams_and_stop(self):
        page = self.tab()
        self.upstream.stream = [chunk(content="begun"), PAUSE]
        page.js("document.activeElement.blur()")
        page.key("/")
        page.type("one")
        page.key("Enter", shift=True)
        page.type("two")
        page.key("Enter")
        page.wait(f"{LAST}.querySelector('.text').textContent === 'begun'", "text comes before its end")
        self.assertEqual(self.upstream.requests[-1]["messages"], [{"role": "user", "content": "one\ntwo"}])
        page.key("Escape")
        page.wait(IS_IDLE, "it is stopped")
        self.assertTrue(self.upstream.gone.wait(5), "the server sees the end")
        self.assertEqual(page.js(f"{LAST}.querySelector('.note').textContent"), "Stopped.")

    def test_versions_and_edits(self):
        page = self.tab()
        text = f"{LAST}.querySelector('.text').textContent"
        for reply in ("first", "second"):
            self.upstream.stream = answer(reply)
            if reply == "first":
                self.say(page, "ask")
            else:
                page.click(".assistant [aria-label='Generate again']")
                page.wait(f"{IS_IDLE} && {text} === 'second'", "the second version")
        page.click("[data-action=earlier]")
        self.assertEqual(page.js(text), "first")
        self.assertEqual(page.js("document.activeElement.dataset.action"), "later")
        self.assertEqual(page.js("document.querySelector('.versions span').textContent"), "1/2")
        self.upstream.stream = answer("of the edit")
        page.click(".user [aria-label=Edit]")
        page.js("document.querySelector('.edit textarea').select()")
        page.type("changed")
        page.key("Enter")
        page.wait(f"{IS_IDLE} && {text} === 'of the edit'", "the answer to the edit")
        self.assertEqual(self.upstream.requests[-1]["messages"], [{"role": "user", "content": "changed"}])
        page.click(".user [data-action=earlier]")
        self.assertEqual(page.js(text), "first")
        page.go(self.upstream.url)
        page.click(".conversation")
        self.assertEqual(page.js(text), "first")

    def test_settings_tools_and_thinking(self):
        page = self.tab()
        self.upstream.routes["/props"] = {"default_generation_settings": {"params": {"temperature": 0.8}}}
        page.click("#settings-button")
        page.wait("document.querySelector('#setting-seed')", "the settings")
        self.assertEqual(page.js("document.querySelector('#setting-temperature').placeholder"), "0.8")
        tool = {"name": "feed", "parameters": {"type": "object"}}
        for name, value in (("system", "Be short."), ("temperature", "0.5"), ("top_k", "7"), ("max_tokens", "x"), ("seed", "3"),
                            ("tools", json.dumps([tool]))):
            page.js(f"document.querySelector('#setting-{name}').focus()")
            page.type(value)
        self.assertEqual(page.js("document.querySelector('#setting-max_tokens').getAttribute('aria-invalid')"), "true")
        page.key("Escape")
        calls = [{"id": "c1", "function": {"name": "feed"}}, {"function": {"arguments": '{"n":'}}, {"function": {"arguments": "1}"}}]
        self.upstream.stream = [chunk(reasoning_content="hm *so*"), *(chunk(tool_calls=[{"index": 0, **x}]) for x in calls),
                                chunk("tool_calls"), b"data: [DONE]\n\n"]
        self.say(page, "go")
        body = self.upstream.requests[-1]
        self.assertEqual({k: body.get(k) for k in ("temperature", "top_k", "max_tokens", "seed", "tool_choice")},
                         {"temperature": 0.5, "top_k": 7, "max_tokens": None, "seed": 3, "tool_choice": "auto"})
        self.assertEqual(body["tools"], [{"type": "function", "function": tool}])
        self.assertEqual(body["messages"][0], {"role": "system", "content": "Be short."})
        self.assertEqual(page.js("[document.querySelector('.assistant .thinking').open, document.querySelector('.thinking em').textContent]"),
                         [False, "so"])
        shown = page.js("['code', 'pre'].map((x) => document.querySelector('.call ' + x).textContent)")
        self.assertEqual(shown, ["feed", '{\n  "n": 1\n}'])
        self.upstream.stream = answer("fed")
        page.js("document.querySelector('.results textarea').focus()")
        page.type("done")
        page.click(".results button")
        page.wait(f"{IS_IDLE} && {LAST}.innerText.includes('fed')", "the answer to the result")
        call = {"id": "c1", "type": "function", "function": {"name": "feed", "arguments": '{"n":1}'}}
        self.assertEqual(self.upstream.requests[-1]["messages"][2:],
                         [{"role": "assistant", "content": "", "tool_calls": [call]},
                          {"role": "tool", "tool_call_id": "c1", "content": "done"}])

    def test_a_key_is_asked_for_and_kept_by_the_tab(self):
        self.upstream.key = "secret"
        page = self.tab()
        self.say(page, "go", waits=False)
        for key in ("wrong", "secret"):
            page.wait("document.querySelector('#asking[open] #key-field')?.value === ''", "it asks for a key")
            page.type(key)
            page.key("Enter")
        page.wait(f"{IS_IDLE} && {LAST}.innerText.includes('Hello.')", "the answer")
        self.say(page, "again")
        self.assertEqual(len(self.upstream.requests), 2)
        self.assertNotIn("secret", page.js("JSON.stringify(localStorage)"))
        self.upstream.key = "other"
        self.say(page, "third", waits=False)
        page.wait("document.querySelector('#asking[open]')", "it asks again")
        page.key("Escape")
        page.wait(IS_IDLE, "it gives up")
        self.assertIn("API key is needed", page.js(f"{LAST}.innerText"))

    def test_models_and_conversations(self):
        self.upstream.routes["/v1/models"] = {"data": [{"id": "one"}, {"id": "two"}]}
        page = self.tab()
        page.wait("document.querySelector('#model')", "a choice of models")
        page.js("(() => { const x = document.querySelector('#model'); x.value = 'two'; x.dispatchEvent(new Event('change')); })()")
        self.say(page, "about foxes")
        self.assertEqual(self.upstream.requests[-1]["model"], "two")
        page.click("#new")
        self.say(page, "about rabbits")
        titles = "[...document.querySelectorAll('.conversation')].map((x) => x.textContent)"
        self.assertEqual(page.js(titles), ["about rabbits", "about foxes"])
        page.go(self.upstream.url)
        self.assertEqual(page.js(titles), ["about rabbits", "about foxes"])
        page.click("#conversations li:nth-child(2) .icon-button")
        page.wait("document.querySelector('#asking[open]')", "it asks")
        page.click("#asking [type=submit]")
        page.wait(f"{titles}.length === 1", "it is deleted")

    def test_conversations_go_to_a_file_and_come_back(self):
        page = self.tab()
        self.say(page, "kept <b>text</b>")
        self.chromium.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=self.home,
                           browserContextId=page.context)
        page.click("#history-foot [aria-label^=Export]")
        files = lambda: [os.path.join(self.home, x) for x in os.listdir(self.home) if x.endswith(".json")]
        browser.wait_until(files, "the file")
        page.click("#history-foot [aria-label^=Delete]")
        page.wait("document.querySelector('#asking[open]')", "it asks")
        page.click("#asking [type=submit]")
        page.wait("document.querySelector('#conversations .none')", "all are deleted")
        self.assertEqual(page.js("Object.keys(localStorage).filter((x) => x.includes('conversation'))"), [])
        page.choose_files("#import-file", files())
        page.wait("document.querySelectorAll('.conversation').length === 1", "it is there again")
        page.click(".conversation")
        self.assertEqual(page.js("document.querySelector('.user .text').textContent"), "kept <b>text</b>")
        page.choose_files("#import-file", [self.path("bad.json", "{}")])
        page.wait("document.querySelector('#toast').textContent.includes('no conversations')", "why it is no such file")

    def test_the_panel_shows_what_there_is(self):
        page = self.tab()
        self.upstream.routes = {"/metrics": 'vllm:kv_cache_usage_perc{a="b"} 0.25\nvllm:num_requests_running 3\n'}
        page.click("#panel-button")
        body = "document.querySelector('.panel-body').innerText"
        page.wait("document.querySelector('#panel meter')", "the meter")
        self.assertEqual(page.js("document.querySelector('#panel meter').value"), 0.25)
        self.assertNotIn("BACKENDS", page.js(body))
        listed = [{"name": "cpu"}, {"name": "vulkan", "state": "rejected", "reason": "no driver"}]
        self.upstream.routes["/backends"] = {"requested": "auto", "selected": "cpu", "live": {"device": "two threads"},
                                             "detected": listed}
        page.wait(f"{body}.includes('no driver')", "the backends")
        self.assertEqual(page.js("document.querySelector('.candidates .selected .name').textContent"), "cpu")
        # As `bitnet backends why --json` has them.
        self.upstream.routes["/backends"].update(detected=["cpu"], backends=[{**x, "stage": "found"} for x in listed])
        page.wait(f"{body}.includes('Detected')", "the names alone")
        self.assertIn("no driver", page.js(body))
        page.js("[...document.querySelectorAll('#panel button')].at(-1).click()")
        page.wait("document.querySelector('#asking[open] #key-field')", "it asks for the admin key")
        page.type("admin")
        page.key("Enter")
        page.wait("document.querySelector('#toast').textContent.includes('reloaded')", "it is reloaded")
        self.assertEqual(self.upstream.reloads, 1)

    def test_controls_have_names_and_narrow_pages_do_not_scroll_aside(self):
        wide = "| a | b |\n|---|---|\n| " + "w" * 300 + " | c |\n\n```\n" + "x" * 500 + "\n```\n" + "y" * 500
        self.upstream.stream = answer(wide)
        for width, dark in ((1280, False), (390, True)):
            page = self.tab(width=width, dark=dark)
            self.say(page, "z" * 400)
            self.assertEqual(page.js("document.documentElement.scrollWidth"), width)
            self.assertTrue(page.js("document.querySelector('#log-place').scrollWidth <= innerWidth"))
            roles = ("button", "textbox", "combobox", "link", "dialog", "navigation", "complementary")
            controls = [x for x in page.call("Accessibility.getFullAXTree")["nodes"]
                        if not x.get("ignored") and x.get("role", {}).get("value") in roles]
            self.assertGreater(len(controls), 8)
            self.assertEqual([x for x in controls if not x.get("name", {}).get("value")], [])
            self.assertEqual(page.js("document.querySelector('#announcer').ariaLive"), "polite")
            ground = page.js("getComputedStyle(document.body).backgroundColor")
            self.assertEqual(ground, "rgb(22, 24, 26)" if dark else "rgb(251, 251, 250)")
            page.click("#theme")
            page.click("#theme")
            self.assertEqual(page.js("getComputedStyle(document.body).backgroundColor"), "rgb(22, 24, 26)")
            folder = os.environ.get("BITNET_SCREENSHOTS")
            if folder:
                page.screenshot(os.path.join(folder, f"page-{width}.png"))


class Sources(unittest.TestCase):
    """Checks of the page's source files."""

    # Calls that parse a text as HTML, as a program or as a style.
    UNSAFE = re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment|DOMParser|srcdoc"
                        r"|\beval\b|new Function|javascript:|setAttribute\(\"(?:on|style)|cssText|\bimport\(")

    def test_parse_no_text_as_html(self):
        names = sorted(x for x in os.listdir(page_upstream.FILES) if os.path.splitext(x)[1] in page_upstream.TYPES)
        self.assertIn("index.html", names)
        for name in names:
            with open(os.path.join(page_upstream.FILES, name), encoding="utf-8") as file:
                text = file.read()
            with self.subTest(name):
                self.assertEqual(self.UNSAFE.findall(text), [])
                self.assertLessEqual(len(text.splitlines()), 500)
                self.assertLessEqual(max(len(line) for line in text.splitlines()), 100 if not name.endswith("svg") else 400)
                for url in re.findall(r"https?://[\w.]+", text):
                    self.assertIn(url, ("http://www.w3.org", "https://a.b"))  # a name space, and an example
                if name.endswith(".html"):
                    self.assertEqual(re.findall(r"<style|\son\w+=|\sstyle=|<script(?![^>]* src=)", text), [])


@needs_backend
class Served(Serving):
    OPTIONS = ("--temp", "0", "-n", "12")

    def test_with_a_strict_policy_and_a_tag(self):
        status, fields, text = self.server.ask("GET", "/")
        self.assertEqual((status, fields["Content-Type"]), (200, "text/html; charset=utf-8"))
        self.assertEqual(fields["Content-Security-Policy"], page_upstream.POLICY)
        self.assertEqual((fields["X-Content-Type-Options"], fields["Referrer-Policy"], fields["Cache-Control"]),
                         ("nosniff", "no-referrer", "no-cache"))
        self.assertEqual(self.server.ask("GET", "/index.html")[2], text)
        status, again, body = self.server.ask("GET", "/", fields={"If-None-Match": 'W/"x", ' + fields["ETag"]})
        self.assertEqual((status, body, again["ETag"], again["Content-Length"]), (304, "", fields["ETag"], None))
        self.assertEqual(self.server.ask("GET", "/", fields={"If-None-Match": '"x"'})[0], 200)
        for name in os.listdir(page_upstream.FILES):
            kind = page_upstream.TYPES.get(os.path.splitext(name)[1])
            status, fields, text = self.server.ask("GET", "/page/" + name)
            self.assertEqual(status, 200 if kind else 404, name)
            if kind:
                self.assertTrue(fields["Content-Type"].startswith(kind), name)
                with open(os.path.join(page_upstream.FILES, name), encoding="utf-8") as file:
                    self.assertEqual(text, file.read(), name)

    def test_to_its_own_origin_alone(self):
        ask = {"prompt": "a", "max_tokens": 1}
        here = f"127.0.0.1:{self.server.port}"
        for origin, host, want in (("http://" + here, here, 200), ("http://evil.example", here, 403),
                                   ("http://evil.example", "evil.example", 403), ("null", here, 403)):
            status, fields, _ = self.server.ask("POST", "/v1/completions", ask, {"Origin": origin, "Host": host})
            self.assertEqual((status, fields["Access-Control-Allow-Origin"]), (want, None), (origin, host))

    def test_without_a_key_and_not_with_no_webui(self):
        server = self.start("--no-webui", "--api-key", "secret")
        self.assertEqual([server.ask("GET", x)[0] for x in ("/", "/page/main.js")], [404, 404])
        server = self.start("--api-key", "secret")
        self.assertEqual([server.ask("GET", x)[0] for x in ("/", "/page/main.js", "/props")], [200, 200, 401])

    @needs_chromium
    def test_to_a_browser_that_talks_with_the_model(self):
        want = self.server.post("/v1/chat/completions", messages=[{"role": "user", "content": "Tell me a story."}])
        chromium = browser.Browser()
        self.addCleanup(chromium.close)
        for host in ("127.0.0.1", "localhost"):
            page = browser.Page(chromium, f"http://{host}:{self.server.port}/")
            page.js("document.querySelector('#message').focus()")
            page.type("Tell me a story.")
            page.key("Enter")
            page.wait(f"document.querySelectorAll('.message').length === 2 && {IS_IDLE}", "the answer")
            shown = page.js("document.querySelector('.assistant .text').textContent")
            self.assertEqual(" ".join(shown.split()), " ".join(want["choices"][0]["message"]["content"].split()))
            self.assertRegex(page.js("document.querySelector('.figures').textContent"), r"^12 tokens · [\d.]+ tokens/s")
            page.click("#panel-button")
            page.wait("document.querySelector('#panel meter')", "the panel")
            self.assertIn("cpu", page.js("document.querySelector('#panel').innerText"))
            self.assertEqual(page.troubles, [])


if __name__ == "__main__":
    support.main()
