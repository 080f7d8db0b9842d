// What a template does with a conversation takes steps and memory linear in its length, each
// operation of its own; steps are worth the same time whatever they are for, and room is asked for
// before it is taken. An operation without a row here is found.
#include "../growth.hpp"
#include "../counted_heap.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "jinja/evaluator.hpp"
#include "jinja/filters.hpp"
#include "jinja/functions.hpp"
#include "jinja/lexer.hpp"
#include "jinja/methods.hpp"
#include "jinja/parser.hpp"
#include "jinja/tests.hpp"

namespace bitnet::jinja {
namespace {

using testing_support::expect_linear;
using testing_support::times;

// Variables of size n: texts of one letter, of one that is two bytes, of words and lines and of
// digits; half of the first and a letter that it lacks; a list of numbers in no order and of short
// texts; a dict; dicts in a list; pairs in a list.
dict variables(std::size_t n) {
  dict out;
  out.set("u", times(n, "a"));
  out.set("h", times(n / 2, "a") + "b");
  out.set("g", "b" + times(n / 2, "a"));
  out.set("m", times(n, "é"));
  out.set("t", times(n / 4, "aB \n"));
  out.set("q", times(n / 2, "\"\x01"));
  out.set("s", times(n, "1"));
  out.set("n", static_cast<int64_t>(n));
  sequence l, w, p, r;
  dict d;
  for (std::size_t i = 0; i < n; ++i) {
    const std::string key = "k" + std::to_string(i);
    l.emplace_back(static_cast<int64_t>(i * 7919 % n));
    w.emplace_back(key);
    d.set(key, static_cast<int64_t>(i));
    dict one;
    one.set("a", static_cast<int64_t>(i));
    p.emplace_back(std::move(one));
    r.push_back(value::tuple({value(key), value(static_cast<int64_t>(i))}));
  }
  out.set("l", value::list(l));
  out.set("l2", value::list(std::move(l)));
  out.set("w", value::list(std::move(w)));
  out.set("p", value::list(std::move(p)));
  out.set("r", value::list(std::move(r)));
  out.set("d", d);
  out.set("d2", std::move(d));
  return out;
}

struct row {
  const char* of;
  const char* source;
};

const row rows[] = {
    {"filter abs", "{{ l|map('abs')|length }}"},
    {"filter batch", "{{ l|batch(3)|length }}"},
    {"filter batch", "{{ [1]|batch(n, 0)|length }}"},
    {"filter capitalize", "{{ m|capitalize|length }}"},
    {"filter count", "{{ m|count }}"},
    {"filter d", "{{ l|map('d', 1)|length }}"},
    {"filter default", "{{ (m|default(1))|length }}"},
    {"filter dictsort", "{{ d|dictsort|length }}"},
    {"filter e", "{{ (q|e)|length }}"},
    {"filter escape", "{{ (q|escape)|length }}"},
    {"filter first", "{{ l|first }}{{ m|first }}{{ d|first }}"},
    {"filter float", "{{ s|float }}"},
    {"filter format", "{{ '%s %c'|format(u, 'x')|length }}"},
    {"filter format", "{{ '%(k1)s'|format(**d) }}"},
    {"filter indent", "{{ t|indent(4, true, true)|length }}"},
    {"filter int", "{{ (s ~ 'x')|int }}"},
    {"filter items", "{{ d|items|length }}"},
    {"filter join", "{{ w|join(', ')|length }}"},
    {"filter join", "{{ p|join('-', attribute='a')|length }}"},
    {"filter last", "{{ l|last }}{{ m|last }}"},
    {"filter length", "{{ m|length }}{{ l|length }}"},
    {"filter list", "{{ m|list|length }}"},
    {"filter lower", "{{ m|lower|length }}"},
    {"filter map", "{{ p|map(attribute='a')|length }}"},
    {"filter map", "{{ w|map('upper')|length }}"},
    {"filter max", "{{ l|max }}"},
    {"filter min", "{{ w|min }}"},
    {"filter reject", "{{ l|reject('odd')|length }}"},
    {"filter rejectattr", "{{ p|rejectattr('a', 'eq', 3)|length }}"},
    {"filter replace", "{{ u|replace('a', 'bc')|length }}"},
    {"filter replace", "{{ u|replace(h, '')|length }}"},
    {"filter replace", "{{ u|replace('', '-')|length }}"},
    {"filter reverse", "{{ m|reverse|length }}{{ l|reverse|length }}"},
    {"filter round", "{{ l|map('round', 2)|length }}"},
    {"filter safe", "{{ (m|safe)|length }}"},
    {"filter select", "{{ l|select('gt', 3)|length }}"},
    {"filter selectattr", "{{ p|selectattr('a')|length }}"},
    {"filter sort", "{{ l|sort|length }}"},
    {"filter sort", "{{ w|sort(reverse=true)|length }}"},
    {"filter sort", "{{ p|sort(attribute='a')|length }}"},
    {"filter string", "{{ l|string|length }}{{ q|list|string|length }}"},
    {"filter sum", "{{ l|sum }}{{ p|sum(attribute='a') }}"},
    {"filter title", "{{ t|title|length }}"},
    {"filter tojson", "{{ p|tojson|length }}{{ q|tojson|length }}{{ m|tojson(true)|length }}"},
    {"filter tojson", "{{ d|tojson(indent=2, sort_keys=true)|length }}"},
    {"filter trim", "{{ u|trim('a') }}{{ u|trim(h) }}{{ t|trim|length }}"},
    {"filter unique", "{{ w|unique|length }}{{ l|unique|length }}"},
    {"filter upper", "{{ m|upper|length }}"},

    {"test ==", "{{ l|select('==', 1)|length }}"},
    {"test eq", "{{ l is eq(l2) }}{{ d is eq(d2) }}"},
    {"test equalto", "{{ r is equalto(r) }}"},
    {"test !=", "{{ l|select('!=', 1)|list|length }}"},
    {"test ne", "{{ l is ne(l2) }}"},
    {"test >", "{{ l|select('>', 1)|list|length }}"},
    {"test gt", "{{ l is gt(l2) }}"},
    {"test greaterthan", "{{ u is greaterthan(h) }}"},
    {"test >=", "{{ l|select('>=', 1)|list|length }}"},
    {"test ge", "{{ l is ge(l2) }}"},
    {"test <", "{{ l|select('<', 1)|list|length }}"},
    {"test lt", "{{ l is lt(l2) }}"},
    {"test lessthan", "{{ u is lessthan(h) }}"},
    {"test <=", "{{ l|select('<=', 1)|list|length }}"},
    {"test le", "{{ r is le(r) }}"},
    {"test in", "{{ h is in(u) }}{{ -1 is in(l) }}{{ u is in(d) }}"},
    {"test divisibleby", "{{ l|select('divisibleby', 3)|length }}"},
    {"test sameas", "{{ u is sameas(u) }}{{ l is sameas(l2) }}"},
    {"test boolean", "{{ l|select('boolean')|length }}"},
    {"test callable", "{{ l|select('callable')|length }}"},
    {"test defined", "{{ l|select('defined')|length }}"},
    {"test escaped", "{{ l|select('escaped')|length }}"},
    {"test even", "{{ l|select('even')|length }}"},
    {"test false", "{{ l|select('false')|length }}"},
    {"test float", "{{ l|select('float')|length }}"},
    {"test integer", "{{ l|select('integer')|length }}"},
    {"test iterable", "{{ l|select('iterable')|length }}"},
    {"test lower", "{{ m is lower }}"},
    {"test mapping", "{{ p|select('mapping')|length }}"},
    {"test none", "{{ l|select('none')|length }}"},
    {"test number", "{{ l|select('number')|length }}"},
    {"test odd", "{{ l|select('odd')|length }}"},
    {"test sequence", "{{ r|select('sequence')|length }}"},
    {"test string", "{{ w|select('string')|length }}"},
    {"test true", "{{ l|select('true')|length }}"},
    {"test undefined", "{{ l|select('undefined')|length }}"},
    {"test upper", "{{ m is upper }}"},

    {"method str.capitalize", "{{ m.capitalize()|length }}"},
    {"method str.count", "{{ u.count('a') }}{{ u.count(h) }}{{ m.count('', 1) }}"},
    {"method str.endswith", "{{ u.endswith(h) }}{{ m.endswith(('é', 'x'), 1) }}"},
    {"method str.find", "{{ u.find(h) }}{{ m.find('x', 3, -3) }}"},
    {"method str.index", "{{ (u + h).index(h) }}"},
    {"method str.isalpha", "{{ m.isalpha() }}"},
    {"method str.isdigit", "{{ s.isdigit() }}"},
    {"method str.islower", "{{ m.islower() }}"},
    {"method str.isspace", "{{ (' ' * n).isspace() }}"},
    {"method str.isupper", "{{ m.upper().isupper() }}"},
    {"method str.join", "{{ ','.join(w)|length }}"},
    {"method str.lower", "{{ m.lower()|length }}"},
    {"method str.lstrip", "{{ u.lstrip(h) }}{{ (' ' * n).lstrip() }}"},
    {"method str.partition", "{{ u.partition(h)|length }}"},
    {"method str.removeprefix", "{{ u.removeprefix(h[:-1])|length }}"},
    {"method str.removesuffix", "{{ u.removesuffix(h[:-1])|length }}"},
    {"method str.replace", "{{ u.replace('aa', 'b')|length }}{{ u.replace(h, 'b')|length }}"},
    {"method str.rfind", "{{ u.rfind(g) }}"},
    {"method str.rindex", "{{ (g + u).rindex(g) }}"},
    {"method str.rpartition", "{{ u.rpartition(g)|length }}"},
    {"method str.rsplit", "{{ t.rsplit()|length }}{{ u.rsplit('a')|length }}{{ u.rsplit(g) }}"},
    {"method str.rstrip", "{{ u.rstrip(h) }}{{ (' ' * n).rstrip() }}"},
    {"method str.split", "{{ t.split()|length }}{{ u.split('a')|length }}{{ u.split(h)|length }}"},
    {"method str.splitlines", "{{ t.splitlines()|length }}{{ t.splitlines(true)|length }}"},
    {"method str.startswith", "{{ u.startswith(h) }}{{ u.startswith(('b', h)) }}"},
    {"method str.strip", "{{ u.strip(m + h) }}{{ (' ' * n).strip() }}"},
    {"method str.title", "{{ t.title()|length }}"},
    {"method str.upper", "{{ m.upper()|length }}"},
    {"method dict.copy", "{{ d.copy()|length }}"},
    {"method dict.get", "{{ d.get(u) }}{% for k in w %}{{ d.get(k) }}{% endfor %}"},
    {"method dict.items", "{{ d.items()|length }}"},
    {"method dict.keys", "{{ d.keys()|length }}"},
    {"method dict.values", "{{ d.values()|length }}"},
    {"method list.copy", "{{ l.copy()|length }}"},
    {"method list.count", "{{ l.count(3) }}"},
    {"method list.index", "{{ l.index(0) }}"},

    {"function dict", "{{ dict(d, a=1)|length }}"},
    {"function namespace", "{% set x = namespace(**d) %}{{ x.k3 }}"},
    {"function raise_exception", "{{ raise_exception(u) if u == h else 1 }}"},
    {"function range", "{{ range(n)|length }}"},
    {"function strftime_now", "{% for i in l %}{{ strftime_now('%Y') }}{% endfor %}"},

    {"sign +", "{{ (u + m)|length }}{{ (l + l2)|length }}"},
    {"sign -", "{% for i in l %}{{ i - 1 }}{% endfor %}"},
    {"sign *", "{{ ('ab' * n)|length }}{{ ([1, 2] * n)|length }}"},
    {"sign /", "{% for i in l %}{{ i / 3 }}{% endfor %}"},
    {"sign //", "{% for i in l %}{{ i // 3 }}{% endfor %}"},
    {"sign %", "{{ ('%s %%' % u)|length }}{{ '%*s' % (n, 1) }}{{ ('%a' % m)|length }}"},
    {"sign %", "{{ '%.*d' % (n, 1) }}{{ '%.*f' % (n, 0.1) }}{{ '%(k2)s %(k3)r' % d }}"},
    {"sign %", "{{ ('%% %%' * n) % () }}{{ '%.9s' % m }}"},
    {"sign **", "{% for i in l %}{{ 2 ** 62 }}{{ 1 ** n }}{% endfor %}"},
    {"sign ~", "{{ (u ~ l ~ m)|length }}"},
    {"sign ==", "{{ u == u }}{{ l == l2 }}{{ d == d2 }}"},
    {"sign !=", "{{ u != h }}{{ r != r }}"},
    {"sign <", "{{ u < h }}{{ l < l2 }}"},
    {"sign >", "{{ u > u }}{{ l > l2 }}"},
    {"sign <=", "{{ u <= u }}{{ r <= r }}"},
    {"sign >=", "{{ u >= u }}{{ w >= w }}"},

    {"constant", "{% for i in l %}{{ 'x' }}{% endfor %}"},
    {"name", "{% for i in l %}{{ u2 }}{{ i }}{% endfor %}"},
    {"list", "{% for i in l %}{{ [i, i] }}{% endfor %}"},
    {"tuple", "{% for i in l %}{{ (i, i) }}{% endfor %}"},
    {"dict", "{% for i in l %}{{ {'a': i} }}{% endfor %}{{ {u: 1, m: 2}|length }}"},
    {"plus", "{% for i in l %}{{ +i }}{% endfor %}"},
    {"minus", "{% for i in l %}{{ -i }}{% endfor %}"},
    {"inversion", "{% for i in l %}{{ not i }}{% endfor %}"},
    {"both", "{% for i in l %}{{ i and u and 1 }}{% endfor %}"},
    {"either", "{% for i in l %}{{ i or 1 }}{% endfor %}"},
    {"arithmetic", "{% for i in l %}{{ i * 2 + 1 }}{% endfor %}"},
    {"concat", "{% for i in l %}{{ i ~ 'x' }}{% endfor %}"},
    {"compare", "{{ h in u }}{{ h not in u }}{{ u in d }}{{ -1 in l }}{{ 1 < 2 < 3 }}"},
    {"conditional", "{% for i in l %}{{ i if i }}{{ 1 if i else 2 }}{% endfor %}"},
    {"item", "{{ m[n // 2] }}{{ m[-2] }}{{ d[u] }}{% for i in l %}{{ l[i] }}{% endfor %}"},
    {"slice", "{{ m[1:]|length }}{{ m[::-1]|length }}{{ m[:-3]|length }}{{ l[::2]|length }}"},
    {"attribute", "{% for i in p %}{{ i.a }}{{ i.b }}{% endfor %}"},
    {"filter", "{% for i in l %}{{ i|string }}{% endfor %}"},
    {"test", "{% for i in l %}{{ i is defined }}{% endfor %}"},
    {"call",
     "{% macro f() %}{{ varargs|length }}{{ kwargs|length }}{% endmacro %}{{ f(*l, **d) }}"},

    {"{% text %}", "{% for i in l %}some text{% endfor %}"},
    {"{% output %}", "{{ u }}{{ l }}{{ d }}"},
    {"{% branch %}", "{% for i in l %}{% if i %}a{% elif u %}b{% else %}c{% endif %}{% endfor %}"},
    {"{% loop %}", "{% for k, v in r if v %}{{ loop.index }}{{ loop.nextitem }}{% endfor %}"},
    {"{% loop %}", "{% for c in m %}{{ loop.cycle(1, 2) }}{{ loop.changed(c) }}{% endfor %}"},
    {"{% assign %}",
     "{% set x = namespace(a=0) %}{% for i in l %}{% set x.a = x.a + i %}{% endfor %}"},
    {"{% assign_block %}",
     "{% for i in l %}{% set x | upper %}a{{ i }}{% endset %}{{ x }}{% endfor %}"},
    {"{% define %}", "{% for i in l %}{% macro f() %}{{ i }}{% endmacro %}{{ f() }}{% endfor %}"},
    {"{% call %}",
     "{% macro f() %}{{ caller() }}{% endmacro %}{% for i in l %}{% call f() %}x{% endcall %}"
     "{% endfor %}"},
    {"{% filter %}", "{% filter upper %}{{ u }}{{ m }}{% endfilter %}"},
    {"{% with %}", "{% for i in l %}{% with a = i, b = u %}{{ a }}{% endwith %}{% endfor %}"},
    {"{% scope %}", "{% for i in l %}{% generation %}{{ i }}{% endgeneration %}{% endfor %}"},
    {"{% leave %}", "{% for i in l %}{% for j in [1, 2] %}{% break %}{% endfor %}{% endfor %}"},
    {"{% next %}", "{% for i in l %}{% continue %}{% endfor %}"},
};

constexpr const char* expressions[] = {
    "constant",  "name",  "list",      "tuple",      "dict",   "plus",    "minus",
    "inversion", "both",  "either",    "arithmetic", "concat", "compare", "conditional",
    "item",      "slice", "attribute", "filter",     "test",   "call"};
static_assert(std::size(expressions) == static_cast<std::size_t>(expression::kind::call) + 1);
constexpr const char* statements[] = {"text",         "output", "branch", "loop",   "assign",
                                      "assign_block", "define", "call",   "filter", "with",
                                      "scope",        "leave",  "next"};
static_assert(std::size(statements) == static_cast<std::size_t>(statement::kind::next) + 1);

std::set<std::string> all_operations() {
  std::set<std::string> out;
  for (const auto& name : filter_names()) out.insert("filter " + name);
  for (const auto& name : test_names()) out.insert("test " + name);
  for (const auto& name : method_names()) out.insert("method " + name);
  for (const auto& [name, run] : global_functions()) out.insert("function " + name);
  for (const std::string_view sign : all_signs)
    if (!std::string_view("=()[]{},:.|;").contains(sign)) out.insert("sign " + std::string(sign));
  for (const char* name : expressions) out.insert(name);
  for (const char* name : statements) out.insert(std::string("{% ") + name + " %}");
  return out;
}

struct cost {
  uint64_t steps = 0, made = 0, peak = 0;
};

cost cost_of(const body& all, const dict& given, const row& r) {
  const testing_support::heap_use heap;
  rendering at({}, 0);
  {
    const marked_text text = evaluate(at, all, given);
    EXPECT_TRUE(at.ok()) << r.of << ": " << r.source << ": " << at.trouble()->message;
  }
  return {at.steps(), at.most_bytes(), heap.peak()};
}

TEST(growth, has_a_row_for_each_operation) {
  std::set<std::string> missing = all_operations();
  for (const row& r : rows) missing.erase(r.of);
  for (const std::string& name : missing) ADD_FAILURE() << name << " has no row";
}

TEST(growth, of_steps_and_memory_is_linear) {
  constexpr std::size_t n = 512;
  const dict small = variables(n), large = variables(4 * n);
  for (const row& r : rows) {
    const auto parsed = parse_template(r.source);
    ASSERT_TRUE(parsed) << r.source << ": " << parsed.error().message;
    const cost a = cost_of(*parsed, small, r), b = cost_of(*parsed, large, r);
    // Sorting, and looking up, takes a little more than four times.
    EXPECT_LE(b.steps, 6 * a.steps + 64) << r.of << ": " << r.source;
    EXPECT_LE(b.made, 6 * a.made + 4096) << r.of << ": " << r.source;
    constexpr uint64_t of_the_program = 4096;
    EXPECT_LE(b.peak, b.made + of_the_program) << r.of << ": " << r.source;
  }
}

TEST(growth, of_time_is_linear) {
  constexpr std::size_t n = 256;
  const dict given[] = {variables(n), variables(16 * n)};
  for (const row& r : rows) {
    const auto parsed = parse_template(r.source);
    ASSERT_TRUE(parsed) << r.source;
    expect_linear(std::string(r.of) + ": " + r.source, n,
                  [&](std::size_t size) { cost_of(*parsed, given[size == n ? 0 : 1], r); });
  }
}

}  // namespace
}  // namespace bitnet::jinja
