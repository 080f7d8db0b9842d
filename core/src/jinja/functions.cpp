#include "jinja/functions.hpp"

#include <fmt/format.h>

#include <locale.h>  // newlocale
#include <time.h>    // strftime_l

#include <array>

#include "jinja/binding.hpp"
#include "jinja/makers.hpp"
#include "jinja/operations.hpp"

namespace bitnet::jinja {
namespace {

class name_space : public object {
 public:
  explicit name_space(rendering& at) : at_(at) {}
  [[nodiscard]] std::string_view type_name() const override { return "Namespace"; }
  std::optional<value> attribute(rendering& /*at*/, const std::string& name) override {
    const auto found = values_.find(name);
    return found == values_.end() ? std::nullopt : std::optional(found->second);
  }
  bool set(const std::string& name, const value& content) override {
    constexpr uint64_t of_name = 144;
    if (!at_.look_up(name.size(), values_.size())) return true;
    const auto known = values_.find(name);
    if (known != values_.end())
      known->second = content;
    else if (at_.room(of_name + name.size()))
      values_.emplace(name, content);
    return true;
  }

 private:
  rendering& at_;  // owner
  std::map<std::string, value, std::less<>> values_;
};

// dict(...) and namespace(...): take a dict, then named arguments.
value dict_of(rendering& at, arguments& given) {
  dict out;
  if (given.positional.size() > 1) return at.wrong("dict takes one dict and named values");
  for (const value& one : given.positional) {
    if (!one.is(value::kind::dict)) return at.wrong("dict takes one dict and named values");
    if (!at.put_all(out, one.entries())) return {};
  }
  for (const auto& [name, content] : given.named)
    if (!at.step() || !at.put(out, at.copy(name), content)) return {};
  return at.map(std::move(out));
}

value new_namespace(rendering& at, arguments& given) {
  const value all = dict_of(at, given);
  if (!at.ok()) return {};
  auto* out = at.own<name_space>(at);
  for (const auto& [key, content] : all.entries().entries())
    if (at.ok()) out->set(str(at, key).bytes(), content);
  return {static_cast<object*>(out)};
}

value range(rendering& at, arguments& given) {
  const auto a = bind(at, "range", given, {"", "", ""}, 1);  // positional only
  if (!at.ok()) return {};
  for (const value& one : given.positional)
    if (!one.is_whole()) return at.wrong("range needs integers");
  const bool only = given.positional.size() == 1;
  const int64_t begin = only ? 0 : a[0].whole();
  const int64_t end = only ? a[0].whole() : a[1].whole();
  const int64_t by = a[2].is_whole() ? a[2].whole() : 1;
  if (by == 0) return at.wrong("the step of range cannot be 0");
  constexpr std::size_t most = 100'000;  // the limit of jinja2's sandbox
  list_maker out(at);
  for (int64_t i = begin; by > 0 ? i < end : i > end;) {
    if (out.size() == most) return at.wrong(fmt::format("range gives {} numbers at most", most));
    if (!out.add(i)) return {};
    if (__builtin_add_overflow(i, by, &i)) break;
  }
  return at.step(out.size() / 16) ? out.list() : value();
}

value raise_exception(rendering& at, arguments& given) {
  const auto a = bind(at, "raise_exception", given, {"message"}, 1);
  constexpr std::size_t longest = 200;
  return at.wrong(BITNET_INVALID_ARGUMENT, fmt::format("the template rejects the conversation: {}",
                                                       str(at, a[0]).bytes().substr(0, longest)));
}

value strftime_now(rendering& at, arguments& given) {
  const auto a = bind(at, "strftime_now", given, {"format"}, 1);
  const marked_text pattern = str(at, a[0]);
  constexpr std::size_t longest = 200;
  if (pattern.size() > longest) return at.wrong("the format of strftime_now is too long");
  if (!at.step(1 + pattern.size())) return {};
  const std::time_t now = at.now();
  std::tm parts{};
  if (localtime_r(&now, &parts) == nullptr) return at.wrong("the time is unknown");
  std::array<char, 4096> buffer{};
  // Names of days and months are English whatever the process's locale, since they are the model's
  // text.
  static const locale_t plain = newlocale(LC_ALL_MASK, "C", nullptr);
  const std::size_t n =
      strftime_l(buffer.data(), buffer.size(), pattern.bytes().c_str(), &parts, plain);
  if (!at.room(n)) return {};
  return at.kept(marked_text(std::string(buffer.data(), n), pattern.all()));
}

}  // namespace

const std::map<std::string, value, std::less<>>& global_functions() {
  static const std::map<std::string, value, std::less<>> all = {
      {"range", value(function{"range", range})},
      {"dict", value(function{"dict", dict_of})},
      {"namespace", value(function{"namespace", new_namespace})},
      {"raise_exception", value(function{"raise_exception", raise_exception})},
      {"strftime_now", value(function{"strftime_now", strftime_now})}};
  return all;
}

}  // namespace bitnet::jinja
