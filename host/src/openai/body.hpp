#pragma once
// Reads the JSON of a request, which may be hostile: it checks limits before it builds a value, and
// names the member that is wrong.

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "openai/api_error.hpp"

namespace bitnet::host::openai {

// Nesting of arrays and objects. A deeper document could exhaust the stack of a recursive reader.
inline constexpr std::size_t most_depth = 128;

// `text` is UTF-8. `what` begins the message: "the body". An error has the code "invalid_json".
[[nodiscard]] parsed<nlohmann::json> parse_object(std::string_view text, std::string_view what);

// The member "model", at most 256 bytes, which answers repeat; "": absent.
[[nodiscard]] parsed<std::string> model_name_in(const nlohmann::json& body);

// A value for a message: a short one as text, else its type.
[[nodiscard]] std::string shown(const nlohmann::json& value);

// Reads members of one object. A member that is absent or null leaves `to` unchanged. error() is
// the first error; after it nothing is read.
class field_reader {
 public:
  // `path`: prefix of member names in messages, such as "messages[0].". `object` outlives the
  // reader.
  explicit field_reader(const nlohmann::json& object, std::string path = "")
      : object_(object), path_(std::move(path)) {}

  void flag(const char* name, bool& to);
  void text(const char* name, std::string& to);
  // Reads a whole or real number, depending on T; both bounds are allowed.
  template <class T>
  void number(const char* name, double lowest, double highest, T& to) {
    if (const auto found = number_in(name, lowest, highest, std::is_integral_v<T>))
      to = static_cast<T>(*found);
  }
  // The member's value, or NULL.
  [[nodiscard]] const nlohmann::json* any(const char* name) const;
  // An error if the member has a value other than null, false, "", [] and {}.
  void reject(const char* name, std::string_view why);
  // Sets an error such as "'temperature' expects a number, found "hot"".
  void wrong(const char* name, std::string_view expected);
  void keep(api_error why);

  [[nodiscard]] std::string path_of(const char* name) const { return path_ + name; }
  [[nodiscard]] const std::optional<api_error>& error() const { return error_; }

 private:
  std::optional<double> number_in(const char* name, double lowest, double highest, bool whole);

  const nlohmann::json& object_;
  std::string path_;
  std::optional<api_error> error_;
};

}  // namespace bitnet::host::openai
