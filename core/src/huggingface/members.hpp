#pragma once
// What bitnet does with each member of the files of a checkpoint: the one table.
//
// Rule    a member that changes the text is used, or it is named as not used; one that is used has
//         the type that it is read as, or the folder is refused. null counts as absent.
// Judge   transformers 5.24 with the same folder.
// Source  docs/reference/model-folder-members.md, which a test compares with the table.

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

// Types that a value may have, as bits.
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

enum class fate : uint8_t {
  used,
  harmless,  // cannot change a text
  left_out   // could change one, and is named where it is there
};

struct member_row {
  std::string_view file;
  std::string_view name;  // "quantization_config.linear_class" of an object within
  fate what;
  uint32_t types;              // of one that is used; 0: the reader itself checks it
  std::string_view why;        // what it does; of one that is left out, why or what to do
  std::string_view only = "";  // the model types that have it, separated by blanks; "": all
};
std::span<const member_row> member_rows();

struct file_row {
  std::string_view name;  // with '*' for any text
  fate what;
  std::string_view why;
};
std::span<const file_row> file_rows();

using members_left_out = std::vector<gguf::left_out_member>;

// Refuses what is used and of another type; adds what is not used to `out`. `type`: model_type.
result<void> check_members(const nlohmann::json& object, std::string_view file,
                           std::string_view type, members_left_out& out);

// Adds the files of the folder that are not read.
void name_files(const std::filesystem::path& folder, members_left_out& out);

// "a text", "a number", ...: what a value is, for messages.
std::string type_of(const nlohmann::json& x);

}  // namespace bitnet::huggingface
