// Members without a meaning are 0, or rejected by name: each that bitnet.h has, by a table that is
// made of the header.

#include <gtest/gtest.h>

#include <string>

#include "bitnet/bitnet.h"
#include "demo_session.hpp"

namespace {

struct answer {
  bitnet_status status = BITNET_OK;
  std::string message;
};

bitnet_error blank() {
  bitnet_error e{};
  e.struct_size = sizeof e;
  return e;
}

// How a struct of each kind reaches the library. One that has no overload here does not compile.
answer give(const bitnet_runtime_options& o) {
  bitnet_error e = blank();
  bitnet_runtime* runtime = nullptr;
  const bitnet_status s = bitnet_runtime_open(&o, &runtime, &e);
  bitnet_runtime_close(runtime);
  return {s, e.message};
}

answer give(const bitnet_model_options& o) {
  bitnet_error e = blank();
  bitnet_model* model = nullptr;
  const bitnet_status s = bitnet_model_open(nullptr, "/nowhere.gguf", &o, &model, &e);
  bitnet_model_close(model);
  return {s, e.message};
}

answer give(const bitnet_convert_options& o) {
  bitnet_error e = blank();
  const bitnet_status s =
      bitnet_convert("/nowhere.gguf", "/nowhere/out.gguf", &o, nullptr, nullptr, &e);
  return {s, e.message};
}

answer give(const bitnet_reload_options& o) {
  bitnet_error e = blank();
  bitnet_runtime* runtime = nullptr;
  EXPECT_EQ(bitnet_runtime_open(nullptr, &runtime, &e), BITNET_OK) << e.message;
  const bitnet_status s = bitnet_backend_reload(runtime, "nobody", &o, &e);
  bitnet_runtime_close(runtime);
  return {s, e.message};
}

answer give(const bitnet_trial_options& o) {
  bitnet_error e = blank();
  bitnet_runtime* runtime = nullptr;
  EXPECT_EQ(bitnet_runtime_open(nullptr, &runtime, &e), BITNET_OK) << e.message;
  bitnet_trial* trial = nullptr;
  const bitnet_status s = bitnet_trial_open(runtime, &o, &trial, &e);
  bitnet_trial_close(trial);
  bitnet_runtime_close(runtime);
  return {s, e.message};
}

void fill(bitnet_runtime_options* o) {
  bitnet_runtime_defaults(o, sizeof *o);
}
void fill(bitnet_model_options* o) {
  bitnet_model_defaults(o, sizeof *o);
}
void fill(bitnet_convert_options* o) {
  bitnet_convert_defaults(o, sizeof *o);
}
void fill(bitnet_reload_options* o) {
  bitnet_reload_defaults(o, sizeof *o);
}
void fill(bitnet_trial_options* o) {
  bitnet_trial_defaults(o, sizeof *o);
}

// What the library fills: nothing of it is read.
constexpr const char* results[] = {"bitnet_model_info", "bitnet_generation_result",
                                   "bitnet_answer_event"};
void fill(bitnet_answer_event*) {}
answer give(const bitnet_answer_event&) {
  return {};
}
void fill(bitnet_model_info*) {}
void fill(bitnet_generation_result*) {}
answer give(const bitnet_model_info&) {
  return {};
}
answer give(const bitnet_generation_result&) {
  return {};
}
void fill(bitnet_sampling* o) {
  bitnet_sampling_defaults(o, sizeof *o);
}
answer give(const bitnet_sampling& o) {
  bitnet::test::demo_session demo;
  EXPECT_EQ(demo.open(), BITNET_OK) << demo.error.message;
  bitnet_generation g;
  bitnet_generation_defaults(&g, sizeof g);
  g.sampling = &o;
  bitnet_generation_result r{};
  r.struct_size = sizeof r;
  bitnet_error e = blank();
  const bitnet_token prompt = 5;
  const bitnet_status s = bitnet_generate(demo.session, &prompt, 1, &g, &r, &e);
  return {s, e.message};
}

void fill(bitnet_chat_request* o) {
  bitnet_chat_request_defaults(o, sizeof *o);
}
answer give(const bitnet_chat_request& o) {
  bitnet::test::demo_session demo;
  EXPECT_EQ(demo.open(), BITNET_OK) << demo.error.message;
  bitnet_chat_request request = o;
  constexpr std::string_view messages = R"([{"role": "user", "content": "Hello"}])";
  request.messages = {messages.data(), messages.size()};
  bitnet_chat* chat = nullptr;
  bitnet_error e = blank();
  const bitnet_status s = bitnet_chat_open(demo.model, &request, &chat, &e);
  bitnet_chat_close(chat);
  return {s, e.message};
}

void fill(bitnet_receipt_options* o) {
  bitnet_receipt_defaults(o, sizeof *o);
}
answer give(const bitnet_receipt_options& o) {
  bitnet_error e = blank();
  bitnet_runtime* runtime = nullptr;
  EXPECT_EQ(bitnet_runtime_open(nullptr, &runtime, &e), BITNET_OK) << e.message;
  const bitnet_status s =
      bitnet_runtime_receipt(runtime, BITNET_INTERNAL, "x", &o, nullptr, 0, nullptr, &e);
  bitnet_runtime_close(runtime);
  return {s, e.message};
}

void fill(bitnet_receipt_check* o) {
  bitnet_receipt_check_defaults(o, sizeof *o);
}
answer give(const bitnet_receipt_check& o) {
  bitnet_error e = blank();
  const bitnet_status s = bitnet_receipt_verify({"{}", 2}, &o, nullptr, 0, nullptr, &e);
  return {s, e.message};
}

void fill(bitnet_scheduler_options* o) {
  bitnet_scheduler_defaults(o, sizeof *o);
}
answer give(const bitnet_scheduler_options& o) {
  bitnet::test::demo_session demo;
  EXPECT_EQ(demo.open(), BITNET_OK) << demo.error.message;
  bitnet_scheduler* scheduler = nullptr;
  bitnet_error e = blank();
  const bitnet_status s = bitnet_scheduler_open(demo.model, &o, &scheduler, &e);
  bitnet_scheduler_close(scheduler);
  return {s, e.message};
}

void expect_rejected(const char* kind, const char* member, const answer& got) {
  for (const char* result : results)
    if (std::string(kind) == result) return;
  EXPECT_EQ(got.status, BITNET_UNSUPPORTED) << kind << "." << member << ": " << got.message;
  EXPECT_NE(got.message.find(member), std::string::npos)
      << kind << "." << member << ": " << got.message;
}

TEST(reserved, members_are_rejected_by_name) {
  if (bitnet::test::demo_model().empty()) GTEST_SKIP() << "no demo model in models/";
  int rows = 0;
#define ROW(kind, member)                       \
  {                                             \
    kind one{};                                 \
    fill(&one);                                 \
    one.member = 1;                             \
    expect_rejected(#kind, #member, give(one)); \
    ++rows;                                     \
  }
#include "reserved_members.inl"
#undef ROW
  EXPECT_GE(rows, 14);
}

}  // namespace
