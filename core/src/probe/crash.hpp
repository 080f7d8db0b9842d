#pragma once
// What the child reports of its own crash, from the handler of the signal that ends it: the slot
// and the self-test that ran, the function of the plugin, the address.
//
// Nothing here is needed to notice a crash, which its parent sees from the way in which it ended;
// and a plugin that wrote where it should not may have damaged this as well.

#include <filesystem>
#include <string>

namespace bitnet::probe {

// What the self-test is about while this lives: "linear_ternary.ternary2 (kernel ...)". One at a
// time.
class running_test {
 public:
  explicit running_test(const std::string& what);
  ~running_test();
  running_test(const running_test&) = delete;
  running_test& operator=(const running_test&) = delete;
};

// From now on a crash of this process is reported to `fd` as a frame of kind crash, then ends it as
// without us. The functions of `library` are named as far as its symbol table does.
void report_crashes(int fd, const std::filesystem::path& library);

}  // namespace bitnet::probe
