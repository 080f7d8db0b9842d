#include "huggingface/chat_templates.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "gguf/mapping.hpp"
#include "gguf/text.hpp"
#include "huggingface/json_members.hpp"

namespace bitnet::huggingface {
namespace {

namespace fs = std::filesystem;
using gguf::quote;
using nlohmann::json;

constexpr std::string_view template_config = "tokenizer_config.json";
constexpr std::string_view only_default = "only the template named 'default' is used";

result<std::string> text_of(const fs::path& folder, const std::string& name) {
  auto mapped = gguf::mapping::open(folder / name);
  if (!mapped) return pass_on(std::move(mapped), name);
  std::string text(reinterpret_cast<const char*>(mapped->bytes().data()), mapped->bytes().size());
  if (auto ok = mapped->check_size(); !ok) return std::unexpected(ok.error());
  if (!gguf::is_utf8(text)) return bad_data(fmt::format("{} is not UTF-8", name));
  return text;
}

// Names of the files in additional_chat_templates.
std::vector<std::string> additional(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code stop;
  constexpr std::string_view within = "additional_chat_templates";
  constexpr size_t most = 1000;
  for (fs::directory_iterator it(folder / within, stop), end;
       !stop && it != end && names.size() < most; it.increment(stop))
    if (it->path().extension() == ".jinja")
      names.push_back(fmt::format("{}/{}", within, it->path().filename().native()));
  std::ranges::sort(names);
  return names;
}

// Reads a text, or [{"name": "default", "template": "..."}, ...].
result<std::string> template_in(const json& c, members_left_out& out) {
  const json& all = at(c, "chat_template");
  if (!all.is_array()) return text_at(c, "chat_template");
  std::string found;
  for (const json& one : all) {
    if (!at(one, "name").is_string() || !at(one, "template").is_string())
      return bad_data(fmt::format(
          "{}: 'chat_template' is a list; expected objects with the texts 'name' and 'template'",
          template_config));
    const std::string name = text_at(one, "name");
    if (name == "default")
      found = text_at(one, "template");
    else
      out.push_back(
          {std::string(template_config), "chat_template." + name, std::string(only_default)});
  }
  return found;
}

}  // namespace

result<std::string> chat_template_of(const fs::path& folder, const json& tokenizer_config,
                                     members_left_out& out) {
  constexpr const char* single = "chat_template.jinja";
  std::optional<std::string> chosen;
  std::error_code ignored;
  bool files = false;
  if (fs::exists(folder / single, ignored)) {
    auto text = text_of(folder, single);
    if (!text) return text;
    chosen = *std::move(text);
    files = true;
  }
  for (const std::string& name : additional(folder)) {
    files = true;
    if (!name.ends_with("/default.jinja")) {
      out.push_back({name, "", std::string(only_default)});
      continue;
    }
    if (chosen) out.push_back({single, "", fmt::format("{} comes first", name)});
    auto text = text_of(folder, name);
    if (!text) return text;
    chosen = *std::move(text);
  }
  if (!files) return template_in(tokenizer_config, out);
  if (const json& member = at(tokenizer_config, "chat_template");
      !member.is_null() && member != chosen.value_or(""))
    out.push_back(
        {std::string(template_config), "chat_template", "files with templates come first"});
  return chosen.value_or("");
}

}  // namespace bitnet::huggingface
