#include "library/watcher.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

namespace bitnet::host {
namespace {

constexpr uint32_t wanted = IN_MOVED_TO | IN_CLOSE_WRITE | IN_DELETE;

// What happened does not matter, only that something did.
void drain(int events) {
  alignas(inotify_event) std::array<char, 4096> unread;
  while (::read(events, unread.data(), unread.size()) > 0) {
  }
}

}  // namespace

result<std::unique_ptr<watcher>> watcher::start(const std::set<std::string>& folders,
                                                std::chrono::milliseconds quiet,
                                                std::function<void()> changed) {
  const int events = ::inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  const int stop = ::eventfd(0, EFD_CLOEXEC);
  std::string why = std::generic_category().message(errno);
  bool watching = false;
  if (events >= 0 && stop >= 0)
    for (const std::string& folder : folders) {
      if (::inotify_add_watch(events, folder.c_str(), wanted) >= 0)
        watching = true;
      else
        why = folder + ": " + std::generic_category().message(errno);
    }
  if (!watching) {
    if (events >= 0) ::close(events);
    if (stop >= 0) ::close(stop);
    return fail(exit_code::failure, "--watch cannot watch the folders of plugins: " + why +
                                        "; leave it out and use /backend reload in a chat");
  }
  return std::unique_ptr<watcher>(new watcher(events, stop, quiet, std::move(changed)));
}

watcher::watcher(int events, int stop, std::chrono::milliseconds quiet,
                 std::function<void()> changed)
    : events_(events), stop_(stop), quiet_(quiet), changed_(std::move(changed)) {
  thread_ = std::thread([this] { run(); });
}

watcher::~watcher() {
  const uint64_t one = 1;
  (void)!::write(stop_, &one, sizeof one);
  thread_.join();
  ::close(events_);
  ::close(stop_);
}

void watcher::run() {
  bool pending = false;
  for (;;) {
    std::array<pollfd, 2> watched{{{events_, POLLIN, 0}, {stop_, POLLIN, 0}}};
    const int timeout = pending ? static_cast<int>(quiet_.count()) : -1;
    const int ready = ::poll(watched.data(), watched.size(), timeout);
    if (ready < 0 && errno == EINTR) continue;
    if (ready < 0 || watched[1].revents != 0) return;
    if (ready == 0) {
      pending = false;
      changed_();
      continue;
    }
    drain(events_);
    pending = true;
  }
}

}  // namespace bitnet::host
