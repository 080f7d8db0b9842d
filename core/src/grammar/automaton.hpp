#pragma once
// A grammar as an automaton over bytes of UTF-8. Its states are the sets of all places where a text
// may be, the part of a character that was read included; each is made when it is first reached.
//
// Exact   a state is dead if and only if no continuation is in the grammar; except that rules
//         nested deeper than `deepest` are not followed.
// Threads one at a time.

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/result.hpp"
#include "grammar/character_classes.hpp"
#include "grammar/frame_sets.hpp"
#include "grammar/rules.hpp"

namespace bitnet::grammar {

inline constexpr uint32_t deepest = 1000;

// How much work and memory the automaton may take.
struct bounds {
  uint64_t work = uint64_t{1} << 24;     // frames looked at for one token: less than a second
  uint64_t bytes = uint64_t{256} << 20;  // of all states
};

class automaton {
 public:
  using state = uint32_t;
  static constexpr state dead = 0;

  explicit automaton(rule_set rules, const bounds& most = {});

  [[nodiscard]] state start() const { return start_; }
  [[nodiscard]] bool is_complete(state s) const { return states_[s].complete; }

  state next(state s, unsigned char byte) {
    const state known = table_[std::size_t{s} * n_kinds_ + kind_of_[byte]];
    return known != unknown ? known : find_next(s, byte);
  }
  state next(state s, std::string_view bytes);

  // Every text of `length` plain characters may follow. `exact`: no other text of at most `most`
  // plain characters may.
  struct plain_run {
    uint32_t length;
    bool exact;
  };
  plain_run plain_characters_from(state s, uint32_t most);

  // Set if a grammar needed more work or memory than `bounds`; all new states are then dead.
  // begin_work() starts a piece of work with a bound of its own.
  [[nodiscard]] const std::optional<failure>& trouble() const { return trouble_; }
  void begin_work() { work_ = 0; }

  [[nodiscard]] uint64_t bytes() const;
  // Forgets all states but the start and `kept`, and returns the new number of `kept`.
  state forget_others(state kept);

 private:
  static constexpr state unknown = 0xffffffff;

  // A character that was read in part: its length in bytes, how many are missing, and the bits so
  // far.
  struct partial {
    uint8_t length = 0, missing = 0;
    char32_t bits = 0;
  };
  struct contents {
    set_number places;  // each at a character class
    bool complete;
    partial read;
  };

  state find_next(state s, unsigned char byte);
  state after_first_byte(const contents& from, unsigned char byte);
  state after_continuation(const contents& from, unsigned char byte);
  state after_character(set_number places, char32_t c);
  state where_some_fit(set_number places, partial read);
  state number_of(const contents& one);
  void begin();

  void follow(frame from);
  void call(uint32_t rule, frame returns);
  void expand(uint32_t rule);
  state closed();
  set_number numbered(std::vector<frame>& frames);
  bool spend(uint64_t n);

  rule_set rules_;
  const bounds most_;
  std::array<uint8_t, 256> kind_of_{};  // kind of each byte: bytes of a kind lead to the same state
  std::size_t n_kinds_ = 0;
  std::vector<share> plain_;  // of each class
  frame_sets sets_;
  std::vector<contents> states_;
  std::vector<state> table_;  // (states, kinds)
  std::unordered_map<uint64_t, state> by_contents_;
  state start_ = dead;

  // The state that is being made.
  std::vector<frame> places_, todo_;
  std::unordered_set<uint64_t> met_;         // frames that were in `todo_`
  std::vector<std::vector<frame>> returns_;  // by rule: the frames where to continue after it
  std::vector<uint32_t> called_;             // rules with returns, a heap by rank
  bool complete_ = false;

  uint64_t work_ = 0;
  std::optional<failure> trouble_;
};

}  // namespace bitnet::grammar
