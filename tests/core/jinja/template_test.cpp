// A few rows with expectations by hand, and the limits. tests/jinja has the judge.
#include "jinja/template.hpp"

#include <gtest/gtest.h>

namespace bitnet::jinja {
namespace {

result<std::string> rendered(std::string_view source, const limits& bounds = {}) {
  auto parsed = chat_template::parse(source);
  if (!parsed) return std::unexpected(parsed.error());
  auto text = parsed->render({}, 0, bounds);
  if (!text) return std::unexpected(text.error());
  return text->bytes();
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

// What came from variables, between braces.
std::string with_braces(const marked_text& text) {
  std::string out = text.bytes();
  const auto ranges = text.message_ranges();
  for (auto r = ranges.rbegin(); r != ranges.rend(); ++r) {
    out.insert(r->end, 1, '}');
    out.insert(r->begin, 1, '{');
  }
  return out;
}

const struct {
  const char* why;
  const char* source;
  const char* expected;
} origins[] = {
    {"written", "<s>{{ m }}</s>", "<s>{Aé b}</s>"},
    {"a token of the vocabulary", "{{ bos_token }}{{ m }}", "<s>{Aé b}"},
    {"+ and ~", "{{ '<' + m + '>' }}{{ '<' ~ m ~ '>' }}", "<{Aé b}><{Aé b}>"},
    {"adding up in a loop",
     "{% set n=namespace(s='') %}{% for i in [m, 'x', m] %}{% set n.s = n.s ~ i %}{% endfor %}"
     "{{ n.s }}",
     "{Aé b}x{Aé b}"},
    {"parts of a mixed text", "{{ ('<' ~ m ~ '>')[1:4] }}{{ ('<' ~ m ~ '>')[3:] }}", "{Aé  b}>"},
    {"backwards, and by steps", "{{ ('<' ~ m ~ '>')[::-1] }}{{ ('<' ~ m)|reverse }}",
     ">{b éA}<{b éA}<"},
    {"a character", "{{ ('<' ~ m)[0] }}{{ ('<' ~ m)[2] }}{{ m|first }}{{ (m ~ '>')|last }}",
     "<{éA}>"},
    {"by characters", "{% for c in '<' ~ m %}{{ c }}|{% endfor %}", "<|{A}|{é}|{ }|{b}|"},
    {"strip", "{{ ('  ' ~ m ~ ' x ').strip() }}{{ (m ~ '<<').rstrip('<') }}{{ (' ' ~ m)|trim }}",
     "{Aé b} x{Aé bAé b}"},
    {"split and join", "{{ ('<' ~ m ~ '>').split(' ')|join('/') }}", "<{Aé}/{b}>"},
    {"split at white space", "{{ ('x ' ~ m)|string|trim }}{{ ('x ' ~ m).split()|join('') }}",
     "x {Aé b}x{Aéb}"},
    {"partition", "{% for p in ('<' ~ m ~ '>').partition(' ') %}{{ p }}|{% endfor %}",
     "<{Aé}|{ }|{b}>|"},
    {"join of a message", "{{ m.join(['<', '>']) }}", "<{Aé b}>"},
    {"replace", "{{ ('<' ~ m ~ '>').replace('b', '<|x|>') }}{{ '<x>'|replace('x', m) }}",
     "<{Aé }<|x|>><{Aé b}>"},
    {"replace of nothing", "{{ '<>'.replace('', m) }}", "{Aé b}<{Aé b}>{Aé b}"},
    {"other cases", "{{ ('<x' ~ m ~ 'ß>')|upper }}{{ ('ß' ~ m).title() }}", "<X{AÉ B}SS>Ss{aé B}"},
    {"the word before a message", "{{ ('xY' ~ m)|capitalize }}{{ ('X' ~ m).lower() }}",
     "Xy{aé b}x{aé b}"},
    {"prefix and suffix", "{{ ('<' ~ m).removeprefix('<') }}{{ (m ~ '>').removesuffix('>') }}",
     "{Aé bAé b}"},
    {"lines", "{% for l in ('<' ~ m ~ '\n' ~ m).splitlines() %}{{ l }};{% endfor %}",
     "<{Aé b};{Aé b};"},
    {"indent", "{{ ('<\n' ~ m)|indent(2) }}{{ ('<\n>')|indent(m) }}", "<\n  {Aé b}<\n{Aé b}>"},
    {"%", "{{ '<%s|%5.2s>' % (m, m) }}{{ (m ~ '%s') % '<' }}{{ '%r' % m }}",
     "<{Aé b}|   {Aé}>{Aé b}<{'Aé b'}"},
    {"format", "{{ '<%s>'|format(m) }}{{ '%(a)s%%'|format(a=m) }}", "<{Aé b}>{Aé b}%"},
    {"escape", "{{ ('<' ~ m)|e }}", "&lt;{Aé b}"},
    {"times", "{{ ('<' ~ m) * 2 }}{{ m * 2 }}", "<{Aé b}<{Aé bAé bAé b}"},
    {"macros and blocks",
     "{% macro f(x) %}<{{ x }}{{ caller() }}>{% endmacro %}{% call f(m) %}!{{ m }}{% endcall %}"
     "{% set b %}<{{ m }}>{% endset %}{{ b }}{% filter upper %}x{{ m }}{% endfilter %}",
     "<{Aé b}!{Aé b}><{Aé b}>X{AÉ B}"},
    {"numbers count as a message's: their origin is unknown", "<{{ 1 }}{{ m|length }}>", "<{14}>"},
    {"what is written out whole", "{{ {'a': m}|tojson }}{{ ['<', m] }}",
     "{{\"a\": \"Aé b\"}['<', 'Aé b']}"},
    {"the same without a message", "{{ {'a': '<'}|tojson }}{{ ['<'] }}", "{\"a\": \"<\"}['<']"},
    {"what a message only chooses", "{% if m == 'Aé b' %}<{{ {'Aé b': '|'}[m] }}>{% endif %}",
     "<|>"},
    {"the clock", "{{ strftime_now('%Y')|length }}{{ strftime_now('x') }}{{ strftime_now(m) }}",
     "{4}x{Aé b}"},
    {"sorted, unique, mapped",
     "{{ ['<', m, '<']|unique|join }}{{ [m, '<']|sort|join }}{{ [m]|map('upper')|join('<') }}",
     "<{Aé b}<{Aé bAÉ B}"},
    {"a default", "{{ nothing|default('<') }}{{ m|default('<') }}{{ nothing or m }}",
     "<{Aé bAé b}"},
};

TEST(jinja, each_character_keeps_its_origin) {
  dict variables;
  variables.set("m", "Aé b");
  variables.set("bos_token", marked_text("<s>", origin::own));
  for (const auto& r : origins) {
    const auto parsed = chat_template::parse(r.source);
    ASSERT_TRUE(parsed) << r.why << ": " << parsed.error().message;
    const auto text = parsed->render(variables, 0);
    ASSERT_TRUE(text) << r.why << ": " << text.error().message;
    EXPECT_EQ(with_braces(*text), r.expected) << r.why;
  }
}

TEST(jinja, rejects_with_the_line) {
  const struct {
    const char* why;
    std::string source;
    const char* expected;
  } rows[] = {
      {"unknown filter", "\n\n{{ 1|frob }}", "line 3: the filter 'frob'"},
      {"open block", "a\n{% if 1 %}", "line 2: expected {% endif %}"},
      {"nothing is changed", "{{ [1].append(2) }}", "rejected"},
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
