#pragma once
// bitnet-backend-probe as a process: started by a program as a broker, and by a broker as the child
// that runs a plugin.

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
  std::string argument;                  // the only one
  std::vector<std::string> environment;  // "NAME=value", all of it
  bool own_session = false;              // outlives its starter; else a process group of its own
  bool keep_output = false;              // what it prints comes back; else it goes nowhere
};

struct helper_process {
  pid_t pid = -1;
  plugin::file_descriptor socket;   // where it is at task_fd
  plugin::file_descriptor output;   // of keep_output; does not block
  plugin::file_descriptor process;  // readable when it has ended
};

// BN-P-HELPER, "unprobed: not loaded; ...".
[[nodiscard]] plugin::defect no_helper(const std::string& why);

// Starts it and hands it its first message. BN-P-HELPER.
[[nodiscard]] plugin::checked<helper_process> start_helper(const helper_start& how,
                                                           std::string_view message);

// The process and whatever it started in its group.
void signal_all(const helper_process& p, int number);

// Processes that did not die when they were killed, as in a driver that waits for its device, and
// those that go on by themselves. They are reaped whenever there is another probe.
void leave_alone(pid_t pid);
void reap_left_alone();

}  // namespace bitnet::probe
