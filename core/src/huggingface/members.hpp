#pragma once
// The table of what bitnet does with each member of the files of a checkpoint.
//
// Rule    A member that changes the text is used, or reported as not used. A used member must have
//         the type that it is read as, else the folder is rejected. null counts as absent.
// Judge   transformers 5.24, on the same folder, defines what is correct.
// Source  docs/reference/model-folder-members.md; a test compares it with the table.

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "gguf/file.hpp"

namespace bitnet::huggingface {

// Types of values, as bits.
namespace types {
inline constexpr uint32_t count = 1;    // a whole number from 0 to 2^32 - 1
inline constexpr uint32_t integer = 2;  // any whole number
inline constexpr uint32_t number = 4;   // a finite number that a float holds
inline constexpr uint32_t truth = 8;
inline constexpr uint32_t text = 16;
inline constexpr uint32_t list = 32;
inline constexpr uint32_t object = 64;
inline constexpr uint32_t counts = 128;   // a list of counts
inline constexpr uint32_t numbers = 256;  // a list of numbers
inline constexpr uint32_t texts = 512;    // a list of texts
}  // namespace types

enum class member_use : uint8_t {
  used,
  harmless,  // cannot change a text
  left_out   // could change a text, and is reported if present
};

struct member_row {
  std::string_view file;
  std::string_view name;  // "quantization_config.linear_class" for a nested member
  member_use what;
  uint32_t types;              // of a used member; 0: its reader checks it
  std::string_view why;        // what it does; of a member left out: why, or what to do
  std::string_view only = "";  // model types that have it, separated by blanks; "": all
};
std::span<const member_row> member_rows();

struct file_row {
  std::string_view name;  // '*' stands for any text
  member_use what;
  std::string_view why;
};
std::span<const file_row> file_rows();

using members_left_out = std::vector<gguf::left_out_member>;

// Rejects used members of a wrong type; adds unused ones to `out`. `type`: model_type.
result<void> check_members(const nlohmann::json& object, std::string_view file,
                           std::string_view type, members_left_out& out);

// Adds the files of the folder that are not read to `out`.
void name_files(const std::filesystem::path& folder, members_left_out& out);

// The type of a value in messages: "a text", "a number", ...
std::string type_of(const nlohmann::json& x);

}  // namespace bitnet::huggingface
