#include "session/watcher.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

namespace bitnet::host {
namespace {

using std::chrono::milliseconds;

constexpr uint32_t wanted = IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_CLOSE_WRITE | IN_DELETE |
                            IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;
// Least time between looks, however busy a folder is.
constexpr milliseconds shortest_sleep{100};

// Discards notices: their contents do not matter.
void drain(int notices) {
  alignas(inotify_event) std::array<char, 4096> unread;
  while (::read(notices, unread.data(), unread.size()) > 0) {
  }
}

}  // namespace

watcher::watcher(std::function<std::set<std::string>()> files, std::function<void()> changed,
                 const pace& p)
    : files_(std::move(files)),
      changed_(std::move(changed)),
      pace_(p),
      notices_(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK)),
      stop_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  (void)look();
  try {
    thread_ = std::thread([this] { run(); });
  } catch (...) {
    close_descriptors();
    throw;
  }
}

// Ends within one look even if its descriptors were closed by others.
watcher::~watcher() {
  stopping_ = true;
  const uint64_t one = 1;
  (void)!::write(stop_, &one, sizeof one);
  thread_.join();
  close_descriptors();
}

void watcher::close_descriptors() const {
  if (notices_ >= 0) ::close(notices_);
  if (stop_ >= 0) ::close(stop_);
}

// Watches the folders as they are now. A folder that was watched stays so.
void watcher::watch_the_way() {
  if (notices_ < 0) return;
  std::set<std::string> folders;
  for (const auto& [file, mark] : seen_) folders.merge(folders_on_the_way(file));
  std::set<int> now;
  for (const std::string& folder : folders)
    if (const int watch = ::inotify_add_watch(notices_, folder.c_str(), wanted); watch >= 0)
      now.insert(watch);
  for (const int old : watched_)
    if (!now.contains(old)) ::inotify_rm_watch(notices_, old);
  watched_ = std::move(now);
}

// Returns true if a file changed since the last look. Watches are set first, so that a change after
// the look is noticed.
bool watcher::look() {
  std::map<std::string, file_mark> now;
  for (const std::string& file : files_()) now.emplace(file, file_mark{});
  bool other = false;
  seen_.swap(now);  // `now` gets the earlier marks
  watch_the_way();
  for (auto& [file, mark] : seen_) {
    mark = mark_of(file);
    const auto before = now.find(file);
    other = other || (before != now.end() && before->second != mark);
  }
  return other;
}

// Sleeps until a notice comes or the next look is due; false when it is time to end.
bool watcher::sleep() {
  const auto begin = clock::now();
  milliseconds left = pace_.look;
  if (last_change_)
    left = std::min(left, std::chrono::ceil<milliseconds>(*last_change_ + pace_.quiet - begin));
  std::array<pollfd, 2> fds{{{stop_, POLLIN, 0}, {-1, POLLIN, 0}}};
  // Ignores notices for a short time, so that a busy folder does not cause continuous looks.
  const milliseconds deaf = std::clamp(left, milliseconds(1), shortest_sleep);
  if (::poll(fds.data(), fds.size(), static_cast<int>(deaf.count())) < 0) fds[0].revents = 0;
  if (stopping_) return false;
  left -= deaf;
  if (left.count() <= 0) return true;
  fds[1].fd = notices_;
  (void)::poll(fds.data(), fds.size(), static_cast<int>(left.count()));
  if (fds[1].revents != 0) drain(notices_);
  return !stopping_;
}

void watcher::run() {
  while (sleep()) {
    const auto now = clock::now();
    if (look()) {
      last_change_ = now;
      if (!first_change_) first_change_ = now;
    }
    if (!first_change_ || !last_change_) continue;
    if (now - *last_change_ < pace_.quiet && now - *first_change_ < pace_.patience) continue;
    first_change_.reset();
    last_change_.reset();
    changed_();
  }
}

}  // namespace bitnet::host
