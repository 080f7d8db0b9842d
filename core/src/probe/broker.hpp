#pragma once
// bitnet-backend-probe as a broker: takes one job, has it probed by a child when it is its turn,
// and leaves the answer where the next start finds it.
//
// It runs none of the plugin's code, so that it may write what is remembered. It is idle-class, but
// for a job that is needed, and goes on when the program that asked has ended.

namespace bitnet::probe {

// The helper's argument; no backend has such a name.
constexpr const char* broker_argument = "--broker";

// Carries out the job that comes from `fd`. The exit status of the helper.
[[nodiscard]] int serve_as_broker(int fd);

}  // namespace bitnet::probe
