#pragma once
// bitnet-backend-probe as a broker: it takes one job, waits for the locks, lets a child probe, and
// caches the answer for the next start.
//
// It runs no code of the plugin, so that it may write the cache. It runs at idle priority unless
// the job is needed, and continues when the program has ended.

namespace bitnet::probe {

// The helper's argument; no backend has such a name.
constexpr const char* broker_argument = "--broker";

// Runs the job that is read from `fd`. Returns the helper's exit status.
[[nodiscard]] int serve_as_broker(int fd);

}  // namespace bitnet::probe
