// No template takes more memory than it may, whatever it builds: what it builds is counted before.
#include "../counted_heap.hpp"

#include <gtest/gtest.h>

#include <string>

#include "jinja/template.hpp"

namespace bitnet::jinja {
namespace {

constexpr uint64_t of_the_program = 64 << 10;  // messages, and objects that are few

std::string times(std::size_t n, std::string_view part) {
  std::string out;
  for (std::size_t i = 0; i < n; ++i) out += part;
  return out;
}

// Most end where their room does; those that do not are there for what they hold until then.
const std::string worst[] = {
    "{{ 'x' * 99999999 }}",
    "{% set x = 'x' * 999999 %}{% for i in range(9999) %}{{ x }}{% endfor %}",
    "{% set x = 'x' * 99999 %}{{ x ~ x ~ x ~ x ~ x ~ x ~ x ~ x ~ x ~ x ~ x ~ x ~ x ~ x ~ x ~ x }}",
    "{{ ('x' * 399999)|list|length }}",
    "{{ ('é' * 999999)[::-1]|length }}",
    "{{ ('\\x01' * 999999)|tojson }}",
    "{{ ['\\x01' * 999999]|string }}",
    "{{ ('\"' * 999999)|e }}",
    "{{ ('ɐ' * 999999)|upper }}",
    "{{ ('\\n' * 999999).splitlines()|length }}",
    "{{ ('\\n' * 999999)|indent(99, true, true) }}",
    "{{ ('x ' * 499999).split()|length }}",
    "{{ ('x' * 499999).split('x')|length }}",
    "{{ ('x' * 499999).rsplit('x')|length }}",
    "{{ ('x' * 999999).replace('x', 'yyyyyyyyyyyyyyyyyyy') }}",
    "{{ ('x' * 999999).replace('', 'yyyyyyyyyyyyyyyyyyy') }}",
    "{{ ('x' * 999999).strip('é' * 999999) }}",
    "{{ 'x' in 'y' * 999999 }}{{ 'y' * 499999 in 'y' * 999999 }}",
    "{{ ('x' * 999999)|int }}{{ ('1' * 999999)|float }}",
    "{{ '%9999999s' % 1 }}",
    "{{ '%-9999999s' % 1 }}",
    "{{ '%.9999999d' % 1 }}",
    "{{ '%.999999f' % 1 }}",
    "{{ '%a' % ('é' * 999999) }}",
    "{{ range(99999)|list|length }}{{ range(99999)|list|length }}",
    "{{ [1] * 9999999 }}",
    "{{ [[]] * 299999 }}",
    "{% set x = range(99999) %}{{ x + x + x + x }}",
    "{% set x = [1] * 99999 %}{{ x|sort|length }}{{ x|unique|length }}{{ x|batch(1)|length }}",
    "{% set x = ('x' * 29999)|list %}{{ x|sort|length }}{{ x|map('upper')|list|length }}",
    "{% set x = ('x' * 29999)|list %}{{ x|select|list|length }}{{ x|reverse|list|length }}",
    "{{ ('x' * 29999)|map('string')|join('-----------------------') }}",
    "{% set n = namespace(x=[]) %}{% for i in range(99999) %}{% set n.x = [n.x, n.x][1] + [i] %}"
    "{% endfor %}",
    "{% set n = namespace(x={}) %}{% for i in range(99999) %}{% set n.x = dict(n.x, **{'k' ~ i: "
    "i}) %}"
    "{% endfor %}",
    "{% set n = namespace(x=[]) %}{% for i in range(9999) %}{% set n.x = n.x + [{i: i, 'a': i}] %}"
    "{% endfor %}",
    "{% set n = namespace(x=[]) %}{% for i in range(9999) %}{% set n.x = n.x + ['a'.upper] %}"
    "{% endfor %}",
    "{% set n = namespace(x=[]) %}{% for i in range(9999) %}{% set n.x = n.x + [missing] %}{% "
    "endfor %}",
    "{% set n = namespace(x=[]) %}{% for i in range(9999) %}{% set n.x = n.x + [namespace(a=i)] %}"
    "{% endfor %}",
    "{% for i in range(99999) %}{% macro m(a, b=1) %}{% set c = 1 %}{% endmacro %}{% set x = i %}"
    "{% endfor %}",
    "{% macro m(a, b, c, d, e, f, g, h) %}{{ m(a, b, c, d, e, f, g, h) if loop }}{% set i = 'x' * "
    "99999 %}"
    "{{ m(i, i) }}{% endmacro %}{{ m() }}",
    "{% macro m() %}{{ varargs }}{% endmacro %}{{ m(*range(99999)) }}",
    "{% macro m() %}{{ kwargs }}{% endmacro %}{{ m(**dict(('x' * 9999)|list|map('list')|list and "
    "{})) }}",
    "{% macro m() %}{{ caller() }}{% endmacro %}{% call m() %}{{ 'x' * 9999999 }}{% endcall %}",
    "{% set x %}{% for i in range(99999) %}{{ i }} and so on and so on {% endfor %}{% endset %}{{ "
    "x }}",
    "{% filter upper %}{% for i in range(99999) %}{{ i }} and so on and so {% endfor %}{% "
    "endfilter %}",
    "{% for i in range(99999) %}{% for j in range(9) if j %}{{ loop.changed(i, j) }}{% endfor %}{% "
    "endfor %}",
    "{{ {'a': range(9999)}|tojson(indent=64) }}",
    "{{ ({'k' * 99999: 1}|items|list * 99)|map('list')|list|string }}",
    "{% set k = 'k' * 99999 %}{% set n = namespace(d={}) %}{% for i in range(999) %}"
    "{% set n.d = dict(n.d, **{k ~ i: i}) %}{% endfor %}",
    "{{ ('a.' * 99999 ~ 'a').partition('.')|length }}{{ ('a' * 999999).title()|length }}",
    "{{ range(9999)|map('string')|map('list')|list|length }}",
};

TEST(memory, of_a_template_stays_below_what_it_may_take) {
  constexpr uint64_t bound = 4 << 20;
  for (const std::string& source : worst) {
    const auto parsed = chat_template::parse(source);
    ASSERT_TRUE(parsed) << source << ": " << parsed.error().message;
    const testing_support::heap_use heap;
    const auto text = parsed->render({}, 0, {.made_bytes = bound});
    EXPECT_LE(heap.peak(), bound + of_the_program) << source;
    if (!text) {
      EXPECT_EQ(text.error().status, BITNET_UNSUPPORTED) << source << ": " << text.error().message;
    }
  }
}

TEST(memory, of_a_template_is_256_mib_at_most) {
  for (const char* source :
       {"{% set n=namespace(s='x') %}{% for i in range(60) %}{% set n.s=n.s+n.s %}{% endfor %}",
        "{{ ('x' * 59999999) ~ ('x' * 59999999) }}", "{{ ('\\x01' * 39999999)|tojson }}"}) {
    const testing_support::heap_use heap;
    const auto parsed = chat_template::parse(source);
    ASSERT_TRUE(parsed);
    const auto text = parsed->render({}, 0);
    ASSERT_FALSE(text) << source;
    EXPECT_NE(text.error().message.find("more than 256 MiB"), std::string::npos)
        << text.error().message;
    EXPECT_LE(heap.peak(), (uint64_t{256} << 20) + of_the_program) << source;
  }
}

TEST(memory, of_what_is_parsed_is_bounded) {
  for (const char* part : {"{{1}}", "{%if 1%}{%endif%}", "{{[[],[]]}}", "{{a.b(c=1)|d}}",
                           "{%macro m(a=1)%}{%endmacro%}"}) {
    const testing_support::heap_use heap;
    const auto parsed =
        chat_template::parse(times((1 << 20) / std::string_view(part).size(), part));
    EXPECT_LE(heap.peak(), uint64_t{128} << 20) << part;
    if (!parsed) {
      EXPECT_NE(parsed.error().message.find("200000 words and signs"), std::string::npos);
    }
  }
  const auto call = chat_template::parse("{{ f(" + times(60'000, "a=1,") + "b=2) }}");
  EXPECT_FALSE(call) << "more words than a template may have";
}

}  // namespace
}  // namespace bitnet::jinja
