#pragma once
// --watch: says when one of a backend's files, library or manifest, is another one than before.
//
// What decides is the file that lies there, looked at again and again: folders are replaced, links
// turned, and some file systems report nothing. Notices of the kernel about the folders and links
// on the way only make it look sooner, and are taken anew at each look.
//
// Installers write library and manifest at different moments, so a change counts once the files
// have stayed as they are for a while, or have gone on changing for too long.
//
// Threads one of its own, which ends with the object.

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "library/file_mark.hpp"

namespace bitnet::host {

class watcher {
 public:
  struct pace {
    std::chrono::milliseconds quiet{2000};       // longer than an installer takes between two files
    std::chrono::milliseconds patience{10'000};  // that a file may change all the time
    std::chrono::milliseconds look{1000};        // between two looks, if nothing is noticed
  };
  // `files` says what to look at, each time; `changed` is called when some of it is another file.
  // Both on the watcher's thread. Throws std::system_error where the system makes no thread.
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
  int notices_ = -1, stop_ = -1;           // descriptors; -1: it looks at its own pace only
  std::set<int> watched_;                  // of notices_
  std::map<std::string, file_mark> seen_;  // of the last look
  std::optional<clock::time_point> first_change_, last_change_;  // that changed_ did not get
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace bitnet::host
