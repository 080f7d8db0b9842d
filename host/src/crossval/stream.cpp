#include "crossval/stream.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "text/printable.hpp"

namespace bitnet::host::crossval {
namespace {

struct record_header {
  uint32_t kind, bytes;
};
constexpr std::string_view names[] = {"", "library", "model", "tokens", "row", "done", "failed"};

std::string name_of(uint32_t kind) {
  return kind != 0 && kind < std::size(names) ? std::string(names[kind])
                                              : fmt::format("unknown ({})", kind);
}

std::unexpected<failure> not_ours(std::string what) {
  return fail(exit_code::no_comparison,
              fmt::format("what the other engine's process wrote is no stream of logits: {}; "
                          "libraries in it may print to its descriptors",
                          what));
}

template <class T>
void append(std::string& to, const T& value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// Takes a value from the text's front.
template <class T>
bool take(std::string_view& from, T& to) {
  if (from.size() < sizeof to) return false;
  std::ranges::copy(from.substr(0, sizeof to), reinterpret_cast<char*>(&to));
  from.remove_prefix(sizeof to);
  return true;
}

bool write_all(int to, const void* data, std::size_t bytes) {
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t n = ::write(to, at, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n;
    bytes -= static_cast<std::size_t>(n);
  }
  return true;
}

bool take_prompt(std::string_view& from, asked_prompt& to) {
  uint32_t text_bytes = 0;
  uint32_t n_ids = 0;
  if (!take(from, text_bytes) || !take(from, n_ids) || n_ids > most_tokens) return false;
  if (from.size() < uint64_t{text_bytes} + sizeof(int32_t) * uint64_t{n_ids}) return false;
  to.text = from.substr(0, text_bytes);
  from.remove_prefix(text_bytes);
  to.ids.resize(n_ids);
  if (n_ids != 0) std::memcpy(to.ids.data(), from.data(), sizeof(int32_t) * n_ids);
  from.remove_prefix(sizeof(int32_t) * n_ids);
  return true;
}

}  // namespace

std::size_t common_length(std::span<const int32_t> a, std::span<const int32_t> b) {
  return static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

std::string write_request(std::span<const asked_prompt> prompts) {
  std::string out;
  for (const asked_prompt& one : prompts) {
    append(out, static_cast<uint32_t>(one.text.size()));
    append(out, static_cast<uint32_t>(one.ids.size()));
    out += one.text;
    out.append(reinterpret_cast<const char*>(one.ids.data()), sizeof(int32_t) * one.ids.size());
  }
  return out;
}

result<std::vector<asked_prompt>> read_request(std::string_view text) {
  std::vector<asked_prompt> out;
  while (!text.empty()) {
    asked_prompt one;
    if (!take_prompt(text, one))
      return fail(exit_code::no_comparison, "the request is cut short or is none");
    out.push_back(std::move(one));
  }
  return out;
}

result<uint32_t> stream_reader::header(record wanted) {
  record_header found{};
  if (auto done = from_(std::as_writable_bytes(std::span(&found, 1))); !done)
    return std::unexpected(done.error());
  if (found.kind == std::to_underlying(record::failed)) {
    const auto why = text(found.bytes);
    if (!why) return std::unexpected(why.error());
    return fail(exit_code::no_comparison, fmt::format("the other engine: {}", *why));
  }
  if (found.kind != std::to_underlying(wanted))
    return not_ours(fmt::format("expected the record '{}', found '{}'",
                                name_of(std::to_underlying(wanted)), name_of(found.kind)));
  return found.bytes;
}

result<std::string> stream_reader::text(uint32_t bytes) {
  if (bytes > longest_text)
    return not_ours(fmt::format("a text of {} bytes, where {} are the most", bytes, longest_text));
  std::string out(bytes, '\0');
  if (auto done = from_(std::as_writable_bytes(std::span(out))); !done)
    return std::unexpected(done.error());
  return text::printable(out);
}

result<std::string> stream_reader::library() {
  const auto bytes = header(record::library);
  return bytes ? text(*bytes) : std::unexpected(bytes.error());
}

result<model_facts> stream_reader::model() {
  const auto bytes = header(record::model);
  if (!bytes) return std::unexpected(bytes.error());
  uint32_t n_vocab = 0;
  if (*bytes < sizeof n_vocab) return not_ours(fmt::format("a record 'model' of {} bytes", *bytes));
  if (auto done = from_(std::as_writable_bytes(std::span(&n_vocab, 1))); !done)
    return std::unexpected(done.error());
  auto description = text(*bytes - static_cast<uint32_t>(sizeof n_vocab));
  if (!description) return std::unexpected(description.error());
  if (n_vocab == 0 || n_vocab > most_vocabulary)
    return not_ours(fmt::format("a vocabulary of {} tokens", n_vocab));
  n_vocab_ = n_vocab;
  return model_facts{n_vocab, *std::move(description)};
}

result<std::vector<int32_t>> stream_reader::tokens() {
  const auto bytes = header(record::tokens);
  if (!bytes) return std::unexpected(bytes.error());
  if (*bytes % sizeof(int32_t) != 0 || *bytes > sizeof(int32_t) * most_tokens)
    return not_ours(fmt::format("a record 'tokens' of {} bytes", *bytes));
  std::vector<int32_t> out(*bytes / sizeof(int32_t));
  if (auto done = from_(std::as_writable_bytes(std::span(out))); !done)
    return std::unexpected(done.error());
  return out;
}

result<void> stream_reader::row(std::span<float> logits) {
  const auto bytes = header(record::row);
  if (!bytes) return std::unexpected(bytes.error());
  if (logits.size() != n_vocab_ || *bytes != sizeof(float) * n_vocab_)
    return not_ours(fmt::format("a row of {} bytes, where {} tokens have {}", *bytes, n_vocab_,
                                sizeof(float) * n_vocab_));
  return from_(std::as_writable_bytes(logits));
}

result<void> stream_reader::done() {
  const auto bytes = header(record::done);
  if (!bytes) return std::unexpected(bytes.error());
  if (*bytes != 0) return not_ours(fmt::format("a record 'done' of {} bytes", *bytes));
  return {};
}

bool write_record(int to, record kind, std::span<const std::byte> body) {
  const record_header header{std::to_underlying(kind), static_cast<uint32_t>(body.size())};
  return write_all(to, &header, sizeof header) && write_all(to, body.data(), body.size());
}

bool write_record(int to, record kind, std::string_view body) {
  return write_record(to, kind, std::as_bytes(std::span(body)));
}

}  // namespace bitnet::host::crossval
