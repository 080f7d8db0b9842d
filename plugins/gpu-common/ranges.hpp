#pragma once
// Names the backend's current work for an attached profiler. Without a profiler a range costs two
// tests of a pointer.

#include <algorithm>
#include <charconv>
#include <concepts>
#include <cstdint>
#include <string_view>

namespace bitnet::gpu {

// A profiler. [any]
class watcher {
 public:
  // On a thread, the range that began last ends first. `what` is valid during the call.
  virtual void begin(const char* what) noexcept = 0;
  virtual void end() noexcept = 0;

 protected:
  ~watcher() = default;
};

// A range from here to the end of the scope. Its name is the texts and numbers joined, cut off at
// the length that profilers show.
class range {
 public:
  template <class... Parts>
  explicit range(watcher* who, const Parts&... parts) noexcept : watcher_(who) {
    if (!watcher_) [[likely]]
      return;
    name what;
    (what.add(parts), ...);
    watcher_->begin(what.text);
  }
  ~range() {
    if (watcher_) [[unlikely]]
      watcher_->end();
  }
  range(const range&) = delete;
  range& operator=(const range&) = delete;

 private:
  struct name {
    char text[128] = {};
    char* end = text;

    void add(std::string_view part) noexcept {
      const auto room = static_cast<size_t>(text + sizeof text - 1 - end);
      end = std::ranges::copy(part.substr(0, room), end).out;
    }
    void add(std::unsigned_integral auto number) noexcept {
      char digits[20];  // enough for any 64-bit number
      const auto written = std::to_chars(digits, digits + sizeof digits, number);
      add(std::string_view(digits, static_cast<size_t>(written.ptr - digits)));
    }
  };

  watcher* const watcher_;
};

}  // namespace bitnet::gpu
