#pragma once
// The child's report of its own crash, from the signal handler: the slot and self-test that ran,
// the function of the plugin, the address.
//
// The report is not needed to detect a crash, since the parent sees how the child ended. A plugin
// that corrupts memory may corrupt the report.

#include <filesystem>
#include <string>

namespace bitnet::probe {

// Sets the name of the running self-test while it lives: "linear_ternary.ternary2 (kernel ...)".
// At most one object may exist at a time.
class running_test {
 public:
  explicit running_test(const std::string& what);
  ~running_test();
  running_test(const running_test&) = delete;
  running_test& operator=(const running_test&) = delete;
};

// From now on a crash sends a frame of kind crash to `fd`; then the process ends as without a
// handler. Functions of `library` are named by its symbol table.
void report_crashes(int fd, const std::filesystem::path& library);

}  // namespace bitnet::probe
