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

// Writes what is known of `tokens`; how many tokens that is. The file replaces another one of that
// name whole or not at all, and a new one is the user's alone to read.
result<uint64_t> save(async_engine& e, std::span<const int32_t> tokens,
                      const std::filesystem::path& path);

// Makes known what the file has, as far as there is room; how many tokens.
result<uint64_t> restore(async_engine& e, const std::filesystem::path& path);

}  // namespace bitnet::serving
