#pragma once
// The JSON of a request, which may be hostile: bounded before it is built, and read member by
// member with the name of what is wrong.

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "openai/api_error.hpp"

namespace bitnet::host::openai {

// Arrays and objects within each other. A deeper document could exhaust the stack of a recursive
// reader.
inline constexpr std::size_t most_depth = 128;

// UTF-8. `what` begins the message: "the body". An error has the code "invalid_json".
[[nodiscard]] parsed<nlohmann::json> parse_object(std::string_view text, std::string_view what);

// The member "model" of a body, which answers repeat: at most 256 bytes. "": it has none.
[[nodiscard]] parsed<std::string> model_name_in(const nlohmann::json& body);

// A value as a message shows it: a short one whole, else its kind.
[[nodiscard]] std::string shown(const nlohmann::json& value);

// Reads members of one object. A member that is absent or null leaves `to` as it is. The first that
// is wrong is kept as error(), and those behind it are not read.
class field_reader {
 public:
  // `path` is before the names of members: "messages[0]."; `object` outlives the reader.
  explicit field_reader(const nlohmann::json& object, std::string path = "")
      : object_(object), path_(std::move(path)) {}

  void flag(const char* name, bool& to);
  void text(const char* name, std::string& to);
  // A whole number or a real one, as T is; both ends are allowed values.
  template <class T>
  void number(const char* name, double lowest, double highest, T& to) {
    if (const auto found = number_in(name, lowest, highest, std::is_integral_v<T>))
      to = static_cast<T>(*found);
  }
  // The member as it is, or NULL.
  [[nodiscard]] const nlohmann::json* any(const char* name) const;
  // An error where the member asks for something: it is there and neither null, false, "", [] nor
  // {}.
  void refuse(const char* name, std::string_view why);
  // "'temperature' expects a number, found "hot"".
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
