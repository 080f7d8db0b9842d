// What the library says of its options, as the user of the program reads it.
#include "library/advice.hpp"

#include <gtest/gtest.h>

namespace bitnet::host {
namespace {

TEST(in_flags, says_what_the_program_calls_it) {
  const struct {
    const char* why;
    std::string_view library;
    const char* program;
  } rows[] = {
      {"an option", "use a larger n_context", "use a larger --ctx-size"},
      {"with what follows it", "leave n_batch, or set window",
       "leave --batch-size, or give --sliding-window"},
      {"a path stays", "/home/me/n_batch is no model", "/home/me/n_batch is no model"},
      {"a longer word stays", "n_batches", "n_batches"},
      {"a key of JSON stays", R"({"n_batch": 1})", R"({"n_batch": 1})"},
      {"a text of JSON", R"({"hint": "request it as the device"})",
       R"({"hint": "ask for it with --device"})"},
      {"of two that begin alike the longer one", "i2s_layout QK256 or i2s_layout",
       "--i2s-layout qk256 or --i2s-layout"},
      {"an answer that is remembered", "upgrade the backend, or ask it again with probe_fresh",
       "upgrade the backend, or ask it again with `bitnet backends probe --all --fresh`"},
      {"one that is under way", "wait for its probe to end",
       "wait for it, as `bitnet backends probe --all` does"},
      {"one that nobody asked for", "probe all backends, or request it as the device",
       "run `bitnet backends`, or ask for it with --device"},
      {"no signature", "sign the file, or install a signed package",
       "sign the file with `bitnet backends sign`, or install a signed package"},
      {"a damaged one", "sign the file again", "sign the file again with `bitnet backends sign`"},
      {"a model that is written again", "convert it with bitnet_convert",
       "convert it with `bitnet quantize`"},
  };
  for (const auto& row : rows) EXPECT_EQ(in_flags(row.library), row.program) << row.why;
}

}  // namespace
}  // namespace bitnet::host
