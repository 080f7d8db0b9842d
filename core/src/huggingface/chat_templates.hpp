#pragma once
// Finds the chat template of a folder: additional_chat_templates/default.jinja, else
// chat_template.jinja, else the member of tokenizer_config.json, as transformers 5 does. If there
// is a file, the member is ignored.

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/result.hpp"
#include "huggingface/members.hpp"

namespace bitnet::huggingface {

// Returns "" if there is none. Adds unused templates to `out`.
[[nodiscard]] result<std::string> chat_template_of(const std::filesystem::path& folder,
                                                   const nlohmann::json& tokenizer_config,
                                                   members_left_out& out);

}  // namespace bitnet::huggingface
