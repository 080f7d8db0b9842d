#pragma once
// Parses server-sent events without trusting the server.

#include <cstddef>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

namespace bitnet::host::load {

// Consumes the bytes of a body and returns the data of complete events.
class stream_events {
 public:
  static constexpr std::size_t longest_event = 1 << 20;  // bytes

  // Returns the data of the events that end in `bytes`, in order. Several data lines of one event
  // are joined by newlines; comments and other fields are ignored. The stream ends at an error.
  [[nodiscard]] std::expected<std::vector<std::string>, std::string> take(std::string_view bytes);

 private:
  void take_line(std::string_view line, std::vector<std::string>& out);

  std::string line_;  // the unfinished line
  std::string data_;
  bool has_data_ = false;
  bool after_cr_ = false;
};

// The contents of a chunk of /v1/completions or /v1/chat/completions.
struct stream_chunk {
  bool has_text = false;
  bool is_end = false;                        // [DONE]
  std::size_t n_prompt = 0, n_generated = 0;  // from `usage`; 0: absent
  std::string error;                          // the server's error, "" for none
};
[[nodiscard]] stream_chunk read_chunk(std::string_view data);

}  // namespace bitnet::host::load
