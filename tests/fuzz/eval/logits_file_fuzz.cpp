// Any bytes as a file of saved logits: read whole with finite numbers, or rejected with a message.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "eval/logits_file.hpp"

namespace {

using bitnet::host::eval::logits_reader;

void read_whole(const std::string& path) {
  auto from = logits_reader::open(path);
  if (!from) {
    if (from.error().empty()) std::abort();
    return;
  }
  const auto& header = from->header();
  const bitnet::host::eval::chunk_rule rule{header.n_context};
  std::vector<float> row(header.n_vocab);  // no more than the file has
  for (uint32_t chunk = 0; chunk < header.n_chunks; ++chunk) {
    for (uint32_t i = 0; i < rule.n_scored(); ++i)
      if (!from->read(row)) return;
    if (!from->end_chunk()) return;
  }
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer asks for this name
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const bitnet::files::descriptor file(::memfd_create("logits", MFD_CLOEXEC));
  if (!file || ::write(file.get(), data, size) != static_cast<ssize_t>(size)) return 0;
  read_whole("/proc/self/fd/" + std::to_string(file.get()));
  return 0;
}
