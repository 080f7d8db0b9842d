#pragma once
// Computed sequences in files, so that a prompt that was computed once is known after a restart.
//
// Errors   begin with the file's path.
// Threads  any; they wait for the scheduler's thread, and read and write files on their own.

#include <cstdint>
#include <filesystem>
#include <span>

#include "base/result.hpp"
#include "serving/async_engine.hpp"

namespace bitnet::serving {

// Writes the known prefix of `tokens`, and returns how many tokens it has. The file replaces
// another one of that name whole or not at all; only the user can read a new file.
result<uint64_t> save(async_engine& e, std::span<const int32_t> tokens,
                      const std::filesystem::path& path);

// Makes the file's sequence known, as far as there is room, and returns how many tokens are known.
result<uint64_t> restore(async_engine& e, const std::filesystem::path& path);

}  // namespace bitnet::serving
