#pragma once
// The protocol between this program and the child that runs the other engine.
//
// Form   records of a header {uint32 kind, uint32 bytes} and a body, in the machine's byte order:
//        `library` (text), `model` (uint32 n_vocab, text), then per prompt `tokens` (int32 ids) and
//        a `row` (n_vocab float32) after each token of the prefix that both engines share; then
//        `done`. `failed` (text) may come anywhere and is the last record.
// Trust  none: the other engine may write anything to any descriptor. tests/fuzz/crossval.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "basic/result.hpp"

namespace bitnet::host::crossval {

enum class record : uint8_t { library = 1, model, tokens, row, done, failed };

inline constexpr uint32_t longest_text = 4096;           // bytes
inline constexpr uint32_t most_tokens = 1U << 20U;       // per prompt
inline constexpr uint32_t most_vocabulary = 1U << 24U;   // tokens
inline constexpr uint64_t longest_request = 1ULL << 30;  // bytes, all prompts

struct asked_prompt {
  std::string text;
  std::vector<int32_t> ids;  // this program's; the child evaluates the prefix that both share
};
struct model_facts {
  uint32_t n_vocab = 0;
  std::string description;
};

// Length of the common prefix.
[[nodiscard]] std::size_t common_length(std::span<const int32_t> a, std::span<const int32_t> b);

[[nodiscard]] std::string write_request(std::span<const asked_prompt> prompts);
// Rejects any text that write_request() did not make.
[[nodiscard]] result<std::vector<asked_prompt>> read_request(std::string_view text);

// Fills all of `to`, or returns why it cannot.
using byte_source = std::function<result<void>(std::span<std::byte> to)>;

// Failures have exit_code::no_comparison, or the source's exit code.
class stream_reader {
 public:
  explicit stream_reader(byte_source from) : from_(std::move(from)) {}

  // Call these in the order of the records.
  [[nodiscard]] result<std::string> library();
  [[nodiscard]] result<model_facts> model();
  // Returns the next prompt's tokens. Then call `row` for each token of its common prefix with
  // `ours`.
  [[nodiscard]] result<std::vector<int32_t>> tokens();
  [[nodiscard]] result<void> row(std::span<float> logits);
  [[nodiscard]] result<void> done();

 private:
  // Returns the body size of a record of this kind; a failure that the child sent becomes the
  // reader's.
  result<uint32_t> header(record wanted);
  result<std::string> text(uint32_t bytes);

  byte_source from_;
  uint32_t n_vocab_ = 0;
};

// Writes a record to a descriptor; false on an error.
[[nodiscard]] bool write_record(int to, record kind, std::span<const std::byte> body);
[[nodiscard]] bool write_record(int to, record kind, std::string_view body);

}  // namespace bitnet::host::crossval
