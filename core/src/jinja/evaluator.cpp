#include "jinja/evaluator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "jinja/arithmetic.hpp"
#include "jinja/filters.hpp"
#include "jinja/functions.hpp"
#include "jinja/makers.hpp"
#include "jinja/operations.hpp"
#include "jinja/states.hpp"
#include "jinja/tests.hpp"

namespace bitnet::jinja {
namespace {

using kind = value::kind;

enum class flow : uint8_t { on, leave, next };

class evaluator {
 public:
  evaluator(rendering& at, const dict& variables)
      : at_(at), variables_(variables), scope_(std::make_shared<scope>(at, nullptr)) {}

  marked_text run(const body& all) { return captured(all); }

 private:
  // ---- expressions

  value look_up(const std::string& name) const {
    uint64_t scopes = 0;
    for (const scope* s = scope_.get(); s != nullptr; s = s->above(), ++scopes)
      if (const value* found = s->find(name); found != nullptr) return *found;
    if (!at_.step(scopes / 8) || !at_.look_up(name.size(), variables_.entries().size())) return {};
    if (const value* found = variables_.find(std::string_view(name))) return *found;
    const auto& functions = global_functions();
    if (const auto found = functions.find(name); found != functions.end()) return found->second;
    return at_.undefined(fmt::format("'{}' is undefined", name.substr(0, 80)));
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
        return all_of(e).list();
      case expression::kind::tuple:
        return all_of(e).tuple();
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

  // The value of `and` or `or`: the left side if it decides, else the right one.
  value decided(const expression& e) {
    value left = get(*e.parts[0]);
    return truth(left) == (e.what == expression::kind::either) ? left : get(*e.parts[1]);
  }

  value joined(const expression& e) {
    text_maker out(at_);
    for (const auto& part : e.parts) add_text(out, get(*part));
    return out.text();
  }

  // Adds str(v); a text is added without a copy.
  void add_text(text_maker& to, const value& v) {
    if (v.is(kind::text))
      at_.step() && to.add(v.marked());
    else
      to.add(str(at_, v));
  }

  value chosen(const expression& e) {
    if (truth(get(*e.parts[0]))) return get(*e.parts[1]);
    if (e.parts[2]) return get(*e.parts[2]);
    return at_.undefined("the inline if has no else");
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

  list_maker all_of(const expression& e) {
    list_maker out(at_);
    for (const auto& part : e.parts)
      if (!out.add(get(*part))) break;
    return out;
  }

  value dict_of(const expression& e) {
    dict out;
    for (std::size_t i = 0; i + 1 < e.parts.size(); i += 2) {
      const value key = get(*e.parts[i]);
      if (!at_.put(out, key, get(*e.parts[i + 1])))
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
    list_maker positional(at_);
    // Includes the room for the growing list.
    const auto add_named = [&](std::string name, const value& v) {
      constexpr uint64_t of_name = 3 * (sizeof(std::string) + sizeof(value));
      if (at_.room(of_name + name.size())) out.named.emplace_back(std::move(name), v);
    };
    for (const argument& one : e.arguments) {
      const value v = get(*one.content);
      if (!at_.ok()) break;
      switch (one.how) {
        case argument::kind::positional:
          positional.add(v);
          break;
        case argument::kind::named:
          add_named(one.name, v);
          break;
        case argument::kind::spread_list:
          for (const value& each : items_of(at_, v)) positional.add(each);
          break;
        case argument::kind::spread_dict:
          if (!v.is(kind::dict)) {
            at_.wrong("** needs a dict");
            break;
          }
          for (const auto& [key, content] : v.entries().entries())
            if (at_.ok()) add_named(str(at_, key).bytes(), content);
      }
    }
    out.positional = positional.take();
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
    auto inner = std::make_shared<scope>(at_, macro.around());
    dict more;
    for (const auto& [name, content] : given.named) {
      if (!at_.step() || !at_.look_up(name.size(), syntax.names.size())) return {};
      if (syntax.names.contains(name) || (name == "caller" && syntax.takes_caller))
        inner->set(name, content);
      else if (syntax.takes_dict)
        at_.put(more, at_.copy(name), content);
      else
        return at_.wrong(
            fmt::format("the macro '{}' takes no argument '{}'", syntax.name, name.substr(0, 40)));
    }
    const std::size_t n = std::min(given.positional.size(), syntax.parameters.size());
    for (std::size_t i = 0; i < n; ++i) inner->set(syntax.parameters[i].name, given.positional[i]);
    if (given.positional.size() > n && !syntax.takes_list)
      return at_.wrong(fmt::format("the macro '{}' takes {} arguments at most", syntax.name, n));
    if (syntax.takes_list) {
      list_maker rest(at_);
      for (std::size_t i = n; i < given.positional.size(); ++i) rest.add(given.positional[i]);
      inner->set("varargs", rest.tuple());
    }
    if (syntax.takes_dict) inner->set("kwargs", at_.map(std::move(more)));
    const scope_ptr outer = std::exchange(scope_, inner);
    for (const parameter& one : syntax.parameters) {
      if (!at_.step()) break;
      if (inner->find(one.name) != nullptr) continue;
      inner->set(one.name, one.otherwise
                               ? get(*one.otherwise)
                               : at_.undefined(fmt::format("parameter '{}' was not provided",
                                                           one.name.substr(0, 80))));
    }
    const uint32_t loops = std::exchange(loop_depth_, 0);
    value out = at_.kept(captured(*syntax.content));
    loop_depth_ = loops;
    scope_ = outer;
    return out;
  }

  value macro_of(const statement& s) {
    return {static_cast<object*>(at_.own<macro_state>(s.macro, scope_))};
  }

  // ---- statements

  void write(const value& v) { add_text(*out_, v); }

  marked_text captured(const body& all) {
    text_maker out(at_);
    text_maker* const outer = std::exchange(out_, &out);
    execute(all);
    out_ = outer;
    return out.take();
  }

  template <class F>
  auto in_own_scope(F&& work) {
    const scope_ptr outer = std::exchange(scope_, std::make_shared<scope>(at_, scope_));
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
        out_->add(s.text);
        break;
      case sort::output:
        write(get(*s.expressions[0]));
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
        const value content = in_own_scope([&] { return at_.kept(captured(s.bodies[0])); });
        assign(s.targets[0], s.expressions[0] ? through(*s.expressions[0], content) : content);
        break;
      }
      case sort::define:
        scope_->set(s.macro->name, macro_of(s));
        break;
      case sort::call:
        write(call_with_caller(*s.expressions[0], macro_of(s)));
        break;
      case sort::filter: {
        const value content = in_own_scope([&] { return at_.kept(captured(s.bodies[0])); });
        write(through(*s.expressions[0], content));
        break;
      }
      case sort::with: {
        list_maker values(at_);
        for (const auto& e : s.expressions) values.add(get(*e));
        return in_own_scope([&] {
          for (std::size_t i = 0; i < values.size(); ++i) assign(s.targets[i], values.items()[i]);
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

  // `caller` goes to the outermost call, not to calls in its arguments.
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
      list_maker kept(at_);
      for (const value& one : all) {
        if (!at_.step()) return flow::leave;
        const bool keep = in_own_scope([&] {
          assign(s.targets[0], one);
          return truth(get(*s.expressions[1]));
        });
        if (keep) kept.add(one);
      }
      all = kept.take();
    }
    if (!at_.ok()) return flow::leave;
    if (all.empty())
      return s.bodies.size() > 1 ? in_own_scope([&] { return execute(s.bodies[1]); }) : flow::on;
    auto* state = at_.own<loop_state>(std::move(all), ++loop_depth_);
    for (std::size_t i = 0; i < state->items().size() && at_.step(); ++i) {
      state->go_to(i);
      const flow went = in_own_scope([&] {
        scope_->set("loop", value(static_cast<object*>(state)));
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
      scope_->set(to.name, v);
    }
  }

  rendering& at_;
  const dict& variables_;
  scope_ptr scope_;
  text_maker* out_ = nullptr;
  uint32_t loop_depth_ = 0;
  value filter_input_;
};

}  // namespace

marked_text evaluate(rendering& at, const body& all, const dict& variables) {
  return evaluator(at, variables).run(all);
}

}  // namespace bitnet::jinja
