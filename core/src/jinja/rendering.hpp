#pragma once
// The resources that one rendering has used, and its first error.
//
// After the first error every operation returns an undefined value at once and every loop ends. The
// caller that began the rendering asks trouble(), so no step in between passes the error on.

#include <bit>
#include <ctime>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "jinja/value.hpp"

namespace bitnet::jinja {

// Templates come in model files, so their use of time and memory is limited. A conversation of a
// thousand messages takes some hundred thousand steps, and about ten times its text in memory.
struct limits {
  uint64_t steps = 4'000'000;                  // takes a second or two
  uint64_t made_bytes = uint64_t{256} << 20U;  // total of all values and output ever made
  uint32_t depth = 400;                        // recursion of the evaluator
  uint32_t value_depth = 100;                  // lists within lists
};

class rendering {
 public:
  rendering(const limits& bounds, std::time_t now) : bounds_(bounds), now_(now) {}

  [[nodiscard]] bool ok() const { return !trouble_; }
  [[nodiscard]] const std::optional<failure>& trouble() const { return trouble_; }
  // Keeps the first error; returns undefined, for `return at.wrong(...)`.
  value wrong(const std::string& message) { return wrong(BITNET_BAD_DATA, message); }
  value wrong(bitnet_status status, const std::string& message);

  // Returns false if the limit is reached or an error occurred.
  bool step(uint64_t n = 1);
  // Counts steps for reading that many bytes, as comparing and copying do, or by characters.
  bool scan(uint64_t bytes) { return step(bytes / 64); }
  bool read(uint64_t bytes) { return step(bytes / 16); }
  // Counts steps for one look-up among n names or keys.
  bool look_up(uint64_t key_bytes, uint64_t n) { return step(key_bytes * std::bit_width(n) / 64); }
  bool look_up(const dict& in, const value& key);

  bool room(uint64_t bytes);  // call it before making a value of that size
  [[nodiscard]] uint64_t room_left() const { return bounds_.made_bytes - bytes_; }
  void give_back(uint64_t bytes) { bytes_ -= bytes; }  // for values that were freed

  // A text from a message, and a part of such a text.
  value copy(std::string_view of_message);
  value copy(const marked_text& from, std::string_view piece);
  value list(sequence items);
  value tuple(sequence items);
  // A value from text whose room was granted before, except for a few bytes.
  value kept(marked_text content);
  value kept_list(sequence items) { return counted(value::list(std::move(items))); }
  value kept_tuple(sequence items) { return counted(value::tuple(std::move(items))); }
  // Returns false if the key is not hashable. Dicts are made only with this, then map().
  bool put(dict& to, const value& key, value content);
  bool put_all(dict& to, const dict& from);
  value map(dict entries);
  value code(function f);
  value undefined(std::string why);
  [[nodiscard]] uint64_t steps() const { return steps_; }
  [[nodiscard]] uint64_t most_bytes() const { return most_bytes_; }  // the peak so far
  template <class T, class... A>
  T* own(A&&... given) {
    room(object_bytes);
    auto made = std::make_unique<T>(std::forward<A>(given)...);
    T* const out = made.get();
    objects_.push_back(std::move(made));
    return out;
  }

  [[nodiscard]] std::time_t now() const { return now_; }
  [[nodiscard]] uint32_t line() const { return line_; }
  void set_line(uint32_t line) { line_ = line; }

  class level {
   public:
    explicit level(rendering& at) : at_(at) {
      if (++at_.depth_ > at_.bounds_.depth) at_.too_deep();
    }
    level(const level&) = delete;
    level& operator=(const level&) = delete;
    ~level() { --at_.depth_; }

   private:
    rendering& at_;
  };

 private:
  static constexpr uint64_t object_bytes = 256;
  value counted(value made);
  void too_deep();

  limits bounds_;
  std::time_t now_;
  uint64_t steps_ = 0;
  uint64_t bytes_ = 0;
  uint64_t most_bytes_ = 0;
  uint32_t depth_ = 0;
  uint32_t line_ = 1;
  std::optional<failure> trouble_;
  std::deque<std::unique_ptr<object>> objects_;
};

}  // namespace bitnet::jinja
