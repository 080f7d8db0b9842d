#pragma once
// The values of a template: Python's, as far as chat templates use them.
//
// Owner   Texts, lists and dicts are shared and immutable, so there are no cycles; objects can
//         change, and belong to the rendering that made them.
// Needs   Valid UTF-8 where characters are counted; an invalid byte counts as one.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "jinja/marked_text.hpp"

namespace bitnet::jinja {

class value;
class dict;
class object;
class rendering;
struct arguments;
using sequence = std::vector<value>;

struct function {
  std::string name;
  std::function<value(rendering&, arguments&)> body;
};

class value {
 public:
  enum class kind : uint8_t {
    undefined,
    none,
    boolean,
    integer,
    real,
    text,
    list,
    tuple,
    dict,
    object,
    function
  };

  value() = default;  // undefined
  value(bool b) : held_(b) {}
  value(int64_t i) : held_(i) {}
  value(double d) : held_(d) {}
  value(marked_text t) : held_(std::make_shared<const marked_text>(std::move(t))) {}
  // The text has the origin message.
  value(std::string s) : value(marked_text(std::move(s), origin::message)) {}
  value(const char* s) : value(std::string(s)) {}
  value(object* o) : held_(o) {}
  value(function f) : held_(std::make_shared<const function>(std::move(f))) {}
  value(jinja::dict d);
  static value none() {
    value v;
    v.held_ = nothing{};
    return v;
  }
  // `why`: the text of the error when it is used: "'tools' is undefined".
  static value undefined(std::string why) {
    value v;
    v.held_ = missing{std::make_shared<const std::string>(std::move(why))};
    return v;
  }
  static value list(sequence items);
  static value tuple(sequence items);

  [[nodiscard]] kind what() const;
  [[nodiscard]] bool is(kind k) const { return what() == k; }
  [[nodiscard]] bool is_sequence() const { return is(kind::list) || is(kind::tuple); }
  // A number: int, float or bool.
  [[nodiscard]] bool is_number() const {
    return is(kind::integer) || is(kind::real) || is(kind::boolean);
  }
  [[nodiscard]] bool is_whole() const { return is(kind::integer) || is(kind::boolean); }

  // Each requires that the value has this kind.
  [[nodiscard]] bool boolean() const { return std::get<bool>(held_); }
  [[nodiscard]] const marked_text& marked() const { return *std::get<shared_text>(held_); }
  [[nodiscard]] const std::string& text() const { return marked().bytes(); }
  [[nodiscard]] const sequence& items() const;
  [[nodiscard]] const jinja::dict& entries() const { return *std::get<shared_dict>(held_); }
  [[nodiscard]] object& thing() const { return *std::get<object*>(held_); }
  [[nodiscard]] const function& code() const { return *std::get<shared_function>(held_); }
  [[nodiscard]] int64_t whole() const {  // integer or boolean
    return is(kind::boolean) ? static_cast<int64_t>(boolean()) : std::get<int64_t>(held_);
  }
  [[nodiscard]] double number() const {  // any number
    return is(kind::real) ? std::get<double>(held_) : static_cast<double>(whole());
  }
  [[nodiscard]] std::string why_undefined() const;
  // Whether both are the same object in memory, or the same None, bool or number.
  [[nodiscard]] bool same_as(const value& other) const;
  // Depth of nested containers; it bounds every recursion over values.
  [[nodiscard]] uint32_t depth() const;

 private:
  struct nothing {};
  struct missing {
    std::shared_ptr<const std::string> why;
  };
  struct list_body {
    sequence items;
    uint32_t depth;
    bool tuple;
  };
  using shared_text = std::shared_ptr<const marked_text>;
  using shared_list = std::shared_ptr<const list_body>;
  using shared_dict = std::shared_ptr<const jinja::dict>;
  using shared_function = std::shared_ptr<const function>;
  static value sequence_of(sequence items, bool tuple);
  std::variant<missing, nothing, bool, int64_t, double, shared_text, shared_list, shared_dict,
               object*, shared_function>
      held_;
};

// In the order of insertion, as Python's.
class dict {
 public:
  using entry = std::pair<value, value>;
  // Returns false for a key that Python cannot hash, and for a tuple, which is not supported.
  bool set(const value& key, value content);
  [[nodiscard]] const value* find(const value& key) const;
  [[nodiscard]] const value* find(std::string_view key) const;
  [[nodiscard]] const std::vector<entry>& entries() const { return entries_; }
  [[nodiscard]] uint32_t depth() const { return depth_; }

 private:
  std::vector<entry> entries_;
  using index = std::map<std::string, std::size_t, std::less<>>;
  index texts_;   // keys that are texts
  index others_;  // by hash_key
  uint32_t depth_ = 1;
};

[[nodiscard]] bool may_be_key(const value& v);
// Equal for keys that are equal in Python: 1, 1.0 and True. nullopt for unhashable values.
[[nodiscard]] std::optional<std::string> hash_key(const value& key);

// A mutable value: a namespace, the loop, a cycler.
class object {
 public:
  object() = default;
  object(const object&) = delete;
  object& operator=(const object&) = delete;
  virtual ~object() = default;
  [[nodiscard]] virtual std::string_view type_name() const = 0;
  // nullopt: there is no attribute of that name.
  [[nodiscard]] virtual std::optional<value> attribute(rendering& at, const std::string& name) = 0;
  // Returns false if the object is no namespace.
  virtual bool set(const std::string& /*name*/, const value& /*content*/) { return false; }
};

struct arguments {
  sequence positional;
  std::vector<std::pair<std::string, value>> named;
};

}  // namespace bitnet::jinja
