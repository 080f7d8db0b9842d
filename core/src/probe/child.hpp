#pragma once
// The child's side of a probe: opens one plugin, asks it, tests it, closes it, and says so step by
// step.

namespace bitnet::probe {

// The descriptor of the socket that the core hands to the helper.
constexpr int task_fd = 3;

// Exit statuses of the helper by which the core recognises a plugin that broke the connection.
constexpr int exit_cannot_speak = 70, exit_no_task = 71;

// Reads one task from `fd` and carries it out. The exit status of the helper.
[[nodiscard]] int serve(int fd);

}  // namespace bitnet::probe
