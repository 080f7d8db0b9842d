#pragma once
// Options and calls in messages, as the program calls them: no message has such a name in its text,
// each asks for it here. fmt::format("use a larger {}", say(word::n_context)).

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "knobs/wording.hpp"

namespace bitnet {

#define BITNET_WORD_ENUM(id, library, program) id,
enum class word : uint8_t { BITNET_WORDING(BITNET_WORD_ENUM) };
#undef BITNET_WORD_ENUM

// What bitnet.h calls it, until the program has set another. From any thread.
[[nodiscard]] std::string say(word what);

// `text` with what is said in place of each {id}: for texts that are constants of a table.
[[nodiscard]] std::string say_in(std::string_view text);

// For the whole process; nullptr is the library's own again. An id that is no word's is
// BITNET_NOT_FOUND, words that no message has room for are BITNET_INVALID_ARGUMENT.
result<void> set_wording(std::string_view id, const char* text);

}  // namespace bitnet
