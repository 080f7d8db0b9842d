#pragma once
// The state of a running template beside values: scopes, loops and macros.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "jinja/operations.hpp"
#include "jinja/syntax.hpp"

namespace bitnet::jinja {

// The names of a block; its parent has those of the enclosing blocks. Its memory is returned when
// it ends: a loop makes one per round, and only a macro keeps one.
class scope {
 public:
  scope(rendering& at, std::shared_ptr<scope> above) : above_(std::move(above)), at_(at) {
    take_room(160);
  }
  scope(const scope&) = delete;
  scope& operator=(const scope&) = delete;
  ~scope() { at_.give_back(bytes_); }

  void set(const std::string& name, const value& content) {
    constexpr uint64_t of_name = 112;
    if (!at_.look_up(name.size(), names_.size())) return;
    if (const auto found = names_.find(name); found != names_.end())
      found->second = content;
    else if (take_room(of_name + name.size()))
      names_.emplace(name, content);
  }
  [[nodiscard]] const value* find(const std::string& name) const {
    if (!at_.look_up(name.size(), names_.size())) return nullptr;
    const auto found = names_.find(name);
    return found == names_.end() ? nullptr : &found->second;
  }
  [[nodiscard]] const scope* above() const { return above_.get(); }

 private:
  bool take_room(uint64_t bytes) {
    if (!at_.room(bytes)) return false;
    bytes_ += bytes;
    return true;
  }

  std::map<std::string, value, std::less<>> names_;
  std::shared_ptr<scope> above_;
  rendering& at_;
  uint64_t bytes_ = 0;
};
using scope_ptr = std::shared_ptr<scope>;

class loop_state : public object {
 public:
  loop_state(sequence items, uint32_t depth) : items_(std::move(items)), depth_(depth) {}

  [[nodiscard]] std::string_view type_name() const override { return "LoopContext"; }
  [[nodiscard]] const sequence& items() const { return items_; }
  [[nodiscard]] uint32_t depth() const { return depth_; }
  void go_to(std::size_t index) { index_ = index; }

  std::optional<value> attribute(rendering& at, const std::string& name) override {
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
      return i > 0 ? items_[index_ - 1] : at.undefined("there is no previous item");
    if (name == "nextitem")
      return i + 1 < n ? items_[index_ + 1] : at.undefined("there is no next item");
    if (name == "cycle")
      return at.code(function{"cycle", [this](rendering& in, arguments& given) {
                                if (given.positional.empty())
                                  return in.wrong("loop.cycle needs values");
                                return given.positional[index_ % given.positional.size()];
                              }});
    if (name == "changed")
      return at.code(function{"changed", [this](rendering& in, arguments& given) -> value {
                                const value now = in.tuple(given.positional);
                                if (last_ && equal(in, *last_, now)) return false;
                                last_ = now;
                                return true;
                              }});
    return std::nullopt;
  }

 private:
  sequence items_;
  std::optional<value> last_;  // the last argument of `changed`
  std::size_t index_ = 0;
  uint32_t depth_;
};

// The state of a macro. The rendering owns it, since scope and macro refer to each other.
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

}  // namespace bitnet::jinja
