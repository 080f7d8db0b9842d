#pragma once
// Which chat template of a folder counts: additional_chat_templates/default.jinja before
// chat_template.jinja before the member of tokenizer_config.json, as in transformers 5. Where there
// is a file, the member does not count at all.

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/result.hpp"
#include "huggingface/members.hpp"

namespace bitnet::huggingface {

// "": none. Templates that are not used are added to `out`.
[[nodiscard]] result<std::string> chat_template_of(const std::filesystem::path& folder,
                                                   const nlohmann::json& tokenizer_config,
                                                   members_left_out& out);

}  // namespace bitnet::huggingface
