// Any bytes as what the process of another engine writes, and as the request that it is given.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "crossval/stream.hpp"

namespace {

namespace crossval = bitnet::host::crossval;
using bitnet::host::exit_code::no_comparison;

template <class T>
bool came(const bitnet::host::result<T>& read) {
  if (!read && (read.error().message.empty() || read.error().exit_code != no_comparison))
    std::abort();
  return read.has_value();
}

void read_stream(std::string_view bytes) {
  crossval::stream_reader from([&](std::span<std::byte> to) -> bitnet::host::result<void> {
    if (to.size() > bytes.size()) return bitnet::host::fail(no_comparison, "no more bytes");
    if (!to.empty()) std::memcpy(to.data(), bytes.data(), to.size());
    bytes.remove_prefix(to.size());
    return {};
  });
  if (!came(from.library())) return;
  const auto model = from.model();
  if (!came(model) || model->n_vocab > 1U << 16U) return;
  std::vector<float> row(model->n_vocab);
  for (;;) {
    const auto tokens = from.tokens();
    if (!came(tokens)) return;
    for (std::size_t i = 0; i < tokens->size(); ++i)
      if (!came(from.row(row))) return;
  }
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer asks for this name
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  read_stream(bytes);
  if (const auto asked = crossval::read_request(bytes); came(asked))
    if (crossval::write_request(*asked) != bytes) std::abort();
  return 0;
}
