// A few rows with expectations by hand, and the limits. tests/jinja has the judge.
#include "jinja/template.hpp"

#include <gtest/gtest.h>

namespace bitnet::jinja {
namespace {

result<std::string> rendered(std::string_view source, const limits& bounds = {}) {
  auto parsed = chat_template::parse(source);
  if (!parsed) return std::unexpected(parsed.error());
  return parsed->render({}, 0, bounds);
}

TEST(jinja, renders_as_python_does) {
  const struct {
    const char* why;
    const char* source;
    const char* expected;
  } rows[] = {
      {"white space: trim_blocks and lstrip_blocks", "a\n  {% if 1 %}\nb\n  {% endif %}\nc\n",
       "a\nb\nc"},
      {"division and remainders go down", "{{ -7 // 2 }} {{ -7 % 3 }} {{ 4 / 2 }}", "-4 2 2.0"},
      {"names of Python", "{{ [none, true, 1.0, 'x'] }}", "[None, True, 1.0, 'x']"},
      {"a set in a loop stays there",
       "{% set x=1 %}{% for i in [2] %}{% set x=i %}{% endfor %}{{ x }}", "1"},
      {"a namespace carries it out",
       "{% set n=namespace(x=1) %}{% for i in [2] %}{% set n.x=i %}{% endfor %}{{ n.x }}", "2"},
      {"backwards", "{{ 'abc'[::-1] }}", "cba"},
      {"% of Python", "{{ '%-4s|%05.1f' % ('é', 2) }}", "é   |002.0"},
      {"what changed", "{% for i in [1, 1, 2] %}{{ loop.changed(i) }}{% endfor %}",
       "TrueFalseTrue"},
      {"characters, not bytes", "{{ 'éab'.find('b', -1) }} {{ 'éab'.count('', 1) }}", "2 3"},
      {"JSON as transformers writes it", "{{ {'b': 'é', 'a': [1]}|tojson }}",
       "{\"b\": \"é\", \"a\": [1]}"},
  };
  for (const auto& r : rows) {
    const auto text = rendered(r.source);
    ASSERT_TRUE(text) << r.why << ": " << text.error().message;
    EXPECT_EQ(*text, r.expected) << r.why;
  }
}

TEST(jinja, refuses_with_the_line) {
  const struct {
    const char* why;
    std::string source;
    const char* expected;
  } rows[] = {
      {"unknown filter", "\n\n{{ 1|frob }}", "line 3: the filter 'frob'"},
      {"open block", "a\n{% if 1 %}", "line 2: expected {% endif %}"},
      {"nothing is changed", "{{ [1].append(2) }}", "refused"},
      {"the template's own words", "{{ raise_exception('no system') }}", "no system"},
      {"nested too deep", "{{ " + std::string(5000, '(') + std::string(5000, ')') + " }}", "deep"},
      {"a long chain",
       "{{ 1" +
           [] {
             std::string s;
             for (int i = 0; i < 5000; ++i) s += "+1";
             return s;
           }() +
           " }}",
       "deep"},
      {"endless recursion", "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "deep"},
      {"a text without end", "{{ 'x' * 999999999999 }}", "MiB"},
      {"doubled again and again",
       "{% set n=namespace(s='x') %}{% for i in range(60) %}{% set n.s=n.s+n.s %}{% endfor %}",
       "MiB"},
      {"a place of % without end", "{{ '%99999999999s' % 1 }}", "MiB"},
      {"digits without end", "{{ '%.999999999f' % 1 }}", "MiB"},
      {"a name without a dict", "{{ '%(a)s' % 1 }}", "needs a dict, not a 'int'"},
      {"lists in lists",
       "{% set n=namespace(s=1) %}{% for i in range(999) %}{% set n.s=[n.s] %}{% endfor %}",
       "deep"},
      {"too many steps",
       "{% for i in range(99999) %}{% for i in range(99999) %}{% endfor %}{% endfor %}", ""},
      {"not UTF-8", "\xff", "UTF-8"},
  };
  for (const auto& r : rows) {
    const auto text = rendered(r.source);
    ASSERT_FALSE(text) << r.why;
    EXPECT_NE(text.error().message.find(r.expected), std::string::npos)
        << r.why << ": " << text.error().message;
  }
}

TEST(jinja, ends_in_words_wherever_it_runs_out_of_room) {
  for (const char* source :
       {"{{ ('xy' * 40)|reverse }}", "{% for c in 'xy' * 40 %}{{ c.upper() }}{% endfor %}",
        "{{ ('xy' * 40)|map('upper')|join|list|sort }}",
        "{{ 'a-' * 30 ~ ('b' * 9).partition('b') }}", "{{ '%s %(a)r' % {'a': 'xy' * 40} }}",
        "{{ ('xy,' * 20).split(',')|batch(2)|list }}"})
    for (uint64_t room = 0; room < 4000; room += 7) {
      const auto text = rendered(source, {.made_bytes = room});
      EXPECT_TRUE(text || text.error().message.starts_with("line 1: ")) << source;
    }
}

}  // namespace
}  // namespace bitnet::jinja
