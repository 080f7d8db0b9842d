#pragma once
// --watch: reloads a backend when its file or its manifest changes on disk.
//
// A change is a hint only. Installers write library and manifest at different moments, so the
// reload waits until nothing has moved for a while; whether there is something to load is then
// decided by what lies there.
//
// Threads one of its own, which ends with the object.

#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>

#include "result.hpp"

namespace bitnet::host {

class watcher {
 public:
  // `changed` is called on the watcher's thread, after `quiet` without a change in `folders`.
  static result<std::unique_ptr<watcher>> start(const std::set<std::string>& folders,
                                                std::chrono::milliseconds quiet,
                                                std::function<void()> changed);
  ~watcher();
  watcher(const watcher&) = delete;
  watcher& operator=(const watcher&) = delete;

 private:
  watcher(int events, int stop, std::chrono::milliseconds quiet, std::function<void()> changed);
  void run();

  const int events_, stop_;  // descriptors
  const std::chrono::milliseconds quiet_;
  const std::function<void()> changed_;
  std::thread thread_;
};

}  // namespace bitnet::host
