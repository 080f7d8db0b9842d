#pragma once
// Server-sent events of an answer that comes in pieces, read without trust in who sends them.

#include <cstddef>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

namespace bitnet::host::load {

// Feeds on the bytes of a body and gives the data of whole events.
class stream_events {
 public:
  static constexpr std::size_t longest_event = 1 << 20;  // bytes

  // The data of the events that end in `bytes`, in order; several data lines of one are joined by
  // line ends. Comments and other fields are left out. An error ends the stream.
  [[nodiscard]] std::expected<std::vector<std::string>, std::string> take(std::string_view bytes);

 private:
  void take_line(std::string_view line, std::vector<std::string>& out);

  std::string line_;  // what came of it so far
  std::string data_;
  bool has_data_ = false;
  bool after_cr_ = false;
};

// What a chunk of /v1/completions or /v1/chat/completions says.
struct stream_chunk {
  bool has_text = false;
  bool is_end = false;                        // [DONE]
  std::size_t n_prompt = 0, n_generated = 0;  // of its `usage`; 0: it has none
  std::string error;                          // of the server, "" for none
};
[[nodiscard]] stream_chunk read_chunk(std::string_view data);

}  // namespace bitnet::host::load
