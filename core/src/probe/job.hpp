#pragma once
// One probe as the program asks a broker for it, and the answer that comes back.

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "probe/cache.hpp"
#include "probe/outcome.hpp"
#include "probe/task.hpp"

namespace bitnet::probe {

struct deadline {
  uint32_t soft_ms, hard_ms;  // reported as slow; ended
};
using deadlines = std::array<deadline, n_stages>;

// The usual ones, the hard ones cut to `most_ms`, which is the manifest's, and not below a twelfth
// of it; those of the stages in which drivers work are `most_ms`.
[[nodiscard]] deadlines deadlines_for(uint32_t most_ms);

struct job {
  task work;
  deadlines limits{};
  std::vector<std::string> environment;  // "NAME=value"
  std::filesystem::path helper;          // bitnet-backend-probe, absolute
  std::filesystem::path scratch;         // where a folder for its child may be made
  std::filesystem::path memory;          // folder of the answers; "": none, and it ends with us
  cache_key key;                         // of the answer
  bool fresh = false;                    // ask, whatever is remembered
  bool needed = false;                   // nothing else would do: at the asker's own priority
};

[[nodiscard]] std::string write_job(const job& j);
// BN-P-HELPER.
[[nodiscard]] plugin::checked<job> read_job(std::string_view text);

// An outcome with what it has of the cache.
[[nodiscard]] std::string write_answer(const outcome& f);
// BN-P-MESSAGE.
[[nodiscard]] plugin::checked<outcome> read_answer(std::string_view text);

}  // namespace bitnet::probe
