#pragma once
// The job that a program sends to a broker, and the answer.

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
  uint32_t soft_ms, hard_ms;  // time until reported as slow; time until killed
};
using deadlines = std::array<deadline, n_stages>;

// The default deadlines. Hard ones are at most `most_ms`, the manifest's, and at least a twelfth of
// it; stages in which drivers work have `most_ms`.
[[nodiscard]] deadlines deadlines_for(uint32_t most_ms);

struct job {
  task work;
  deadlines limits{};
  std::vector<std::string> environment;  // "NAME=value"
  std::filesystem::path helper;          // bitnet-backend-probe, absolute
  std::filesystem::path scratch;         // in which the child's own folder is made
  std::filesystem::path memory;          // folder of cached answers; "": none, and it ends with us
  cache_key key;                         // under which the answer is cached
  bool fresh = false;                    // ignore cached answers
  // No other backend would do: the probe has the priority of the program that waits for it.
  bool needed = false;
};

[[nodiscard]] std::string write_job(const job& j);
// BN-P-HELPER.
[[nodiscard]] plugin::checked<job> read_job(std::string_view text);

// An outcome, including its cache members.
[[nodiscard]] std::string write_answer(const outcome& f);
// BN-P-MESSAGE.
[[nodiscard]] plugin::checked<outcome> read_answer(std::string_view text);

}  // namespace bitnet::probe
