#include "jinja/evaluator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>

#include "jinja/arithmetic.hpp"
#include "jinja/filters.hpp"
#include "jinja/functions.hpp"
#include "jinja/operations.hpp"

namespace bitnet::jinja {
namespace {

using kind = value::kind;

// The names of a block; those of the blocks around it lie above.
struct scope {
  std::map<std::string, value, std::less<>> names;
  std::shared_ptr<scope> above;
};
using scope_ptr = std::shared_ptr<scope>;

class loop_state : public object {
 public:
  loop_state(sequence items, uint32_t depth) : items_(std::move(items)), depth_(depth) {}

  [[nodiscard]] std::string_view type_name() const override { return "LoopContext"; }
  [[nodiscard]] const sequence& items() const { return items_; }
  [[nodiscard]] uint32_t depth() const { return depth_; }
  void go_to(std::size_t index) { index_ = index; }

  std::optional<value> attribute(rendering& /*at*/, const std::string& name) override {
    const auto n = static_cast<int64_t>(items_.size());
    const auto i = static_cast<int64_t>(index_);
    if (name == "index") return value(i + 1);
    if (name == "index0") return value(i);
    if (name == "first") return value(i == 0);
    if (name == "last") return value(i + 1 == n);
    if (name == "length") return value(n);
    if (name == "revindex") return value(n - i);
    if (name == "revindex0") return value(n - i - 1);
    if (name == "depth") return value(int64_t{depth_});
    if (name == "depth0") return value(int64_t{depth_} - 1);
    if (name == "previtem")
      return i > 0 ? items_[index_ - 1] : value::undefined("there is no previous item");
    if (name == "nextitem")
      return i + 1 < n ? items_[index_ + 1] : value::undefined("there is no next item");
    if (name == "cycle")
      return value(function{"cycle", [this](rendering& in, arguments& given) {
                              if (given.positional.empty())
                                return in.wrong("loop.cycle needs values");
                              return given.positional[index_ % given.positional.size()];
                            }});
    if (name == "changed")
      return value(function{"changed", [this](rendering& in, arguments& given) -> value {
                              const value now = in.tuple(given.positional);
                              if (last_ && equal(in, *last_, now)) return false;
                              last_ = now;
                              return true;
                            }});
    return std::nullopt;
  }

 private:
  sequence items_;
  std::optional<value> last_;  // what `changed` was given
  std::size_t index_ = 0;
  uint32_t depth_;
};

// What a macro needs when it is called. Owned by the rendering, as it holds names that hold it.
class macro_state : public object {
 public:
  macro_state(std::shared_ptr<const macro_syntax> syntax, scope_ptr around)
      : syntax_(std::move(syntax)), around_(std::move(around)) {}
  [[nodiscard]] std::string_view type_name() const override { return "Macro"; }
  std::optional<value> attribute(rendering& /*at*/, const std::string& name) override {
    return name == "name" ? std::optional(value(syntax_->name)) : std::nullopt;
  }
  [[nodiscard]] const macro_syntax& syntax() const { return *syntax_; }
  [[nodiscard]] const scope_ptr& around() const { return around_; }

 private:
  std::shared_ptr<const macro_syntax> syntax_;
  scope_ptr around_;
};

enum class flow : uint8_t { on, leave, next };

class evaluator {
 public:
  evaluator(rendering& at, const dict& variables)
      : at_(at), variables_(variables), scope_(std::make_shared<scope>()) {}

  marked_text run(const body& all) {
    marked_text out;
    out_ = &out;
    execute(all);
    out_ = nullptr;
    return out;
  }

 private:
  // ---- expressions

  value look_up(const std::string& name) const {
    for (const scope* s = scope_.get(); s != nullptr; s = s->above.get())
      if (const auto found = s->names.find(name); found != s->names.end()) return found->second;
    if (const value* found = variables_.find(std::string_view(name))) return *found;
    const auto& functions = global_functions();
    if (const auto found = functions.find(name); found != functions.end()) return found->second;
    return value::undefined(fmt::format("'{}' is undefined", name.substr(0, 80)));
  }

  value get(const expression& e) {
    const rendering::level deeper(at_);
    if (!at_.step()) return {};
    at_.set_line(e.line);
    switch (e.what) {
      case expression::kind::constant:
        return e.constant;
      case expression::kind::name:
        return look_up(e.name);
      case expression::kind::list:
        return at_.list(all_of(e));
      case expression::kind::tuple:
        return at_.tuple(all_of(e));
      case expression::kind::dict:
        return dict_of(e);
      case expression::kind::plus:
        return positive(at_, get(*e.parts[0]));
      case expression::kind::minus:
        return negative(at_, get(*e.parts[0]));
      case expression::kind::inversion:
        return !truth(get(*e.parts[0]));
      case expression::kind::both:
      case expression::kind::either:
        return decided(e);
      case expression::kind::arithmetic: {
        const value left = get(*e.parts[0]);
        return arithmetic(at_, e.name, left, get(*e.parts[1]));
      }
      case expression::kind::concat:
        return joined(e);
      case expression::kind::compare:
        return compared(e);
      case expression::kind::conditional:
        return chosen(e);
      case expression::kind::item: {
        const value of = get(*e.parts[0]);
        return item(at_, of, get(*e.parts[1]));
      }
      case expression::kind::slice:
        return sliced(e);
      case expression::kind::attribute:
        return attribute(at_, get(*e.parts[0]), e.name);
      case expression::kind::filter:
        return after_filter(e);
      case expression::kind::test:
        return passes(e);
      case expression::kind::call:
        return answer_of(e);
    }
    return {};
  }

  // Of `and` and `or`: the left side where it decides, and else the right one.
  value decided(const expression& e) {
    value left = get(*e.parts[0]);
    return truth(left) == (e.what == expression::kind::either) ? left : get(*e.parts[1]);
  }

  value joined(const expression& e) {
    marked_text out;
    for (const auto& part : e.parts) out.append(str(at_, get(*part)));
    return at_.text(std::move(out));
  }

  value chosen(const expression& e) {
    if (truth(get(*e.parts[0]))) return get(*e.parts[1]);
    if (e.parts[2]) return get(*e.parts[2]);
    return value::undefined("the inline if has no else");
  }

  value sliced(const expression& e) {
    const value of = get(*e.parts[0]);
    value bounds[3];
    for (std::size_t i = 1; i < e.parts.size(); ++i)
      if (e.parts[i]) bounds[i - 1] = get(*e.parts[i]);
    return slice(at_, of, bounds[0], bounds[1], bounds[2]);
  }

  value after_filter(const expression& e) {
    const value of = e.parts[0] ? get(*e.parts[0]) : filter_input_;
    arguments given = arguments_of(e);
    return at_.ok() ? filtered(at_, e.name, of, given) : value();
  }

  bool passes(const expression& e) {
    const value of = get(*e.parts[0]);
    arguments given = arguments_of(e);
    return at_.ok() && tested(at_, e.name, of, given);
  }

  value answer_of(const expression& e) {
    const value what = get(*e.parts[0]);
    arguments given = arguments_of(e);
    at_.set_line(e.line);
    return at_.ok() ? call_any(what, given) : value();
  }

  sequence all_of(const expression& e) {
    sequence out;
    for (const auto& part : e.parts) out.push_back(get(*part));
    return out;
  }

  value dict_of(const expression& e) {
    dict out;
    for (std::size_t i = 0; i + 1 < e.parts.size(); i += 2) {
      const value key = get(*e.parts[i]);
      if (!out.set(key, get(*e.parts[i + 1])))
        return at_.wrong(fmt::format("a '{}' cannot be a key", type_name(key)));
    }
    return at_.map(std::move(out));
  }

  value compared(const expression& e) {
    value left = get(*e.parts[0]);
    for (std::size_t i = 0; i < e.words.size(); ++i) {
      value right = get(*e.parts[i + 1]);
      if (!at_.ok() || !compare(at_, left, e.words[i], right)) return false;
      left = std::move(right);
    }
    return true;
  }

  arguments arguments_of(const expression& e) {
    arguments out;
    for (const argument& one : e.arguments) {
      const value v = get(*one.content);
      switch (one.how) {
        case argument::kind::positional:
          out.positional.push_back(v);
          break;
        case argument::kind::named:
          out.named.emplace_back(one.name, v);
          break;
        case argument::kind::spread_list:
          for (const value& each : items_of(at_, v)) out.positional.push_back(each);
          break;
        case argument::kind::spread_dict:
          if (!v.is(kind::dict)) {
            at_.wrong("** needs a dict");
            break;
          }
          for (const auto& [key, content] : v.entries().entries())
            out.named.emplace_back(str(at_, key).bytes(), content);
      }
    }
    return out;
  }

  value call_any(const value& what, arguments& given) {
    if (what.is(kind::object))
      if (auto* macro = dynamic_cast<macro_state*>(&what.thing())) return call_macro(*macro, given);
    return call(at_, what, given);
  }

  // ---- macros

  value call_macro(const macro_state& macro, arguments& given) {
    const rendering::level deeper(at_);
    const macro_syntax& syntax = macro.syntax();
    auto inner = std::make_shared<scope>();
    inner->above = macro.around();
    dict more;
    for (auto& [name, content] : given.named) {
      const bool known = std::ranges::any_of(syntax.parameters,
                                             [&](const parameter& p) { return p.name == name; });
      if (known || (name == "caller" && syntax.takes_caller))
        inner->names.insert_or_assign(name, content);
      else if (syntax.takes_dict)
        more.set(value(name), content);
      else
        return at_.wrong(
            fmt::format("the macro '{}' takes no argument '{}'", syntax.name, name.substr(0, 40)));
    }
    const std::size_t n = std::min(given.positional.size(), syntax.parameters.size());
    for (std::size_t i = 0; i < n; ++i)
      inner->names.insert_or_assign(syntax.parameters[i].name, given.positional[i]);
    if (given.positional.size() > n && !syntax.takes_list)
      return at_.wrong(fmt::format("the macro '{}' takes {} arguments at most", syntax.name, n));
    if (syntax.takes_list)
      inner->names["varargs"] = at_.tuple(
          {given.positional.begin() + static_cast<std::ptrdiff_t>(n), given.positional.end()});
    if (syntax.takes_dict) inner->names["kwargs"] = at_.map(std::move(more));
    const scope_ptr outer = std::exchange(scope_, inner);
    for (const parameter& one : syntax.parameters) {
      if (inner->names.contains(one.name)) continue;
      inner->names[one.name] = one.otherwise
                                   ? get(*one.otherwise)
                                   : value::undefined(fmt::format("parameter '{}' was not provided",
                                                                  one.name.substr(0, 80)));
    }
    const uint32_t loops = std::exchange(loop_depth_, 0);
    value out = at_.text(captured(*syntax.content));
    loop_depth_ = loops;
    scope_ = outer;
    return out;
  }

  value macro_of(const statement& s) {
    return {static_cast<object*>(at_.own<macro_state>(s.macro, scope_))};
  }

  // ---- statements

  // What is written has marks beside it.
  void write(const marked_text& text) {
    if (at_.room(2 * text.size())) out_->append(text);
  }

  marked_text captured(const body& all) {
    marked_text out;
    marked_text* const outer = std::exchange(out_, &out);
    execute(all);
    out_ = outer;
    return out;
  }

  template <class F>
  auto in_own_scope(F&& work) {
    auto inner = std::make_shared<scope>();
    inner->above = scope_;
    const scope_ptr outer = std::exchange(scope_, std::move(inner));
    auto done = work();
    scope_ = outer;
    return done;
  }

  flow execute(const body& all) {
    const rendering::level deeper(at_);
    for (const statement& one : all) {
      if (!at_.step()) return flow::leave;
      at_.set_line(one.line);
      const flow went = execute(one);
      if (!at_.ok()) return flow::leave;
      if (went != flow::on) return went;
    }
    return flow::on;
  }

  flow execute(const statement& s) {
    using sort = statement::kind;
    switch (s.what) {
      case sort::text:
        write(s.text);
        break;
      case sort::output:
        write(str(at_, get(*s.expressions[0])));
        break;
      case sort::branch:
        for (std::size_t i = 0; i < s.bodies.size(); ++i)
          if (i >= s.expressions.size() || truth(get(*s.expressions[i])))
            return at_.ok() ? execute(s.bodies[i]) : flow::leave;
        break;
      case sort::loop:
        return loop(s);
      case sort::assign:
        assign(s.targets[0], get(*s.expressions[0]));
        break;
      case sort::assign_block: {
        const value content = in_own_scope([&] { return at_.text(captured(s.bodies[0])); });
        assign(s.targets[0], s.expressions[0] ? through(*s.expressions[0], content) : content);
        break;
      }
      case sort::define:
        scope_->names.insert_or_assign(s.macro->name, macro_of(s));
        break;
      case sort::call:
        write(str(at_, call_with_caller(*s.expressions[0], macro_of(s))));
        break;
      case sort::filter: {
        const value content = in_own_scope([&] { return at_.text(captured(s.bodies[0])); });
        write(str(at_, through(*s.expressions[0], content)));
        break;
      }
      case sort::with: {
        sequence values;
        for (const auto& e : s.expressions) values.push_back(get(*e));
        return in_own_scope([&] {
          for (std::size_t i = 0; i < values.size(); ++i) assign(s.targets[i], values[i]);
          return execute(s.bodies[0]);
        });
      }
      case sort::scope:
        return in_own_scope([&] { return execute(s.bodies[0]); });
      case sort::leave:
        return flow::leave;
      case sort::next:
        return flow::next;
    }
    return flow::on;
  }

  // The caller goes to the outermost call, not to those in its arguments.
  value call_with_caller(const expression& e, const value& caller) {
    const value what = get(*e.parts[0]);
    arguments given = arguments_of(e);
    given.named.emplace_back("caller", caller);
    return at_.ok() ? call_any(what, given) : value();
  }

  value through(const expression& filters, const value& content) {
    const value outer = std::exchange(filter_input_, content);
    value out = get(filters);
    filter_input_ = outer;
    return out;
  }

  flow loop(const statement& s) {
    sequence all = items_of(at_, get(*s.expressions[0]));
    if (s.expressions[1]) {
      sequence kept;
      for (const value& one : all) {
        if (!at_.step()) return flow::leave;
        const bool keep = in_own_scope([&] {
          assign(s.targets[0], one);
          return truth(get(*s.expressions[1]));
        });
        if (keep) kept.push_back(one);
      }
      all = std::move(kept);
    }
    if (!at_.ok()) return flow::leave;
    if (all.empty())
      return s.bodies.size() > 1 ? in_own_scope([&] { return execute(s.bodies[1]); }) : flow::on;
    auto* state = at_.own<loop_state>(std::move(all), ++loop_depth_);
    for (std::size_t i = 0; i < state->items().size() && at_.step(); ++i) {
      state->go_to(i);
      const flow went = in_own_scope([&] {
        scope_->names["loop"] = value(static_cast<object*>(state));
        assign(s.targets[0], state->items()[i]);
        return execute(s.bodies[0]);
      });
      if (went == flow::leave) break;
    }
    --loop_depth_;
    return flow::on;
  }

  void assign(const target& to, const value& v) {
    if (!at_.ok()) return;
    if (!to.parts.empty()) {
      const sequence all = items_of(at_, v);
      if (all.size() != to.parts.size()) {
        at_.wrong(
            fmt::format("expected {} values to unpack, found {}", to.parts.size(), all.size()));
        return;
      }
      for (std::size_t i = 0; i < all.size(); ++i) assign(to.parts[i], all[i]);
    } else if (!to.attribute.empty()) {
      const value of = look_up(to.name);
      if (!of.is(kind::object) || !of.thing().set(to.attribute, v))
        at_.wrong(fmt::format("'{}' is no namespace, so nothing in it can be set",
                              to.name.substr(0, 80)));
    } else {
      scope_->names.insert_or_assign(to.name, v);
    }
  }

  rendering& at_;
  const dict& variables_;
  scope_ptr scope_;
  marked_text* out_ = nullptr;
  uint32_t loop_depth_ = 0;
  value filter_input_;
};

}  // namespace

marked_text evaluate(rendering& at, const body& all, const dict& variables) {
  return evaluator(at, variables).run(all);
}

}  // namespace bitnet::jinja
