#pragma once
// Starts bitnet-backend-probe: programs start it as a broker, brokers as the child that runs a
// plugin.

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "plugin/codes/codes.hpp"
#include "plugin/trust/trust.hpp"

namespace bitnet::probe {

struct helper_start {
  std::filesystem::path helper;          // absolute; checked like a plugin
  std::string argument;                  // its only argument
  std::vector<std::string> environment;  // "NAME=value", complete
  bool own_session = false;              // outlives its starter; else it gets its own process group
  bool keep_output = false;              // capture what it prints; else it is discarded
};

struct helper_process {
  pid_t pid = -1;
  plugin::file_descriptor socket;   // its other end is task_fd
  plugin::file_descriptor output;   // with keep_output; non-blocking
  plugin::file_descriptor process;  // readable when it has ended
};

// BN-P-HELPER, "unprobed: not loaded; ...".
[[nodiscard]] plugin::defect no_helper(const std::string& why);

// Starts it and hands it its first message. BN-P-HELPER.
[[nodiscard]] plugin::checked<helper_process> start_helper(const helper_start& how,
                                                           std::string_view message);

// Sends a signal to the process and its group.
void signal_all(const helper_process& p, int number);

// Takes over processes that survive a kill, as in a driver that waits for its device, and processes
// that continue alone. They are reaped at later probes.
void leave_alone(pid_t pid);
void reap_left_alone();

}  // namespace bitnet::probe
