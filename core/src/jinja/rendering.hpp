#pragma once
// What one rendering has spent and made, and the first thing that went wrong in it.
//
// Errors stay: after the first, every operation answers an undefined value at once and every loop
// ends, and the caller that began the rendering asks trouble(). So no step in between has to hand
// the error on.

#include <bit>
#include <ctime>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "jinja/value.hpp"

namespace bitnet::jinja {

// Templates come in model files: none may take the machine's time or memory. A conversation of a
// thousand messages takes some hundred thousand steps, and its text about ten times.
struct limits {
  uint64_t steps = 4'000'000;                  // a second or two
  uint64_t made_bytes = uint64_t{256} << 20U;  // of all values and of the output, ever
  uint32_t depth = 400;                        // calls of ours within each other
  uint32_t value_depth = 100;                  // lists within lists
};

class rendering {
 public:
  rendering(const limits& bounds, std::time_t now) : bounds_(bounds), now_(now) {}

  [[nodiscard]] bool ok() const { return !trouble_; }
  [[nodiscard]] const std::optional<failure>& trouble() const { return trouble_; }
  // Remembers the first; answers undefined, for `return at.wrong(...)`.
  value wrong(const std::string& message) { return wrong(BITNET_BAD_DATA, message); }
  value wrong(bitnet_status status, const std::string& message);

  // False where nothing more may be done.
  bool step(uint64_t n = 1);
  // Steps for a look at so many bytes: as comparing and copying do it, or character by character.
  bool scan(uint64_t bytes) { return step(bytes / 64); }
  bool read(uint64_t bytes) { return step(bytes / 16); }
  // Steps for one look-up of a name or a key among n.
  bool look_up(uint64_t key_bytes, uint64_t n) { return step(key_bytes * std::bit_width(n) / 64); }
  bool look_up(const dict& in, const value& key);

  bool room(uint64_t bytes);  // asked before something of that size is made
  [[nodiscard]] uint64_t room_left() const { return bounds_.made_bytes - bytes_; }
  void give_back(uint64_t bytes) { bytes_ -= bytes; }  // of what is gone again

  // Texts: one of a message, and a piece of one, which lies within it.
  value copy(std::string_view of_message);
  value copy(const marked_text& from, std::string_view piece);
  value list(sequence items);
  value tuple(sequence items);
  // Of what room was asked for already, but for a few bytes each.
  value kept(marked_text content);
  value kept_list(sequence items) { return counted(value::list(std::move(items))); }
  value kept_tuple(sequence items) { return counted(value::tuple(std::move(items))); }
  // False where the key cannot be one. A dict is made by this alone, and then by map().
  bool put(dict& to, const value& key, value content);
  bool put_all(dict& to, const dict& from);
  value map(dict entries);
  value code(function f);
  value undefined(std::string why);
  [[nodiscard]] uint64_t steps() const { return steps_; }
  [[nodiscard]] uint64_t most_bytes() const { return most_bytes_; }  // at any time so far
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
