#include "huggingface/json_files.hpp"

#include <fmt/core.h>

#include <string_view>
#include <utility>

#include "huggingface/config.hpp"
#include "huggingface/folder.hpp"
#include "text/json_members.hpp"

namespace bitnet::huggingface {

using nlohmann::json;
namespace fs = std::filesystem;

result<json> read_json(const fs::path& folder, const char* name, json::value_t wanted) {
  auto mapped = open_member(folder, name);
  if (!mapped) return std::unexpected(mapped.error());
  const std::string_view text(reinterpret_cast<const char*>(mapped->bytes().data()),
                              mapped->bytes().size());
  auto out = wanted == json::value_t::object ? parse_object(text, name)
                                             : result<json>(text::json_of(text));
  if (auto ok = mapped->check_size(); !ok) return std::unexpected(ok.error());
  if (out && out->type() != wanted) return bad_data(fmt::format("{} is no JSON array", name));
  return out;
}

result<json> read_optional(const fs::path& folder, const char* name) {
  std::error_code ignored;
  if (!fs::exists(folder / name, ignored)) return json();
  return read_json(folder, name);
}

}  // namespace bitnet::huggingface
