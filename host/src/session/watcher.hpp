#pragma once
// --watch: notices when a backend's library or manifest is replaced by another file.
//
// It decides by looking at the files again and again, since folders are replaced, links are
// changed, and some file systems report nothing. Kernel notices about the folders and links on the
// way only make it look sooner; it renews them at each look.
//
// Installers write library and manifest at different moments, so a change counts once the files
// have been unchanged for a while, or have kept changing for too long.
//
// Threads  one of its own, which ends with the object.

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "session/file_mark.hpp"

namespace bitnet::host {

class watcher {
 public:
  struct pace {
    std::chrono::milliseconds quiet{2000};       // longer than an installer takes between two files
    std::chrono::milliseconds patience{10'000};  // longest wait while files keep changing
    std::chrono::milliseconds look{1000};        // between looks without a notice
  };
  // `files` returns the paths to watch, at each look; `changed` is called after one of them became
  // another file. The watcher's thread calls both. Throws std::system_error if no thread can be
  // created.
  watcher(std::function<std::set<std::string>()> files, std::function<void()> changed,
          const pace& p);
  ~watcher();
  watcher(const watcher&) = delete;
  watcher& operator=(const watcher&) = delete;

 private:
  using clock = std::chrono::steady_clock;
  void run();
  void close_descriptors() const;
  bool look();
  void watch_the_way();
  [[nodiscard]] bool sleep();

  const std::function<std::set<std::string>()> files_;
  const std::function<void()> changed_;
  const pace pace_;
  int notices_ = -1, stop_ = -1;           // descriptors; -1: only periodic looks
  std::set<int> watched_;                  // watch ids in notices_
  std::map<std::string, file_mark> seen_;  // at the last look
  std::optional<clock::time_point> first_change_, last_change_;  // not yet reported to changed_
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace bitnet::host
