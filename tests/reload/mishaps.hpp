#pragma once
// What installers do to a plugin's files, well and badly, before a reload.

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <string>

#include "yard.hpp"

namespace bitnet::test {

// What happens to the installed files before a reload, and whether it may be taken.
struct mishap {
  const char* name;
  bool taken;
  bool to_the_loaded_file = false;  // which the installed one must be, then
};
inline constexpr std::array<mishap, 11> mishaps = {{
    {"renamed over", true},
    {"removed and written anew", true},
    {"nothing new", false},
    {"deleted", false},
    {"no plugin", false},
    {"cut short", false},
    {"disk full", false},
    {"new library, half a manifest", false},
    {"new manifest, library of another backend", false},
    {"copied over in place", false, true},
    {"truncated in place", false, true},
}};

// A yard with the cpu backend, to which the mishaps happen.
class mishap_yard : public yard {
 public:
  mishap_yard() : plugin_(read(BITNET_CPU_PLUGIN)) {
    install("cpu", plugin_);
    describe("cpu");
  }

  void happen(std::size_t which) {
    switch (which) {
      case 0:
        install_next();
        break;
      case 1:
        std::filesystem::remove(library("cpu"));
        install_next();
        break;
      case 2:
        break;
      case 3:
        std::filesystem::remove(library("cpu"));
        break;
      case 4:
        install("cpu", "hello");
        break;
      case 5:
        install("cpu", std::string_view(plugin_).substr(0, plugin_.size() / 3 * 2));
        break;
      case 6:
        fill_the_disk();
        break;
      case 7:
        install_next();
        replace(manifest("cpu"), "schema: 1\nname: cp", 0644);
        break;
      case 8:
        install("cpu", read(BITNET_FRAGILE_PLUGIN));
        break;
      case 9:
        overwrite(library("cpu"), rebuilt(plugin_, ++serial_));
        break;
      default:
        // Behind what is mapped: a page that is cut off would end the code that runs there.
        std::filesystem::resize_file(library("cpu"),
                                     std::filesystem::file_size(library("cpu")) - 1);
        break;
    }
  }

  // The administrator repairs it.
  void repair() {
    install("cpu", rebuilt(plugin_, serial_));
    describe("cpu");
  }

 private:
  void install_next() { install("cpu", rebuilt(plugin_, ++serial_)); }

  // A write that ends early because there is no room, and an installer that renames all the same:
  // the limit of a file's size stands for a full disk, which a test cannot make everywhere.
  void fill_the_disk() {
    rlimit before{};
    getrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, SIG_IGN);
    rlimit little = before;
    little.rlim_cur = 4096;
    setrlimit(RLIMIT_FSIZE, &little);
    install_next();
    setrlimit(RLIMIT_FSIZE, &before);
  }

  std::string plugin_;
  uint32_t serial_ = 0;
};

}  // namespace bitnet::test
