#pragma once
// The program's names of options and calls, for messages. A message never contains such a name, but
// asks here: fmt::format("use a larger {}", say(word::n_context)).

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "tables/wording.hpp"

namespace bitnet {

#define BITNET_WORD_ENUM(id, library, program) id,
enum class word : uint8_t { BITNET_WORDING(BITNET_WORD_ENUM) };
#undef BITNET_WORD_ENUM

// Returns the name in bitnet.h, or the one that the program has set. From any thread.
[[nodiscard]] std::string say(word what);

// Replaces each {id} in `text` by its name: for constant texts of tables.
[[nodiscard]] std::string say_in(std::string_view text);

// Sets a name for the whole process; nullptr: the library's. BITNET_NOT_FOUND for an unknown id,
// BITNET_INVALID_ARGUMENT for a name that is too long for messages.
result<void> set_wording(std::string_view id, const char* text);

}  // namespace bitnet
