#pragma once
// Names of what the backend is doing, for a profiler that watches the process. Without one a range
// costs a look at a pointer, twice.

#include <algorithm>
#include <charconv>
#include <concepts>
#include <cstdint>
#include <string_view>

namespace bitnet::gpu {

// A profiler. [any]
class watcher {
 public:
  // On one thread the range that was begun last ends first. `what` is valid for the call.
  virtual void begin(const char* what) noexcept = 0;
  virtual void end() noexcept = 0;

 protected:
  ~watcher() = default;
};

// From here to the end of the scope, by one name: texts and numbers one after the other. What is
// longer than profilers show is cut off.
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
      char digits[20];  // of the largest of 64 bits
      const auto written = std::to_chars(digits, digits + sizeof digits, number);
      add(std::string_view(digits, static_cast<size_t>(written.ptr - digits)));
    }
  };

  watcher* const watcher_;
};

}  // namespace bitnet::gpu
