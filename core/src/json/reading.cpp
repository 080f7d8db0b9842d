#include "json/reading.hpp"

#include <fmt/format.h>

#include <vector>

#include "base/utf8.hpp"
#include "text/zero_bytes.hpp"

namespace bitnet::json {
namespace {

using event = value::parse_event_t;

// Counts what is parsed. It keeps the first limit that is exceeded, and then builds no more values.
class bounded {
 public:
  explicit bounded(const bounds& most) : most_(most) {}

  bool operator()(int depth, event what, const value&) {
    if (passed_.empty()) count(static_cast<std::size_t>(depth), what);
    return passed_.empty();
  }
  [[nodiscard]] const std::string& passed() const { return passed_; }

 private:
  void count(std::size_t depth, event what) {
    const bool begins = what == event::object_start || what == event::array_start;
    if (begins) {
      if (depth >= most_.depth)
        passed_ = fmt::format("lists and objects {} deep at most", most_.depth);
      members_.resize(std::max(members_.size(), depth + 1));
      members_[depth] = 0;
    }
    // The parser reports a key at the depth of its value.
    if (what == event::key && depth > 0 && ++members_[depth - 1] > most_.members)
      passed_ = fmt::format("{} members of an object at most", most_.members);
    if ((begins || what == event::value) && ++values_ > most_.values)
      passed_ = fmt::format("{} values at most", most_.values);
  }

  const bounds& most_;
  std::vector<std::size_t> members_;  // one per open object
  std::size_t values_ = 0;
  std::string passed_;
};

// Cuts "[json.exception.parse_error.101] parse error at line 1, column 3: syntax error ..." to the
// part from the position on.
std::string_view place_and_reason(std::string_view what) {
  constexpr std::string_view at = "at line ";
  const auto found = what.find(at);
  return found == std::string_view::npos ? what : what.substr(found);
}

}  // namespace

result<value> read(std::string_view text, std::string_view what, const bounds& most) {
  const auto invalid = [&](std::string message) {
    return fail(BITNET_INVALID_ARGUMENT, fmt::format("{}: {}", what, std::move(message)));
  };
  if (text.size() > most.bytes)
    return invalid(
        fmt::format("expected JSON of at most {} bytes, found {}", most.bytes, text.size()));
  if (const auto broken = first_invalid_utf8(text))
    return invalid(fmt::format("expected UTF-8, found another byte at {}", *broken));
  if (const auto zero = text::zero_byte(text))
    return invalid(fmt::format("expected JSON, found a zero byte at {}", *zero));
  bounded count(most);
  try {
    value out = value::parse(
        text, [&](int depth, event of, const value& found) { return count(depth, of, found); });
    if (!count.passed().empty()) return invalid(fmt::format("expected {}", count.passed()));
    return out;
  } catch (const value::parse_error& e) {
    if (!count.passed().empty()) return invalid(fmt::format("expected {}", count.passed()));
    return invalid(fmt::format("expected JSON, found an error {}", place_and_reason(e.what())));
  } catch (const value::out_of_range&) {
    return invalid("expected numbers that a double can hold");
  }
}

std::string described(const value& found) {
  constexpr std::size_t longest = 40;
  switch (found.type()) {
    case value::value_t::null:
      return "null or nothing";
    case value::value_t::boolean:
      return found.get<bool>() ? "true" : "false";
    case value::value_t::string: {
      const auto& text = found.get_ref<const std::string&>();
      if (text.size() <= longest) return fmt::format("the text '{}'", text);
      std::size_t cut = longest;
      while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xC0U) == 0x80U) --cut;
      return fmt::format("a text of {} bytes, '{}...'", text.size(), text.substr(0, cut));
    }
    case value::value_t::array:
      return found.empty() ? "an empty list" : fmt::format("a list of {}", found.size());
    case value::value_t::object:
      return "an object";
    default:
      return fmt::format("the number {}", found.dump());
  }
}

std::unexpected<failure> rejected(std::string_view path, std::string_view expected,
                                  const value& found) {
  return fail(BITNET_INVALID_ARGUMENT,
              fmt::format("{}: expected {}, found {}", path, expected, described(found)));
}

const value& member(const value& object, const char* name) {
  static const value nothing;
  const auto found = object.find(name);
  return found == object.end() ? nothing : *found;
}

std::string written(const value& of) {
  return of.dump(-1, ' ', false, value::error_handler_t::replace);
}

std::string quoted(std::string_view text) {
  return written(value(text));
}

}  // namespace bitnet::json
