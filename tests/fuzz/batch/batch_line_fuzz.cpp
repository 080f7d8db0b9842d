// Any bytes as a line of a batch: a request, or an error whose line is one of an output; and as a
// line of an output.
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "batch/batch_line.hpp"

namespace {

using namespace bitnet::host;

void must(bool truth) {
  if (!truth) std::abort();
}

// What is written is read again as what it is about.
void check_written(std::string line, const std::string& custom_id, uint64_t number) {
  must(line.ends_with('\n') && line.find('\n') == line.size() - 1);
  line.pop_back();
  const auto about = batch::read_written_line(line);
  must(about && about->custom_id == custom_id);
  must(!custom_id.empty() || about->number == number);
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer asks for this name
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  constexpr uint64_t number = 7;
  const batch::read_line read = batch::read_request_line(text);
  if (read.request) {
    must(read.custom_id == read.request->custom_id && !read.custom_id.empty());
    check_written(batch::answer_line(read.custom_id, {{"object", "list"}}), read.custom_id, 0);
    check_written(batch::rejection_line(read.custom_id, {}), read.custom_id, 0);
  } else {
    must(!read.fault.message.empty());
    check_written(batch::fault_line(read.custom_id, number, read.fault), read.custom_id, number);
  }
  (void)batch::read_written_line(text);
  return 0;
}
