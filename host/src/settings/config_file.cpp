#include "settings/config_file.hpp"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <exception>
#include <sstream>

#include "settings/suggest.hpp"

namespace bitnet::host {
namespace {

struct entry {
  std::string key;
  std::vector<std::string> values;
  bool is_list = false;
  bool is_null = false;
  int line = 0;
};

// Unwinds from yaml-cpp's parser, which allows no other way; caught in parse_config.
struct rejection : std::exception {
  rejection(int where, std::string why) : line(where), message(std::move(why)) {}
  [[nodiscard]] const char* what() const noexcept override { return message.c_str(); }
  int line;
  std::string message;
};

// Keeps keys, scalars and lists of scalars. Rejects everything else as soon as it appears, so that
// no document can grow by references or nesting.
class event_reader final : public YAML::EventHandler {
 public:
  std::vector<entry> entries;

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (seen_document_) reject(mark, "only one document is allowed");
    seen_document_ = true;
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    plain(mark, anchor);
    if (place_ == place::document) return;  // an empty file
    if (place_ == place::key || place_ == place::list) reject(mark, "a value is missing");
    entries.back().is_null = true;
    place_ = place::key;
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    reject(mark, "aliases are not allowed");
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    plain(mark, anchor);
    if (!tag.empty() && tag != "?" && tag != "!") reject(mark, "tags are not allowed");
    switch (place_) {
      case place::document:
        reject(mark, "expected lines of the form 'key: value'");
      case place::key:
        entries.push_back({text, {}, false, false, mark.line + 1});
        place_ = place::value;
        return;
      case place::value:
        place_ = place::key;
        break;
      case place::list:
        break;
    }
    entries.back().values.push_back(text);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    plain(mark, anchor);
    if (place_ != place::value) reject(mark, "expected lines of the form 'key: value'");
    entries.back().is_list = true;
    place_ = place::list;
  }
  void OnSequenceEnd() override { place_ = place::key; }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    plain(mark, anchor);
    if (place_ != place::document) reject(mark, "nested keys are not allowed");
    place_ = place::key;
  }
  void OnMapEnd() override {}

 private:
  enum class place : uint8_t { document, key, value, list };

  [[noreturn]] static void reject(const YAML::Mark& mark, std::string why) {
    throw rejection(mark.line + 1, std::move(why));
  }
  static void plain(const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (anchor != YAML::NullAnchor) reject(mark, "anchors are not allowed");
  }

  place place_ = place::document;
  bool seen_document_ = false;
};

// Shortens and escapes a key, which comes from outside, for a message.
std::string shown(std::string_view text) {
  std::string out;
  for (const char c : text.substr(0, 60)) out += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
  return out;
}

result<value> value_of(const entry& from, const option& row) {
  if (from.is_null) return fail(exit_code::usage, "expects a value, found none");
  if (row.type == kind::list) return from.values;
  if (from.is_list) return fail(exit_code::usage, "expects one value, found a list");
  return parse_value(row, from.values.front());
}

std::vector<std::string> known_keys() {
  std::vector<std::string> keys;
  for (const option& row : all_options()) {
    if (!row.command_line_only) keys.emplace_back(row.name);
  }
  return keys;
}

}  // namespace

result<config_contents> parse_config(std::string_view text, const std::string& file) {
  const auto reject = [&](int line, std::string_view why) {
    return fail(exit_code::usage, fmt::format("{}:{}: {}", file, line, why));
  };
  if (text.size() > longest_config) {
    return reject(1, fmt::format("larger than {} KiB", longest_config / 1024));
  }
  event_reader events;
  try {
    std::istringstream in{std::string(text)};
    YAML::Parser parser(in);
    while (parser.HandleNextDocument(events)) {
    }
  } catch (const rejection& r) {
    return reject(r.line, r.message);
  } catch (const YAML::Exception& e) {
    return reject(std::max(e.mark.line, 0) + 1, e.msg);
  } catch (const std::exception& e) {
    return reject(1, e.what());
  }

  config_contents contents;
  std::vector<std::string_view> seen;
  for (const entry& one : events.entries) {
    const option* row = find_option(one.key);
    if (row == nullptr || row->command_line_only) {
      contents.warnings.push_back(fmt::format("{}:{}: unknown key '{}' is ignored{}", file,
                                              one.line, shown(one.key),
                                              suggestion(one.key, known_keys())));
      continue;
    }
    if (std::ranges::find(seen, row->name) != seen.end()) {
      return reject(one.line, fmt::format("'{}' is set twice", row->name));
    }
    seen.push_back(row->name);
    auto content = value_of(one, *row);
    if (!content) {
      return reject(one.line, fmt::format("'{}' {}", row->name, content.error().message));
    }
    contents.settings.push_back({row, std::move(*content), one.line});
  }
  return contents;
}

}  // namespace bitnet::host
