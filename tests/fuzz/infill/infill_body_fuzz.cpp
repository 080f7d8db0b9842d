// Any bytes as the body of a request of /infill: rejected with a message and the member that is
// wrong, or a text with a gap.
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "infill/writer.hpp"
#include "openai/body.hpp"

namespace {

using namespace bitnet::host;

void must(bool truth) {
  if (!truth) std::abort();
}

void check_error(const openai::api_form& form, const openai::api_error& why) {
  must(!why.message.empty() && why.status >= 400 && why.status < 600);
  must(!form.error_body(why).dump().empty());  // it throws for what is no UTF-8
}

void check(const openai::api_form& form, const openai::request& asked) {
  must(asked.inputs.size() == 1 && asked.how.max_tokens != 0 && asked.gap &&
       asked.how.n_choices == 1 && !asked.how.echo);
  const auto writer = form.open(asked, {"x_1", 17, "m", "fp"}, {}, nullptr);
  must(writer && !(*writer)->begin().starts_with("x"));
  const auto body = (*writer)->end(openai::timings());
  must(body && !body->empty());
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer asks for this name
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const openai::api_form& form = infill::form();
  const auto body = openai::parse_object(text, "the body");
  if (!body) return check_error(form, body.error()), 0;
  const auto asked = form.read(*body, text, {.n_vocab = 1000, .n_context = 512}, {});
  if (asked)
    check(form, *asked);
  else
    check_error(form, asked.error());
  return 0;
}
