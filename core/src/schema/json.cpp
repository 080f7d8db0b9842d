#include "schema/json.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_set>
#include <utility>

#include "schema/limits.hpp"
#include "text/zero_bytes.hpp"

namespace bitnet::schema {
namespace {

using nlohmann::json;

constexpr std::size_t longest_step = 60;   // bytes of a name that a message shows
constexpr std::size_t longest_path = 160;  // bitnet_error has room for this and the reason

std::string pointer_step(const std::string& name) {
  std::string out;
  for (const char c : name) {
    if (out.size() > longest_step) return out + "...";
    if (c == '~')
      out += "~0";
    else if (c == '/')
      out += "~1";
    else if (static_cast<unsigned char>(c) < 0x20)
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    else
      out += c;
  }
  return out;
}

// Builds the tree. The parser does not recurse, so the depth is bounded here.
class tree_builder : public nlohmann::json_sax<json> {
 public:
  explicit tree_builder(value_store& store) : store_(store) {}
  bool null() override { return add(value::kind::null) != nullptr; }
  bool boolean(bool truth) override {
    value* one = add(value::kind::boolean);
    if (one != nullptr) one->truth = truth;
    return one != nullptr;
  }
  bool number_integer(number_integer_t n) override { return number(std::to_string(n)); }
  bool number_unsigned(number_unsigned_t n) override { return number(std::to_string(n)); }
  bool number_float(number_float_t, const string_t& text) override { return number(text); }
  bool string(string_t& text) override {
    value* one = add(value::kind::string);
    if (one != nullptr) one->text = std::move(text);
    return one != nullptr;
  }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(value::kind::object); }
  bool key(string_t& name) override {
    if (!names_.back().insert(name).second) {
      trouble_ = {BITNET_INVALID_ARGUMENT,
                  fmt::format("the JSON schema, at {}: the name '{}' is there twice; keep one",
                              open_.back()->where(), pointer_step(name))};
      return false;
    }
    name_ = std::move(name);
    return true;
  }
  bool end_object() override { return close(); }
  bool start_array(std::size_t) override { return open(value::kind::array); }
  bool end_array() override { return close(); }
  bool parse_error(std::size_t at, const std::string&, const json::exception&) override {
    position_ = at;
    return false;
  }

  [[nodiscard]] const value* root() const { return root_; }
  [[nodiscard]] const std::optional<failure>& trouble() const { return trouble_; }
  [[nodiscard]] std::size_t position() const { return position_; }

 private:
  bool number(std::string text) {
    value* one = add(value::kind::number);
    if (one != nullptr) one->text = std::move(text);
    return one != nullptr;
  }
  value* add(value::kind what) {
    value* parent = open_.empty() ? nullptr : open_.back();
    const bool in_list = parent != nullptr && parent->what == value::kind::array;
    value& one = store_.add(parent, in_list ? std::to_string(parent->items.size()) : name_);
    one.what = what;
    if (parent == nullptr)
      root_ = &one;
    else if (in_list)
      parent->items.push_back(&one);
    else
      parent->members.push_back({std::move(name_), &one});
    return &one;
  }
  bool open(value::kind what) {
    if (open_.size() == deepest_schema) {
      trouble_ = {BITNET_UNSUPPORTED,
                  fmt::format("the JSON schema, at {}: its objects and lists lie more than {} deep "
                              "in each other; give the inner ones names in $defs",
                              open_.back()->where(), deepest_schema)};
      return false;
    }
    open_.push_back(add(what));
    names_.emplace_back();
    return true;
  }
  bool close() {
    open_.pop_back();
    names_.pop_back();
    return true;
  }

  value_store& store_;
  std::vector<value*> open_;
  std::vector<std::unordered_set<std::string>> names_;  // of each open object
  std::string name_;                                    // of the member that comes next
  const value* root_ = nullptr;
  std::optional<failure> trouble_;
  std::size_t position_ = 0;  // bytes read up to an error, its own included
};

}  // namespace

const value* value::find(std::string_view name) const {
  const auto at = std::ranges::find(members, name, &member::name);
  return at == members.end() ? nullptr : at->is;
}

std::string value::where() const {
  std::string out;
  for (const value* at = this; at->parent != nullptr; at = at->parent) {
    out.insert(0, "/" + pointer_step(at->step));
    if (out.size() > longest_path) return "#..." + out.substr(out.size() - longest_path);
  }
  return "#" + out;
}

std::string_view name_of(value::kind k) {
  constexpr std::string_view names[] = {"null",     "true or false", "a number",
                                        "a string", "a list",        "an object"};
  return names[static_cast<std::size_t>(k)];
}

value& value_store::add(const value* parent, std::string step) {
  value& out = values_.emplace_back();
  out.number = static_cast<uint32_t>(values_.size() - 1);
  out.parent = parent;
  out.step = std::move(step);
  return out;
}

result<const value*> value_store::parse(std::string_view text) {
  if (text.size() > longest_schema)
    return fail(BITNET_UNSUPPORTED, fmt::format("the JSON schema has {} bytes; at most {} are "
                                                "possible",
                                                text.size(), longest_schema));
  if (const auto zero = text::zero_byte(text))
    return fail(BITNET_INVALID_ARGUMENT,
                fmt::format("the JSON schema is no JSON: it has a zero byte at {}", *zero));
  tree_builder to(*this);
  if (json::sax_parse(text.begin(), text.end(), &to)) return to.root();
  if (to.trouble()) return std::unexpected(*to.trouble());
  const std::size_t at = std::min(std::max<std::size_t>(to.position(), 1) - 1, text.size());
  const std::string_view before = text.substr(0, at);
  return fail(BITNET_INVALID_ARGUMENT,
              fmt::format("the JSON schema is no JSON at line {}, column {}: {}",
                          1 + std::ranges::count(before, '\n'), at - (before.rfind('\n') + 1) + 1,
                          at == text.size() ? "it ends there; is it cut off?"
                                            : "this was not expected there"));
}

}  // namespace bitnet::schema
