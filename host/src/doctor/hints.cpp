#include "doctor/hints.hpp"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <exception>

#include "text/printable.hpp"

namespace bitnet::host::doctor {
namespace {

constexpr std::size_t longest_file = 65'536;  // bytes
constexpr std::size_t longest_word = 200;     // bytes
constexpr std::size_t longest_list = 256;     // items

// Unwinds from the document; caught in parse_hints.
struct unfit : std::exception {
  unfit(const YAML::Node& at, std::string why)
      : line(at.Mark().line + 1), message(std::move(why)) {}
  [[nodiscard]] const char* what() const noexcept override { return message.c_str(); }
  int line;  // 0: unknown
  std::string message;
};

YAML::Node item_of(const YAML::Node& from, const char* key) {
  return from[key];
}

std::string word_of(const YAML::Node& one, std::string_view key) {
  if (!one.IsScalar() || one.Scalar().empty() || one.Scalar().size() > longest_word)
    throw unfit(one, fmt::format("expected a short text for {}", key));
  return text::printable(one.Scalar());
}

std::string needed(const YAML::Node& from, const char* key) {
  const YAML::Node one = item_of(from, key);
  if (!one) throw unfit(from, fmt::format("expected the key {}", key));
  return word_of(one, key);
}

std::string optional_word(const YAML::Node& from, const char* key) {
  const YAML::Node one = item_of(from, key);
  return one ? word_of(one, key) : "";
}

// [] if it is absent.
YAML::Node list_at(const YAML::Node& from, const char* key) {
  YAML::Node one = item_of(from, key);
  if (!one) return YAML::Node(YAML::NodeType::Sequence);
  if (!one.IsSequence() || one.size() > longest_list)
    throw unfit(one, fmt::format("expected a list for {}", key));
  return one;
}

std::vector<std::string> words_at(const YAML::Node& from, const char* key) {
  std::vector<std::string> out;
  for (const YAML::Node& one : list_at(from, key)) out.push_back(word_of(one, key));
  return out;
}

// Exactly `digits` digits; 0 allows any number.
std::string digits_at(const YAML::Node& from, const char* key, std::size_t digits) {
  const std::string written = needed(from, key);
  std::string out = hex_digits(written, digits == 0 ? written.size() : digits);
  if (out.empty())
    throw unfit(item_of(from, key),
                fmt::format("expected digits of base 16 for {}, found '{}'", key, written));
  return out;
}

void expect_map(const YAML::Node& one, const char* what) {
  if (!one.IsMap()) throw unfit(one, fmt::format("expected keys and values for {}", what));
}

hardware_hint row_of(const YAML::Node& from) {
  expect_map(from, "an item of hardware");
  hardware_hint out{.vendor = digits_at(from, "vendor", 4),
                    .device_class = digits_at(from, "class", 0),
                    .name = needed(from, "name"),
                    .note = optional_word(from, "note"),
                    .kernel_package = optional_word(from, "kernel_package"),
                    .nodes = words_at(from, "nodes")};
  for (const YAML::Node& one : list_at(from, "backends")) {
    expect_map(one, "an item of backends");
    out.backends.push_back({needed(one, "name"), needed(one, "package"),
                            optional_word(one, "driver_package"), words_at(one, "kernel_drivers")});
  }
  return out;
}

}  // namespace

const hardware_hint* hint_for(const hardware_hints& all, const pci_device& device) {
  const auto found = std::ranges::find_if(all, [&](const hardware_hint& one) {
    return one.vendor == device.vendor && device.device_class.starts_with(one.device_class);
  });
  return found == all.end() ? nullptr : &*found;
}

result<hardware_hints> parse_hints(const std::string& text, std::string_view name) {
  const auto rejected = [&](int line, std::string_view why) {
    return fail(exit_code::failure,
                fmt::format("{}{}: {}; reinstall the package bitnet", text::printable(name),
                            line > 0 ? fmt::format(":{}", line) : "", text::printable(why)));
  };
  if (text.size() > longest_file)
    return rejected(0, fmt::format("expected at most {} bytes", longest_file));
  try {
    const YAML::Node document = YAML::Load(text);
    expect_map(document, "the file");
    if (needed(document, "schema") != "1")
      throw unfit(item_of(document, "schema"), "expected schema 1");
    hardware_hints out;
    for (const YAML::Node& one : list_at(document, "hardware")) out.push_back(row_of(one));
    return out;
  } catch (const unfit& found) {
    return rejected(found.line, found.message);
  } catch (const YAML::Exception& found) {
    return rejected(found.mark.line + 1, found.msg);
  }
}

}  // namespace bitnet::host::doctor
