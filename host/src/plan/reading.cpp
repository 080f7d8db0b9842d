#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <exception>
#include <initializer_list>
#include <sstream>

#include "plan/file.hpp"
#include "plan/forms.hpp"
#include "plan/kernel_aliases.hpp"
#include "plan/pins.hpp"
#include "settings/value.hpp"
#include "text/printable.hpp"

namespace bitnet::host::plans {
namespace {

constexpr std::size_t most_items = 4096;    // of a list
constexpr std::size_t most_nodes = 65'536;  // per file
constexpr int deepest = 8;
constexpr int64_t most_layers = 1'000'000;

// Unwinds from the document; caught in read_plan.
struct misfit : std::exception {
  misfit(const YAML::Mark& at, std::string why) : line(at.line + 1), message(std::move(why)) {}
  [[nodiscard]] const char* what() const noexcept override { return message.c_str(); }
  int line;  // 0: unknown
  std::string message;
};

// Rejects unlimited size or nesting before a tree is built.
class guard final : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark& mark) override {
    if (seen_) throw misfit(mark, "expected one document, found another one");
    seen_ = true;
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override { count(mark, anchor, ""); }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    throw misfit(mark, "expected a value, found an alias (*)");
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string&) override {
    count(mark, anchor, tag);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    enter(mark, anchor, tag);
  }
  void OnSequenceEnd() override { --depth_; }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    enter(mark, anchor, tag);
  }
  void OnMapEnd() override { --depth_; }

 private:
  void count(const YAML::Mark& mark, YAML::anchor_t anchor, const std::string& tag) {
    if (anchor != YAML::NullAnchor) throw misfit(mark, "expected a value, found an anchor (&)");
    if (!tag.empty() && tag != "?" && tag != "!")
      throw misfit(mark, "expected a value, found a tag (!)");
    if (++n_nodes_ > most_nodes)
      throw misfit(mark, fmt::format("expected at most {} values", most_nodes));
  }
  void enter(const YAML::Mark& mark, YAML::anchor_t anchor, const std::string& tag) {
    count(mark, anchor, tag);
    if (++depth_ > deepest)
      throw misfit(mark, fmt::format("expected at most {} levels of nesting", deepest));
  }

  bool seen_ = false;
  int depth_ = 0;
  std::size_t n_nodes_ = 0;
};

std::string word_of(const YAML::Node& one, const char* key) {
  if (!one.IsScalar() || one.Scalar().empty() || one.Scalar().size() > longest_word)
    throw misfit(one.Mark(),
                 fmt::format("expected a text of 1 to {} bytes for {}", longest_word, key));
  const std::string& text = one.Scalar();
  if (text::printable(text) != text)
    throw misfit(one.Mark(), fmt::format("expected a printable text for {}", key));
  return text;
}

int64_t number_of(const YAML::Node& one, const char* key, int64_t highest) {
  const std::string text = word_of(one, key);
  const auto n = parse_integer(text);
  if (!n || *n < 0 || *n > highest)
    throw misfit(one.Mark(), fmt::format("expected a number from 0 to {} for {}, found '{}'",
                                         highest, key, text));
  return *n;
}

bool truth_of(const YAML::Node& one, const char* key) {
  const std::string text = word_of(one, key);
  if (text != "true" && text != "false")
    throw misfit(one.Mark(), fmt::format("expected true or false for {}, found '{}'", key, text));
  return text == "true";
}

layer_range range_of(const YAML::Node& one) {
  const std::string text = word_of(one, "layers");
  const std::size_t dash = text.find('-');
  const auto first = parse_integer(text.substr(0, dash));
  const auto last = dash == std::string::npos ? first : parse_integer(text.substr(dash + 1));
  if (!first || !last || *first < 0 || *last < *first || *last > most_layers)
    throw misfit(one.Mark(), fmt::format("expected layers as in 3 or 0-29, found '{}'", text));
  return {static_cast<uint32_t>(*first), static_cast<uint32_t>(*last)};
}

void expect_list(const YAML::Node& one, const char* key) {
  if (!one.IsSequence() || one.size() > most_items)
    throw misfit(one.Mark(),
                 fmt::format("expected a list of at most {} items for {}", most_items, key));
}

std::vector<std::string> words_of(const YAML::Node& one, const char* key) {
  if (!one.IsSequence()) return {word_of(one, key)};
  expect_list(one, key);
  std::vector<std::string> out;
  for (const YAML::Node& item : one) out.push_back(word_of(item, key));
  return out;
}

// Checks that a map has keys of `known` only, each once.
void expect_map(const YAML::Node& one, const char* what,
                std::initializer_list<std::string_view> known) {
  if (!one.IsMap()) throw misfit(one.Mark(), fmt::format("expected keys and values for {}", what));
  std::vector<std::string> seen;
  for (const auto& item : one) {
    const std::string key = word_of(item.first, "a key");
    if (std::ranges::find(known, key) == known.end())
      throw misfit(item.first.Mark(), fmt::format("{} has no key '{}'; expected {}", what, key,
                                                  fmt::join(known, ", ")));
    if (std::ranges::find(seen, key) != seen.end())
      throw misfit(item.first.Mark(), fmt::format("the key {} is there twice", key));
    seen.push_back(key);
  }
}

YAML::Node needed(const YAML::Node& from, const char* key) {
  const YAML::Node one = from[key];
  if (!one) throw misfit(from.Mark(), fmt::format("expected the key {}", key));
  return one;
}

identity model_of(const YAML::Node& from) {
  expect_map(from, "model", {"name", "architecture", "layers", "parameters", "fingerprint"});
  identity out;
  if (const YAML::Node one = from["name"]) out.name = word_of(one, "name");
  out.architecture = word_of(needed(from, "architecture"), "architecture");
  out.n_layers = static_cast<uint32_t>(number_of(needed(from, "layers"), "layers", most_layers));
  out.n_parameters =
      static_cast<uint64_t>(number_of(needed(from, "parameters"), "parameters", INT64_MAX));
  if (const YAML::Node one = from["fingerprint"]) out.fingerprint = word_of(one, "fingerprint");
  return out;
}

// Rejects names of BitNet-rs that are no kernel here, with the explanation.
std::vector<std::string> kernels_at(const YAML::Node& from, const char* key) {
  const YAML::Node one = from[key];
  if (!one) return {};
  std::vector<std::string> out = words_of(one, key);
  for (const std::string& name : out)
    if (const kernel_alias* alias = find_kernel_alias(name);
        alias != nullptr && !alias->instead.empty())
      throw misfit(one.Mark(), fmt::format("{} is no kernel: {}", name, alias->instead));
  return out;
}

row row_of(const YAML::Node& from, const part& in) {
  expect_map(from, "an item of ops",
             {"op", "layers", "format", "level", "kernel", "prompt-kernel"});
  row out{.op = word_of(needed(from, "op"), "op")};
  if (const YAML::Node one = from["layers"]) {
    out.layers = range_of(one);
    if (out.layers->first < in.first_layer || out.layers->last >= in.first_layer + in.n_layers)
      throw misfit(one.Mark(), fmt::format("layers {} are not all of those of {}, {}",
                                           text_of(*out.layers), in.device, section_text(in)));
  }
  if (const YAML::Node one = from["format"]) out.formats = words_of(one, "format");
  if (const YAML::Node one = from["level"]) {
    out.level = word_of(one, "level");
    if (out.level != "fused" && out.level != "optimised" && out.level != "reference")
      throw misfit(one.Mark(), fmt::format("expected fused, optimised or reference for level, "
                                           "found '{}'",
                                           out.level));
  }
  out.token = kernels_at(from, "kernel");
  out.prompt = kernels_at(from, "prompt-kernel");
  return out;
}

part part_of(const YAML::Node& from) {
  expect_map(from, "an item of parts", {"device", "embedding", "layers", "head", "ops"});
  const YAML::Node device = needed(from, "device");
  part out{.device = word_of(device, "device")};
  const std::size_t colon = out.device.find(':');
  out.backend = out.device.substr(0, colon);
  if (colon == std::string::npos || out.backend.empty() || !device_index(out.device))
    throw misfit(device.Mark(),
                 fmt::format("expected a device as in cpu:0 for device, found '{}'", out.device));
  out.embedding = truth_of(needed(from, "embedding"), "embedding");
  out.head = truth_of(needed(from, "head"), "head");
  const YAML::Node layers = needed(from, "layers");
  if (word_of(layers, "layers") != "none") {
    const layer_range range = range_of(layers);
    out.first_layer = range.first;
    out.n_layers = range.last - range.first + 1;
  }
  const YAML::Node ops = from["ops"];
  if (!ops) return out;
  expect_list(ops, "ops");
  for (const YAML::Node& one : ops) out.rows.push_back(row_of(one, out));
  return out;
}

// Checks that the parts follow each other from the embedding to the head.
void check_sections(const YAML::Node& at, const plan& of) {
  uint32_t next = 0;
  for (std::size_t i = 0; i < of.parts.size(); ++i) {
    part const& one = of.parts[i];
    if (one.n_layers == 0 ? !one.embedding : one.first_layer != next)
      throw misfit(at[i].Mark(), fmt::format("expected layers from {} on for {}, found {}", next,
                                             one.device, section_text(one)));
    next += one.n_layers;
    if (one.embedding != (i == 0) || one.head != (i + 1 == of.parts.size()))
      throw misfit(at[i].Mark(),
                   "expected the embedding in the first part and the head in the "
                   "last one, and in no other");
  }
  if (next != of.model.n_layers)
    throw misfit(at.Mark(), fmt::format("the parts have {} layers and the model has {}", next,
                                        of.model.n_layers));
}

plan plan_of(const YAML::Node& document) {
  expect_map(document, "the file", {"bitnet-plan", "model", "forms", "parts"});
  const YAML::Node version = needed(document, "bitnet-plan");
  if (word_of(version, "bitnet-plan") != "1")
    throw misfit(version.Mark(), fmt::format("expected version 1 of plans, found '{}'; save it "
                                             "again with bitnet plan --save",
                                             version.Scalar()));
  plan out{.model = model_of(needed(document, "model"))};
  if (const YAML::Node forms = document["forms"]) {
    out.forms = words_of(forms, "forms");
    for (const std::string& one : out.forms)
      if (const std::string why = why_no_form(one); !why.empty()) throw misfit(forms.Mark(), why);
  }
  const YAML::Node parts = needed(document, "parts");
  expect_list(parts, "parts");
  if (parts.size() == 0) throw misfit(parts.Mark(), "expected at least one part");
  for (const YAML::Node& one : parts) out.parts.push_back(part_of(one));
  check_sections(parts, out);
  return out;
}

}  // namespace

result<plan> read_plan(std::string_view text, std::string_view name) {
  const auto rejected = [&](int line, std::string_view why) {
    return fail(exit_code::usage,
                fmt::format("plan {}{}: {}", text::printable(name),
                            line > 0 ? fmt::format(":{}", line) : "", text::printable(why)));
  };
  if (text.size() > longest_plan)
    return rejected(0, fmt::format("expected at most {} bytes", longest_plan));
  try {
    const std::string all(text);
    std::istringstream in{all};
    YAML::Parser parser(in);
    guard bounds;
    while (parser.HandleNextDocument(bounds)) {
    }
    return plan_of(YAML::Load(all));
  } catch (const misfit& found) {
    return rejected(found.line, found.message);
  } catch (const YAML::Exception& found) {
    return rejected(found.mark.line + 1, found.msg);
  } catch (const std::exception& found) {
    return rejected(0, found.what());
  }
}

}  // namespace bitnet::host::plans
