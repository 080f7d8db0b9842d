#include "plugin/manifest/manifest.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <system_error>
#include <utility>

#include "bitnet/abi/info.h"
#include "plugin/codes/text.hpp"
#include "plugin/manifest/strict_yaml.hpp"
#include "plugin/trust/hash.hpp"

namespace bitnet::plugin {
namespace {

constexpr std::size_t max_text_bytes = 256;

constexpr auto classes = std::to_array<std::pair<std::string_view, uint32_t>>({
    {"cpu", BITNET_DEVICE_CPU},
    {"gpu", BITNET_DEVICE_GPU},
    {"npu", BITNET_DEVICE_NPU},
    {"other", BITNET_DEVICE_OTHER},
});

std::string kind_of(const yaml_node& node) {
  if (node.kind == yaml_node::kind_type::map) return "a map";
  if (node.kind == yaml_node::kind_type::list) return "a list";
  if (node.text.empty() && !node.quoted) return "nothing";
  return fmt::format("'{}'", printable(node.text, 64));
}

// Takes each member of a map at most once and keeps the first error, so that callers are a plain
// list of fields.
class fields {
 public:
  fields(const yaml_node& map, std::string prefix, std::string where)
      : map_(map), prefix_(std::move(prefix)), where_(std::move(where)) {}

  std::string text(std::string_view key, bool required = true) {
    const yaml_node* node = take(key, required);
    if (node == nullptr) return {};
    if (node->kind != yaml_node::kind_type::scalar || node->text.empty())
      return blame(*node, key, fmt::format("must be text, found {}", kind_of(*node))),
             std::string();
    if (node->text.size() > max_text_bytes)
      return blame(*node, key, "must have at most 256 bytes"), std::string();
    if (printable(node->text, max_text_bytes) != node->text)
      return blame(*node, key, "must be printable UTF-8 on one line"), std::string();
    return node->text;
  }

  template <class Int>
  Int number(std::string_view key, Int low, Int high, std::optional<Int> fallback = {}) {
    const yaml_node* node = take(key, !fallback);
    if (node == nullptr) return fallback.value_or(low);
    Int value{};
    const char* end = node->text.data() + node->text.size();
    const auto [stop, error] = std::from_chars(node->text.data(), end, value);
    if (node->kind != yaml_node::kind_type::scalar || node->quoted || error != std::errc() ||
        stop != end || value < low || value > high)
      blame(*node, key,
            fmt::format("must be an integer from {} to {}, found {}", low, high, kind_of(*node)));
    return value;
  }

  // An optional true or false.
  bool flag(std::string_view key) {
    const yaml_node* node = take(key, false);
    if (node == nullptr) return false;
    const bool plain = node->kind == yaml_node::kind_type::scalar && !node->quoted;
    if (!plain || (node->text != "true" && node->text != "false"))
      blame(*node, key, fmt::format("must be true or false, found {}", kind_of(*node)));
    return node->text == "true";
  }

  const yaml_node* map(std::string_view key, bool required) {
    const yaml_node* node = take(key, required);
    if (node == nullptr || node->kind == yaml_node::kind_type::map) return node;
    blame(*node, key, fmt::format("must be a map, found {}", kind_of(*node)));
    return nullptr;
  }

  const yaml_node* take(std::string_view key, bool required) {
    known_.emplace_back(key);
    for (const yaml_member& member : map_.members)
      if (member.key == key) return &member.value;
    if (required) blame(map_, key, "is missing");
    return nullptr;
  }

  // The position of a field, or of the map that lacks it.
  [[nodiscard]] const yaml_node& node_of(std::string_view key) const {
    for (const yaml_member& member : map_.members)
      if (member.key == key) return member.value;
    return map_;
  }

  // Adds the line and column of each field.
  void list_places(std::map<std::string, std::string>& out) const {
    for (const yaml_member& member : map_.members)
      out.emplace(prefix_ + member.key,
                  fmt::format("{}:{}:{}", where_, member.value.line, member.value.column));
  }

  void blame(const yaml_node& node, std::string_view key, const std::string& what,
             code c = code::manifest_field) {
    if (bad_) return;
    bad_ = defect{c, BITNET_REJECTED,
                  fmt::format("{}'{}{}' {}", at(node.line, node.column), prefix_, key, what), ""};
  }

  void adopt(fields& inner, std::vector<std::string>& warnings) {
    if (!bad_) bad_ = std::move(inner.bad_);
    inner.list_unknown(warnings);
  }

  void list_unknown(std::vector<std::string>& warnings) const {
    for (const yaml_member& member : map_.members)
      if (std::ranges::find(known_, member.key) == known_.end())
        warnings.push_back(fmt::format("{}unknown key '{}{}' is ignored",
                                       at(member.line, member.column), prefix_,
                                       printable(member.key, 64)));
  }

  [[nodiscard]] const std::optional<defect>& bad() const { return bad_; }

 private:
  [[nodiscard]] std::string at(int line, int column) const {
    return fmt::format("{}:{}:{}: ", where_, line, column);
  }

  const yaml_node& map_;
  std::string prefix_, where_;
  std::vector<std::string> known_;
  std::optional<defect> bad_;
};

std::string located(const std::string& where, const yaml_node& node) {
  return fmt::format("{}:{}:{}: ", where, node.line, node.column);
}

void read_class(fields& top, manifest& out) {
  const std::string written = top.text("class");
  const auto* row =
      std::ranges::find(classes, written, &std::pair<std::string_view, uint32_t>::first);
  if (row != classes.end())
    out.device_class = row->second;
  else
    top.blame(top.node_of("class"), "class",
              fmt::format("must be cpu, gpu, npu or other, found '{}'", printable(written, 64)));
}

void read_abi(fields& top, const std::string& where, manifest& out) {
  const yaml_node* node = top.map("abi", true);
  if (node == nullptr) return;
  fields abi(*node, "abi.", where);
  out.abi_major = abi.number<uint32_t>("major", 0, 1000);
  out.abi_min = abi.number<uint32_t>("min", 0, 1'000'000);
  out.abi_max = abi.number<uint32_t>("max", 0, 1'000'000);
  if (out.abi_min > out.abi_max)
    abi.blame(abi.node_of("min"), "min", "must not be above 'abi.max'");
  top.adopt(abi, out.warnings);
  abi.list_places(out.places);
}

bool is_word(std::string_view text, bool (*allowed)(char)) {
  return !text.empty() && text.size() <= 64 && std::ranges::all_of(text, allowed);
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_lower(char c) {
  return c >= 'a' && c <= 'z';
}
bool is_upper(char c) {
  return c >= 'A' && c <= 'Z';
}

bool is_variable(std::string_view text) {
  return is_word(text, [](char c) { return is_upper(c) || is_digit(c) || c == '_'; });
}
bool is_module(std::string_view text) {
  return is_word(text,
                 [](char c) { return is_lower(c) || is_upper(c) || is_digit(c) || c == '_'; });
}
bool is_library(std::string_view text) {
  return is_word(text, [](char c) {
    return is_lower(c) || is_upper(c) || is_digit(c) || c == '_' || c == '-' || c == '.' ||
           c == '+';
  });
}
bool is_feature(std::string_view text) {
  return is_word(text, [](char c) { return is_lower(c) || is_digit(c) || c == '_' || c == '.'; });
}
bool is_absolute(std::string_view text) {
  const std::filesystem::path path(text);
  return path.is_absolute() && path.lexically_normal() == path && path.has_filename() &&
         printable(text, max_text_bytes) == text && text.size() <= max_text_bytes;
}
bool is_node(std::string_view text) {
  return is_absolute(text) && text.starts_with("/dev/") && !text.contains('*');
}
bool is_node_pattern(std::string_view text) {
  return is_absolute(text) && text.starts_with("/dev/") &&
         text.find('*') > text.rfind('/') &&  // npos is larger
         text.find('*') == text.rfind('*');
}

// "vendor:device:class" in hexadecimal digits; a part may end, or be, '*'.
bool is_pci_pattern(std::string_view text) {
  constexpr std::array<std::size_t, 3> digits = {4, 4, 6};
  for (std::size_t i = 0; i < digits.size(); ++i) {
    const std::size_t colon = text.find(':');
    if ((colon == std::string_view::npos) != (i + 1 == digits.size())) return false;
    std::string_view part = text.substr(0, colon);
    text.remove_prefix(colon == std::string_view::npos ? text.size() : colon + 1);
    const bool open = part.ends_with('*');
    if (open) part.remove_suffix(1);
    const bool hexadecimal =
        std::ranges::all_of(part, [](char c) { return is_digit(c) || (c >= 'a' && c <= 'f'); });
    if (!hexadecimal || (open ? part.size() > digits[i] : part.size() != digits[i])) return false;
  }
  return true;
}

// Reads a list of texts that each satisfy `is_one`; `like` is an example for messages.
template <class Text>
void read_list(fields& map, std::string_view key, bool (*is_one)(std::string_view),
               std::string_view like, std::vector<Text>& out) {
  constexpr std::size_t most = 64;
  const yaml_node* node = map.take(key, false);
  if (node == nullptr) return;
  if (node->kind != yaml_node::kind_type::list || node->items.size() > most)
    return map.blame(
        *node, key,
        fmt::format("must be a list of at most {} items, found {}", most, kind_of(*node)));
  for (const yaml_node& item : node->items) {
    if (item.kind != yaml_node::kind_type::scalar || !is_one(item.text))
      return map.blame(item, key, fmt::format("must hold {}, found {}", like, kind_of(item)));
    out.emplace_back(item.text);
  }
}

void read_processors(fields& of, const std::string& where, manifest& out) {
  const yaml_node* node = of.map("cpu", false);
  if (node == nullptr) return;
  fields processors(*node, "requires.cpu.", where);
  for (const yaml_member& member : node->members) {
    if (!is_module(member.key))
      processors.blame(member.value, printable(member.key, 64),
                       "must be an architecture as `uname -m` names it, like x86_64");
    read_list(processors, member.key, is_feature, "features as /proc/cpuinfo names them",
              out.needs.cpu[member.key]);
  }
  of.adopt(processors, out.warnings);
}

void read_requires(fields& top, const std::string& where, manifest& out) {
  const yaml_node* node = top.map("requires", false);
  if (node == nullptr) return;
  fields of(*node, "requires.", where);
  machine_needs& needs = out.needs;
  read_processors(of, where, out);
  read_list(of, "libraries", is_library, "names of libraries like libfft.so.3", needs.libraries);
  read_list(of, "nodes", is_node_pattern, "paths like /dev/accel/* or /dev/name", needs.nodes);
  read_list(of, "pci", is_pci_pattern, "VENDOR:DEVICE:CLASS like '10de:*:03*'", needs.pci);
  top.adopt(of, out.warnings);
}

void read_late_nodes(fields& probe, const std::string& where, manifest& out) {
  const yaml_node* node = probe.map("late_nodes", false);
  if (node == nullptr) return;
  fields nodes(*node, "probe.late_nodes.", where);
  for (const yaml_member& member : node->members) {
    const std::string path = nodes.text(member.key);
    if (!is_module(member.key) || !is_node(path))
      nodes.blame(member.value, printable(member.key, 64),
                  fmt::format("must be a kernel module with a file like /dev/accel0, found {}",
                              kind_of(member.value)));
    out.depends_on.late_nodes.emplace(member.key, path);
  }
  probe.adopt(nodes, out.warnings);
}

void read_pipes(fields& probe, const std::string& where, manifest& out) {
  const yaml_node* node = probe.map("pipes", false);
  if (node == nullptr) return;
  fields pipes(*node, "probe.pipes.", where);
  std::vector<std::string>& env = out.depends_on.env;
  for (const yaml_member& member : node->members) {
    const std::string path = pipes.text(member.key);
    if (!is_variable(member.key) || !is_absolute(path))
      pipes.blame(member.value, printable(member.key, 64),
                  fmt::format("must be a variable with a folder like /tmp/service, found {}",
                              kind_of(member.value)));
    out.depends_on.pipes.emplace(member.key, path);
    if (std::ranges::find(env, member.key) == env.end()) env.push_back(member.key);
  }
  probe.adopt(pipes, out.warnings);
}

void read_probe(fields& top, const std::string& where, manifest& out) {
  const yaml_node* node = top.map("probe", false);
  if (node == nullptr) return;
  fields probe(*node, "probe.", where);
  out.probe_timeout_ms = probe.number<uint32_t>("timeout_ms", 1, 600'000, 60'000);
  probe_facts& on = out.depends_on;
  read_list(probe, "env", is_variable, "names of variables like VISIBLE_DEVICES", on.env);
  read_list(probe, "modules", is_module, "names of kernel modules like i2c_core", on.modules);
  read_list(probe, "libraries", is_library, "names of libraries like libfft.so.3", on.libraries);
  read_list(probe, "folders", is_absolute, "absolute paths without '.' and '..'", on.folders);
  read_list(probe, "nodes", is_node_pattern, "paths like /dev/accel/* or /dev/name", on.nodes);
  read_late_nodes(probe, where, out);
  read_pipes(probe, where, out);
  top.adopt(probe, out.warnings);
}

// Reads further names; names of classes, "auto" and "none" are rejected.
void read_aliases(fields& top, manifest& out) {
  const auto is_alias = [](std::string_view text) {
    return is_backend_name(std::string(text)) && text != "auto" && text != "none" &&
           std::ranges::find(classes, text, &std::pair<std::string_view, uint32_t>::first) ==
               classes.end();
  };
  read_list(top, "aliases", is_alias, "names like a backend's, but auto, none and the classes",
            out.aliases);
}

void read_conflicts(fields& top, manifest& out) {
  const auto is_name = [](std::string_view text) { return is_backend_name(std::string(text)); };
  read_list(top, "conflicts", is_name, "names of backends", out.conflicts);
}

void read_packages(fields& top, const std::string& where, manifest& out) {
  const yaml_node* node = top.map("packages", false);
  if (node == nullptr) return;
  fields packages(*node, "packages.", where);
  for (const yaml_member& member : node->members)
    out.packages.emplace(printable(member.key, max_text_bytes), packages.text(member.key));
  top.adopt(packages, out.warnings);
}

void read_dependencies(fields& top, const std::string& where, manifest& out) {
  const yaml_node* node = top.map("dependencies", false);
  if (node == nullptr) return;
  fields dependencies(*node, "dependencies.", where);
  for (const yaml_member& member : node->members) {
    const std::string hash = dependencies.text(member.key);
    if (!is_sha256(hash))
      dependencies.blame(member.value, member.key,
                         "must be 64 hexadecimal digits in lower case, as sha256sum writes");
    out.dependencies.emplace(printable(member.key, max_text_bytes), hash);
  }
  top.adopt(dependencies, out.warnings);
}

}  // namespace

std::string class_name(uint32_t device_class) {
  for (const auto& [name, value] : classes)
    if (value == device_class) return std::string(name);
  return "other";
}

checked<manifest> parse_manifest(const std::string& text, const std::string& where) {
  const auto root = parse_strict_yaml(text);
  if (!root)
    return reject(code::manifest_syntax, fmt::format("{}:{}:{}: {}", where, root.error().line,
                                                     root.error().column, root.error().message));
  if (root->kind != yaml_node::kind_type::map)
    return reject(code::manifest_syntax, fmt::format("{}must be a map of fields, found {}",
                                                     located(where, *root), kind_of(*root)));

  fields top(*root, "", where);
  // Checked first, since the schema decides the meaning of all else.
  if (root->members.empty() || root->members.front().key != "schema")
    return reject(code::manifest_schema,
                  fmt::format("{}the first field must be 'schema: 1'", located(where, *root)),
                  "write 'schema: 1' into the first line");
  const auto schema = top.number<uint32_t>("schema", 1, 1'000'000);
  if (const auto& bad = top.bad()) return std::unexpected(*bad);
  if (schema != 1)
    return reject(code::manifest_schema,
                  fmt::format("{}schema {} is newer than this core, which reads schema 1",
                              located(where, root->members.front().value), schema));

  manifest out;
  out.name = top.text("name");
  if (!is_backend_name(out.name))
    top.blame(
        top.node_of("name"), "name",
        fmt::format("must match [a-z0-9][a-z0-9._-]{{0,31}}, found '{}'", printable(out.name, 64)));
  if (out.name == "auto" || out.name == "none")
    top.blame(top.node_of("name"), "name", "must not be auto or none");
  out.version = top.text("version");
  out.vendor = top.text("vendor");
  out.license = top.text("license");
  out.url = top.text("url", false);
  out.library = top.text("library");
  out.sha256 = top.text("sha256", false);
  if (!out.sha256.empty() && !is_sha256(out.sha256))
    top.blame(top.node_of("sha256"), "sha256",
              "must be 64 hexadecimal digits in lower case, as sha256sum writes");
  read_class(top, out);
  read_abi(top, where, out);
  out.priority = top.number<int32_t>("priority", -1000, 1000, 50);
  out.by_name_only = top.flag("by_name_only");
  read_requires(top, where, out);
  read_probe(top, where, out);
  read_aliases(top, out);
  read_conflicts(top, out);
  read_packages(top, where, out);
  read_dependencies(top, where, out);
  if (const auto& bad = top.bad()) return std::unexpected(*bad);
  top.list_unknown(out.warnings);
  top.list_places(out.places);
  return out;
}

checked<std::string> name_of_manifest(const std::filesystem::path& file) {
  const std::string name = file.filename().string();
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  constexpr std::string_view suffix = ".yaml";
  if (name.size() > 3 + suffix.size() && digit(name[0]) && digit(name[1]) && name[2] == '-' &&
      name.ends_with(suffix)) {
    std::string middle = name.substr(3, name.size() - 3 - suffix.size());
    if (is_backend_name(middle)) return middle;
  }
  return reject(code::manifest_name,
                fmt::format("a manifest is called NN-<name>.yaml, like 50-cpu.yaml; found '{}'",
                            printable(name, 64)));
}

checked<std::filesystem::path> locate_library(const std::filesystem::path& library,
                                              const std::filesystem::path& plugin_directory) {
  const std::string shown = printable(library.string(), 256);
  const bool dotted = std::ranges::any_of(
      library, [](const std::filesystem::path& part) { return part == ".." || part == "."; });
  if (dotted)
    return reject(code::manifest_outside,
                  fmt::format("`library: {}` is pointing outside: it holds '.' or '..'", shown));
  if (library.is_absolute()) return library;
  if (library.has_parent_path())
    return reject(
        code::manifest_outside,
        fmt::format("`library: {}` is pointing outside: a relative path may not hold '/'", shown));
  auto file = plugin_directory / library;
  std::error_code absent;
  const auto target = std::filesystem::canonical(file, absent);
  if (absent) return file;  // opening it will report why
  if (target.parent_path() != std::filesystem::canonical(plugin_directory, absent))
    return reject(
        code::manifest_outside,
        fmt::format("`library: {}` is pointing outside of {}, to {}", shown,
                    printable(plugin_directory.string(), 256), printable(target.string(), 256)));
  return file;
}

checked<std::filesystem::path> locate_library(
    const std::filesystem::path& library,
    const std::vector<std::filesystem::path>& plugin_directories) {
  const bool bare = !library.has_root_path() && !library.has_parent_path();
  std::error_code ignored;
  for (const auto& directory : plugin_directories)
    // A link counts even if its target has a fault: that is reported, and no other file is used.
    if (bare &&
        std::filesystem::exists(std::filesystem::symlink_status(directory / library, ignored)))
      return locate_library(library, directory);
  return locate_library(library, plugin_directories.back());
}

}  // namespace bitnet::plugin
