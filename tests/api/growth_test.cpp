// Programs and libraries of different versions go together: structs of other sizes, arrays of other
// elements, and results that know less or more.

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "../scratch_folder.hpp"
#include "bitnet/bitnet.h"

namespace {

constexpr unsigned char canary = 0xA5;
constexpr uint32_t room = 1024;  // more than any struct has

bitnet_error blank() {
  bitnet_error e{};
  e.struct_size = sizeof e;
  return e;
}

template <class Options>
void fill(void (*defaults)(Options*, uint32_t), void* at, uint32_t size) {
  defaults(static_cast<Options*>(at), size);
}

// ---- options

struct kind {
  const char* name;
  uint32_t size;  // in this version
  void (*defaults)(void*, uint32_t);
};

template <class Options, void (*Defaults)(Options*, uint32_t)>
constexpr kind kind_of(const char* name) {
  return {name, sizeof(Options),
          [](void* at, uint32_t size) { Defaults(static_cast<Options*>(at), size); }};
}

const std::array kinds{
    kind_of<bitnet_runtime_options, bitnet_runtime_defaults>("runtime"),
    kind_of<bitnet_model_options, bitnet_model_defaults>("model"),
    kind_of<bitnet_convert_options, bitnet_convert_defaults>("convert"),
    kind_of<bitnet_chat_options, bitnet_chat_defaults>("chat"),
    kind_of<bitnet_chat_request, bitnet_chat_request_defaults>("chat request"),
    kind_of<bitnet_answer_options, bitnet_answer_defaults>("answer"),
    kind_of<bitnet_session_options, bitnet_session_defaults>("session"),
    kind_of<bitnet_sampling, bitnet_sampling_defaults>("sampling"),
    kind_of<bitnet_generation, bitnet_generation_defaults>("generation"),
    kind_of<bitnet_speculation, bitnet_speculation_defaults>("speculation"),
    kind_of<bitnet_reload_options, bitnet_reload_defaults>("reload"),
    kind_of<bitnet_shadow_options, bitnet_shadow_defaults>("shadow"),
    kind_of<bitnet_trial_options, bitnet_trial_defaults>("trial"),
    kind_of<bitnet_receipt_options, bitnet_receipt_defaults>("receipt"),
    kind_of<bitnet_receipt_check, bitnet_receipt_check_defaults>("receipt check"),
};

TEST(defaults, fill_the_size_that_the_program_has_and_no_more) {
  for (const kind& k : kinds) {
    SCOPED_TRACE(k.name);
    alignas(8) std::array<unsigned char, room> whole{};
    k.defaults(whole.data(), k.size);
    for (const uint32_t size : {0U, 3U, 4U, 8U, k.size - 8, k.size, k.size + 64}) {
      SCOPED_TRACE(size);
      alignas(8) std::array<unsigned char, room> got;
      got.fill(canary);
      k.defaults(got.data(), size);
      const uint32_t filled = size < 4 ? 0 : size;
      for (uint32_t i = filled; i < room; ++i) ASSERT_EQ(got[i], canary) << "byte " << i;
      if (filled == 0) continue;
      uint32_t said = 0;
      std::memcpy(&said, got.data(), sizeof said);
      EXPECT_EQ(said, size);
      for (uint32_t i = 4; i < filled; ++i)
        ASSERT_EQ(got[i], i < k.size ? whole[i] : 0) << "byte " << i;
    }
    k.defaults(nullptr, k.size);
  }
}

struct open_case {
  const char* name;
  uint32_t size;    // that the options say
  uint32_t set_at;  // a byte that is set; 0: none
  bitnet_status status;
  const char* says;
};

class sizes : public testing::TestWithParam<open_case> {};

TEST_P(sizes, of_options_are_accepted_or_rejected_with_a_reason) {
  const open_case& c = GetParam();
  alignas(8) std::array<unsigned char, room> bytes{};
  auto* options = reinterpret_cast<bitnet_runtime_options*>(bytes.data());
  bitnet_runtime_defaults(options, sizeof *options);
  options->struct_size = c.size;
  if (c.set_at != 0) bytes[c.set_at] = 1;
  bitnet_runtime* runtime = nullptr;
  bitnet_error e = blank();
  EXPECT_EQ(bitnet_runtime_open(options, &runtime, &e), c.status) << e.message;
  EXPECT_NE(std::string(e.message).find(c.says), std::string::npos) << e.message;
  bitnet_runtime_close(runtime);
}

INSTANTIATE_TEST_SUITE_P(
    rows, sizes,
    testing::Values(open_case{"this version", sizeof(bitnet_runtime_options), 0, BITNET_OK, ""},
                    open_case{"an older program", 16, 0, BITNET_OK, ""},
                    open_case{"a newer one that asks for nothing new", room, 0, BITNET_OK, ""},
                    open_case{"a newer one that does", room, sizeof(bitnet_runtime_options) + 40,
                              BITNET_UNSUPPORTED, "use a newer library"},
                    open_case{"it was not filled", 0, 0, BITNET_INVALID_ARGUMENT, "_defaults"},
                    open_case{"what lay on the stack", 0xA5A5A5A5, 0, BITNET_INVALID_ARGUMENT,
                              "_defaults"}),
    [](const auto& one) {
      std::string name = one.param.name;
      for (char& c : name)
        if (c == ' ') c = '_';
      return name;
    });

TEST(log_callback, may_not_call_the_library) {
  struct {
    bitnet_runtime* runtime = nullptr;
    int calls = 0, rejected = 0;
    std::string said;
  } seen;
  const bitnet::test::scratch_folder folder;
  folder.write("50-broken.yaml", "schema: 1\nname: [\n");
  const std::string place = folder.path();
  const char* const places[] = {place.c_str()};
  bitnet_runtime_options options;
  bitnet_runtime_defaults(&options, sizeof options);
  options.manifest_dirs = places;
  options.n_manifest_dirs = 1;
  options.probe_cache = "";
  options.log_level = 3;
  options.log_user = &seen;
  options.log = [](void* user, uint32_t, const char*) {
    auto& s = *static_cast<decltype(seen)*>(user);
    bitnet_error e = blank();
    uint64_t needed = 0;
    ++s.calls;
    s.rejected += bitnet_runtime_report(s.runtime, nullptr, 0, &needed, &e) != BITNET_OK ? 1 : 0;
    s.said = e.message;
  };
  bitnet_error e = blank();
  ASSERT_EQ(bitnet_runtime_open(&options, &seen.runtime, &e), BITNET_OK) << e.message;
  (void)bitnet_backend_reload(seen.runtime, "none-such", nullptr, &e);  // which is logged
  EXPECT_GT(seen.calls, 0);
  EXPECT_EQ(seen.rejected, seen.calls);
  EXPECT_NE(seen.said.find("log callback"), std::string::npos) << seen.said;
  uint64_t needed = 0;
  EXPECT_EQ(bitnet_runtime_report(seen.runtime, nullptr, 0, &needed, &e), BITNET_OK) << e.message;
  bitnet_runtime_close(seen.runtime);
}

TEST(failing_calls, fill_their_error) {
  char small[4];
  uint64_t needed = 0;
  const auto says = [](const bitnet_error& e, const char* where, const char* what) {
    EXPECT_STREQ(e.where, where);
    EXPECT_NE(std::string(e.message).find(what), std::string::npos) << e.message;
  };
  bitnet_error e = blank();
  EXPECT_EQ(bitnet_build_info(small, sizeof small, &needed, &e), BITNET_INVALID_ARGUMENT);
  says(e, "bitnet_build_info", "room for 4 bytes");
  e = blank();
  EXPECT_EQ(bitnet_runtime_selection_line(nullptr, nullptr, 0, &needed, &e),
            BITNET_INVALID_ARGUMENT);
  says(e, "bitnet_runtime_selection_line", "runtime is NULL");
  e = blank();
  EXPECT_EQ(bitnet_runtime_report(nullptr, nullptr, 0, &needed, &e), BITNET_INVALID_ARGUMENT);
  says(e, "bitnet_runtime_report", "runtime is NULL");
  e = blank();
  EXPECT_EQ(bitnet_model_describe(nullptr, nullptr, &e), BITNET_INVALID_ARGUMENT);
  says(e, "bitnet_model_describe", "NULL");
  e = blank();
  EXPECT_EQ(bitnet_session_report(nullptr, nullptr, 0, &needed, &e), BITNET_INVALID_ARGUMENT);
  says(e, "bitnet_session_report", "session is NULL");
}

}  // namespace
