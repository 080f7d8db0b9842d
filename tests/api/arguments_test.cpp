// Arguments of calls: wrong ones, and structs of older and later headers.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "bitnet/bitnet.h"
#include "demo_fixture.hpp"

namespace {

using namespace bitnet::test;  // NOLINT(google-build-using-namespace): the fixtures

TEST_F(demo, lists_without_an_address_are_rejected) {
  const struct {
    const char* what;
    void (*spoil)(bitnet_sampling&, bitnet_generation&);
  } rows[] = {
      {"logit_bias", [](bitnet_sampling& s, bitnet_generation&) { s.n_logit_bias = 3; }},
      {"stop_strings", [](bitnet_sampling&, bitnet_generation& g) { g.n_stop_strings = 1; }},
      {"stop_tokens", [](bitnet_sampling&, bitnet_generation& g) { g.n_stop_tokens = 2; }},
      {"a stop string",
       [](bitnet_sampling&, bitnet_generation& g) {
         static const bitnet_str nowhere{nullptr, 5};
         g.stop_strings = &nowhere;
         g.n_stop_strings = 1;
       }},
  };
  const auto ids = tokens("Once upon a time");
  for (const auto& row : rows) {
    bitnet_sampling sampling;
    bitnet_sampling_defaults(&sampling, sizeof sampling);
    bitnet_generation g{};
    g.struct_size = sizeof g;
    g.max_tokens = 3;
    g.sampling = &sampling;
    row.spoil(sampling, g);
    bitnet_generation_result r{};
    r.struct_size = sizeof r;
    EXPECT_EQ(bitnet_generate(session(), ids.data(), ids.size(), &g, &r, &error_),
              BITNET_INVALID_ARGUMENT)
        << row.what;
    EXPECT_NE(std::string(error_.message).find(std::string(row.what) + " is NULL"),
              std::string::npos)
        << error_.message;
  }
  for (const bool directories : {true, false}) {
    bitnet_runtime_options o;
    bitnet_runtime_defaults(&o, sizeof o);
    (directories ? o.n_manifest_dirs : o.n_backend_params) = 1;
    bitnet_runtime* none = nullptr;
    EXPECT_EQ(bitnet_runtime_open(&o, &none, &error_), BITNET_INVALID_ARGUMENT);
  }
}

TEST_F(demo, elements_of_arrays_may_be_of_a_later_header) {
  struct {
    bitnet_message known;
    uint64_t more;
  } list[2] = {{{{"user", 4}, {"Hello", 5}}, 0}, {{{"assistant", 9}, {"Hi", 2}}, 0}};
  const auto format = [&](const void* messages, uint32_t size) {
    return text_of([&](char* out, uint64_t n, uint64_t* needed) {
      return bitnet_chat_format(model_, "chatml", static_cast<const bitnet_message*>(messages),
                                size, 2, out, n, needed, &error_);
    });
  };
  const bitnet_message usual[] = {list[0].known, list[1].known};
  const std::string text = format(usual, sizeof usual[0]);
  EXPECT_NE(text.find("Hello"), std::string::npos);
  EXPECT_EQ(format(usual, 0), text);
  EXPECT_EQ(format(list, sizeof list[0]), text);
  list[1].more = 1;
  EXPECT_EQ(format(list, sizeof list[0]), "");
  EXPECT_EQ(error_.code, BITNET_UNSUPPORTED) << error_.message;
  EXPECT_EQ(format(usual, 8), "");
  EXPECT_EQ(error_.code, BITNET_INVALID_ARGUMENT) << error_.message;

  // A token that is always taken, from an array of larger elements.
  const auto prompt = tokens("Once upon a time");
  struct {
    bitnet_logit_bias known;
    uint32_t more;
  } bias[] = {{{5, 0.0F}, 0}, {{7, 1000.0F}, 0}};
  bitnet_sampling sampling;
  bitnet_sampling_defaults(&sampling, sizeof sampling);
  sampling.temperature = 0;
  sampling.repeat_penalty = 1;
  sampling.logit_bias = &bias[0].known;
  sampling.n_logit_bias = 2;
  sampling.logit_bias_size = sizeof bias[0];
  bitnet_generation g;
  bitnet_generation_defaults(&g, sizeof g);
  g.sampling = &sampling;
  g.max_tokens = 3;
  bitnet_token got[3] = {};
  g.out_tokens = got;
  g.out_capacity = 3;
  bitnet_generation_result r{};
  r.struct_size = sizeof r;
  bitnet_session* s = session();
  ASSERT_EQ(bitnet_generate(s, prompt.data(), prompt.size(), &g, &r, &error_), BITNET_OK)
      << error_.message;
  for (const bitnet_token token : got) EXPECT_EQ(token, 7);
  bias[1].more = 1;
  EXPECT_EQ(bitnet_generate(s, prompt.data(), prompt.size(), &g, &r, &error_), BITNET_UNSUPPORTED);
}

TEST_F(demo, results_fill_the_size_that_the_program_has_and_no_more) {
  bitnet_model_info whole{};
  whole.struct_size = sizeof whole;
  ASSERT_EQ(bitnet_model_describe(model_, &whole, &error_), BITNET_OK);
  alignas(8) unsigned char bytes[sizeof whole + 64];
  auto* info = reinterpret_cast<bitnet_model_info*>(bytes);
  for (const uint32_t size : {8U, 64U, static_cast<uint32_t>(sizeof bytes)}) {
    std::memset(bytes, 0xA5, sizeof bytes);
    info->struct_size = size;
    ASSERT_EQ(bitnet_model_describe(model_, info, &error_), BITNET_OK) << error_.message;
    EXPECT_EQ(info->struct_size, size);
    for (std::size_t i = 4; i < sizeof bytes; ++i) {
      const unsigned char known =
          i < sizeof whole ? reinterpret_cast<const unsigned char*>(&whole)[i] : 0;
      ASSERT_EQ(bytes[i], i < size ? known : 0xA5) << "byte " << i << " of " << size;
    }
  }
  info->struct_size = 0;
  EXPECT_EQ(bitnet_model_describe(model_, info, &error_), BITNET_INVALID_ARGUMENT);
}

TEST_F(demo, wrong_calls_are_rejected) {
  bitnet_session* s = session();
  std::vector<float> row(vocabulary());
  const bitnet_token bad[] = {-1};
  const bitnet_token beyond[] = {static_cast<bitnet_token>(vocabulary())};
  EXPECT_EQ(bitnet_session_eval(s, bad, 1, 0, row.data(), row.size(), &error_),
            BITNET_INVALID_ARGUMENT);
  EXPECT_EQ(bitnet_session_eval(s, beyond, 1, 0, row.data(), row.size(), &error_),
            BITNET_INVALID_ARGUMENT);
  EXPECT_EQ(bitnet_session_eval(s, nullptr, 0, 0, row.data(), row.size(), &error_),
            BITNET_INVALID_ARGUMENT)
      << "no token to take logits from";
  const bitnet_token good[] = {0};
  EXPECT_EQ(bitnet_session_eval(s, good, 1, 0, row.data(), row.size() - 1, &error_),
            BITNET_INVALID_ARGUMENT)
      << "one float too few";
  bitnet_session_options options;
  bitnet_session_defaults(&options, sizeof options);
  options.n_context = 1U << 21;
  bitnet_session* none = nullptr;
  EXPECT_EQ(bitnet_session_open(model_, &options, &none, &error_), BITNET_INVALID_ARGUMENT);
  options.n_context = 64;
  options.kv_k = 9;
  EXPECT_EQ(bitnet_session_open(model_, &options, &none, &error_), BITNET_INVALID_ARGUMENT);
  options.kv_k = BITNET_KV_F16;
  options.precision = 3;
  EXPECT_EQ(bitnet_session_open(model_, &options, &none, &error_), BITNET_INVALID_ARGUMENT);
  EXPECT_NE(std::string(error_.message).find("precision 3: expected one of BITNET_PRODUCTS_*"),
            std::string::npos)
      << error_.message;
  EXPECT_EQ(none, nullptr);
}

TEST_F(demo, a_caller_of_an_older_header_gets_defaults_for_the_rest) {
  bitnet_session_options options;
  bitnet_session_defaults(&options, sizeof options);
  options.n_context = 64;
  options.kv_k = 9;  // would be rejected, but lies past the size that this caller knows
  options.struct_size = offsetof(bitnet_session_options, n_batch);
  bitnet_session* s = nullptr;
  ASSERT_EQ(bitnet_session_open(model_, &options, &s, &error_), BITNET_OK) << error_.message;
  EXPECT_EQ(bitnet_session_capacity(s), 64U);
  bitnet_session_close(s);
}

TEST(api, null_arguments_are_an_error_not_a_crash) {
  bitnet_error e = blank_error();
  EXPECT_EQ(bitnet_runtime_open(nullptr, nullptr, &e), BITNET_INVALID_ARGUMENT);
  EXPECT_EQ(bitnet_runtime_select(nullptr, &e), BITNET_INVALID_ARGUMENT);
  EXPECT_EQ(bitnet_model_open(nullptr, nullptr, nullptr, nullptr, &e), BITNET_INVALID_ARGUMENT);
  EXPECT_EQ(bitnet_session_open(nullptr, nullptr, nullptr, &e), BITNET_INVALID_ARGUMENT);
  EXPECT_EQ(bitnet_session_eval(nullptr, nullptr, 0, 0, nullptr, 0, &e), BITNET_INVALID_ARGUMENT);
  EXPECT_EQ(bitnet_generate(nullptr, nullptr, 0, nullptr, nullptr, &e), BITNET_INVALID_ARGUMENT);
  EXPECT_EQ(bitnet_inspect(nullptr, nullptr, nullptr, 0, nullptr, &e), BITNET_INVALID_ARGUMENT);
  EXPECT_EQ(bitnet_inspect_weights(nullptr, nullptr, nullptr, nullptr, 0, nullptr, &e),
            BITNET_INVALID_ARGUMENT);
  EXPECT_EQ(bitnet_analyze_library(nullptr, 0, nullptr, 0, nullptr, &e), BITNET_INVALID_ARGUMENT);
  EXPECT_EQ(bitnet_tokenize(nullptr, {nullptr, 0}, 0, nullptr, 0, nullptr, &e),
            BITNET_INVALID_ARGUMENT);
  EXPECT_NE(std::string(e.message), "");
  EXPECT_EQ(std::string(e.where), "bitnet_tokenize");
  EXPECT_EQ(bitnet_tokenize(nullptr, {nullptr, 0}, 0, nullptr, 0, nullptr, nullptr),
            BITNET_INVALID_ARGUMENT)
      << "err itself may be NULL";
  bitnet_session_cancel(nullptr);
  bitnet_session_close(nullptr);
  bitnet_model_close(nullptr);
  bitnet_runtime_close(nullptr);
}

TEST(api, a_text_that_does_not_fit_says_how_long_it_is) {
  uint64_t needed = 0;
  char small[4];
  EXPECT_EQ(bitnet_build_info(small, sizeof small, &needed, nullptr), BITNET_INVALID_ARGUMENT);
  EXPECT_GT(needed, sizeof small);
  EXPECT_NE(text_of([](char* out, uint64_t n, uint64_t* length) {
              return bitnet_build_info(out, n, length, nullptr);
            }).find("\"abi_major\":0"),
            std::string::npos);
}

TEST(api, messages_say_what_the_program_calls_an_option) {
  const auto rejected = [] {
    bitnet_error e = blank_error();
    bitnet_runtime_options options;
    bitnet_runtime_defaults(&options, sizeof options);
    options.n_threads = UINT32_MAX;
    bitnet_runtime* runtime = nullptr;
    EXPECT_EQ(bitnet_runtime_open(&options, &runtime, &e), BITNET_INVALID_ARGUMENT);
    return std::string(e.message);
  };
  EXPECT_TRUE(rejected().ends_with("; choose a smaller n_threads")) << rejected();
  bitnet_error e = blank_error();
  ASSERT_EQ(bitnet_wording_set("n_threads", "--threads", &e), BITNET_OK) << e.message;
  EXPECT_TRUE(rejected().ends_with("; choose a smaller --threads")) << rejected();
  ASSERT_EQ(bitnet_wording_set("n_threads", nullptr, &e), BITNET_OK) << e.message;
  EXPECT_TRUE(rejected().ends_with("; choose a smaller n_threads")) << rejected();
  EXPECT_EQ(bitnet_wording_set("n_thread", "--threads", &e), BITNET_NOT_FOUND);
  EXPECT_EQ(bitnet_wording_set("n_threads", "", &e), BITNET_INVALID_ARGUMENT);
  EXPECT_EQ(bitnet_wording_set(nullptr, "--threads", &e), BITNET_INVALID_ARGUMENT);
}

TEST(api, no_backend_is_a_reason_with_advice) {
  const char* empty[] = {"/nonexistent/backends.d"};
  bitnet_runtime_options options;
  bitnet_runtime_defaults(&options, sizeof options);
  options.manifest_dirs = empty;
  options.n_manifest_dirs = 1;
  bitnet_error e = blank_error();
  bitnet_runtime* runtime = nullptr;
  ASSERT_EQ(bitnet_runtime_open(&options, &runtime, &e), BITNET_OK);
  EXPECT_EQ(bitnet_runtime_select(runtime, &e), BITNET_UNAVAILABLE);
  EXPECT_NE(std::string(e.message).find("install"), std::string::npos) << e.message;
  EXPECT_EQ(text_of([&](char* out, uint64_t n, uint64_t* needed) {
              return bitnet_runtime_selection_line(runtime, out, n, needed, nullptr);
            }),
            "requested=auto detected=[] selected=none");
  bitnet_runtime_close(runtime);
}

}  // namespace
