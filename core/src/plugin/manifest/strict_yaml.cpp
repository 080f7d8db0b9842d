#include "plugin/manifest/strict_yaml.hpp"

#include <fmt/core.h>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <sstream>
#include <utility>

#include "plugin/codes/text.hpp"

namespace bitnet::plugin {
namespace {

constexpr std::size_t max_depth = 8;  // manifests need two levels

[[noreturn]] void reject_at(const YAML::Mark& mark, const std::string& why) {
  throw YAML::ParserException(mark, why);
}

class builder final : public YAML::EventHandler {
 public:
  yaml_node root;
  bool seen = false;

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    OnScalar(mark, "?", anchor, "");
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    reject_at(mark, "aliases (*name) are not allowed");
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    yaml_node node = begin(mark, tag, anchor);
    node.quoted = tag == "!";
    node.text = value;
    if (!open_.empty() && open_.back().node.kind == yaml_node::kind_type::map &&
        !open_.back().has_key) {
      frame& map = open_.back();
      for (const yaml_member& known : map.node.members)
        if (known.key == value)
          reject_at(mark, fmt::format("key '{}' is there twice; first in line {}",
                                      printable(value, 64), known.line));
      map.has_key = true;
      map.node.members.push_back({value, node.line, node.column, {}});
      return;
    }
    put(std::move(node));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    start(mark, tag, anchor, yaml_node::kind_type::list);
  }
  void OnSequenceEnd() override { finish(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    start(mark, tag, anchor, yaml_node::kind_type::map);
  }
  void OnMapEnd() override { finish(); }

 private:
  struct frame {
    yaml_node node;
    bool has_key = false;  // for a map: the last member still lacks its value
  };

  static yaml_node begin(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    if (anchor != 0) reject_at(mark, "anchors (&name) are not allowed");
    // "?" is a plain scalar or collection, "!" a quoted one; others are explicit tags.
    if (!tag.empty() && tag != "?" && tag != "!") reject_at(mark, "tags (!name) are not allowed");
    yaml_node node;
    node.line = mark.line + 1;
    node.column = mark.column + 1;
    return node;
  }

  void start(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
             yaml_node::kind_type kind) {
    if (open_.size() == max_depth)
      reject_at(mark, fmt::format("nested more than {} levels deep", max_depth));
    if (!open_.empty() && open_.back().node.kind == yaml_node::kind_type::map &&
        !open_.back().has_key)
      reject_at(mark, "a key must be a word");
    yaml_node node = begin(mark, tag, anchor);
    node.kind = kind;
    open_.push_back({std::move(node)});
  }

  void finish() {
    yaml_node node = std::move(open_.back().node);
    open_.pop_back();
    put(std::move(node));
  }

  void put(yaml_node node) {
    if (open_.empty()) {
      root = std::move(node);
      seen = true;
      return;
    }
    frame& parent = open_.back();
    if (parent.node.kind == yaml_node::kind_type::map) {
      parent.node.members.back().value = std::move(node);
      parent.has_key = false;
    } else {
      parent.node.items.push_back(std::move(node));
    }
  }

  std::vector<frame> open_;
};

// Rejects control characters and encodings other than UTF-8 before the parser sees them.
std::expected<void, yaml_error> check_characters(const std::string& text) {
  int line = 1;
  int column = 1;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && c != '\n' && c != '\r' && c != '\t') || byte == 0x7F)
      return std::unexpected(yaml_error{line, column, "is not text: it holds a control character"});
    column = c == '\n' ? 1 : column + 1;
    line += c == '\n';
  }
  return {};
}

}  // namespace

std::expected<yaml_node, yaml_error> parse_strict_yaml(const std::string& text) {
  if (auto fine = check_characters(text); !fine) return std::unexpected(fine.error());
  builder events;
  try {
    std::istringstream in(text);
    YAML::Parser parser(in);
    if (!parser.HandleNextDocument(events) || !events.seen)
      return std::unexpected(yaml_error{1, 1, "holds nothing"});
    builder second;
    if (parser.HandleNextDocument(second))
      return std::unexpected(yaml_error{1, 1, "holds more than one document"});
  } catch (const YAML::Exception& e) {
    return std::unexpected(yaml_error{e.mark.line + 1, e.mark.column + 1, printable(e.msg)});
  }
  return std::move(events.root);
}

}  // namespace bitnet::plugin
