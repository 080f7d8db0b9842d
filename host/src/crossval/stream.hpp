#pragma once
// What the child with the other engine writes, and what it is asked.
//
// Form   records of a head {uint32 kind, uint32 bytes} and a body, in the byte order of the
//        machine, which both ends run on: `library` (text), `model` (uint32 n_vocab,
//        text), then for each prompt `tokens` (int32 ids) and a `row` (n_vocab float32) behind each
//        token that both engines agree about, from the first on; then `done`. At any place `failed`
//        (text) may come and is the last.
// Trust  the reader believes nothing: the other engine may write what it likes to any descriptor.
//        tests/fuzz/crossval.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "result.hpp"

namespace bitnet::host::crossval {

enum class record : uint8_t { library = 1, model, tokens, row, done, failed };

inline constexpr uint32_t longest_text = 4096;           // bytes
inline constexpr uint32_t most_tokens = 1U << 20U;       // of a prompt
inline constexpr uint32_t most_vocabulary = 1U << 24U;   // tokens
inline constexpr uint64_t longest_request = 1ULL << 30;  // bytes, of all prompts

struct asked_prompt {
  std::string text;
  std::vector<int32_t> ids;  // as this program has them; the child computes what both agree about
};
struct model_facts {
  uint32_t n_vocab = 0;
  std::string description;
};

// How many tokens are the same from the first on.
[[nodiscard]] std::size_t common_length(std::span<const int32_t> a, std::span<const int32_t> b);

[[nodiscard]] std::string write_request(std::span<const asked_prompt> prompts);
// Nothing of a text that write_request() did not make.
[[nodiscard]] result<std::vector<asked_prompt>> read_request(std::string_view text);

// Fills all of it, or says why it cannot.
using byte_source = std::function<result<void>(std::span<std::byte> to)>;

// Failures have exit_code::no_comparison, or what the source has.
class stream_reader {
 public:
  explicit stream_reader(byte_source from) : from_(std::move(from)) {}

  // In the order of the records.
  [[nodiscard]] result<std::string> library();
  [[nodiscard]] result<model_facts> model();
  // Of the next prompt; then `row` as many times as it has tokens in common with `ours`.
  [[nodiscard]] result<std::vector<int32_t>> tokens();
  [[nodiscard]] result<void> row(std::span<float> logits);
  [[nodiscard]] result<void> done();

 private:
  // The size of the body of a record of this kind; a failure of the child is one of the reader.
  result<uint32_t> head(record wanted);
  result<std::string> text(uint32_t bytes);

  byte_source from_;
  uint32_t n_vocab_ = 0;
};

// Writes a record to a descriptor; false where it cannot.
[[nodiscard]] bool write_record(int to, record kind, std::span<const std::byte> body);
[[nodiscard]] bool write_record(int to, record kind, std::string_view body);

}  // namespace bitnet::host::crossval
