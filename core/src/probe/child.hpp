#pragma once
// The child's side of a probe: opens one plugin, lists its devices, tests it, closes it, and
// reports each step.

namespace bitnet::probe {

// The descriptor of the socket that the core hands to the helper.
constexpr int task_fd = 3;

// Exit statuses of the helper that show that a plugin broke the connection.
constexpr int exit_cannot_speak = 70, exit_no_task = 71;

// Reads one task from `fd` and runs it. Returns the helper's exit status.
[[nodiscard]] int serve(int fd);

}  // namespace bitnet::probe
