// The JSON documents of bitnet.h, as the library gives them for the demo model: documents_program
// BACKEND_FILE FOLDER prints one line for each, the name of the function, a tab and the document.
// documents.py compares them with docs/reference; it has put a plugin and keys into FOLDER.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "../demo_model.hpp"
#include "bitnet/bitnet.h"

namespace {

bitnet_error error{};

// Ends the program with the library's message, which is in `of`, if a call fails.
void check(bitnet_status status, const char* doing, const bitnet_error& of = error) {
  if (status == BITNET_OK) return;
  std::fprintf(stderr, "%s: %s (status %d)\n", doing, of.message, static_cast<int>(status));
  std::exit(1);
}

void print(const char* function, const std::string& document) {
  std::printf("%s\t%s\n", function, document.c_str());
}

// For the calls that hand their document to a callback.
void take(void* user, bitnet_str text) {
  static_cast<std::string*>(user)->assign(text.data, text.size);
}

using asking = std::function<bitnet_status(char* out, uint64_t capacity, uint64_t* needed)>;

// The document of a call with (out, capacity, needed).
std::string text_of(const char* function, const asking& ask) {
  uint64_t needed = 0;
  check(ask(nullptr, 0, &needed), function);
  std::string text(needed, ' ');
  check(ask(text.data(), text.size(), &needed), function);
  return text;
}

void print_text(const char* function, const asking& ask) {
  print(function, text_of(function, ask));
}

struct opened {
  std::string file = bitnet::test::demo_model();
  bitnet_runtime* runtime = nullptr;
  bitnet_model* model = nullptr;
  std::vector<bitnet_token> prompt;

  opened() {
    bitnet_runtime_options options;
    bitnet_runtime_defaults(&options, sizeof options);
    options.device = "cpu";
    options.n_threads = 1;
    check(bitnet_runtime_open(&options, &runtime, &error), "runtime");
    bitnet_model_options how;
    bitnet_model_defaults(&how, sizeof how);
    how.tune = 1;
    how.kv_budget_bytes = uint64_t{64} << 20;
    check(bitnet_model_open(runtime, file.c_str(), &how, &model, &error), "model");
    prompt.resize(64);
    uint64_t n = 0;
    check(bitnet_tokenize(model, {"Once upon a time", 16}, BITNET_TOKENIZE_MODEL_BOS, prompt.data(),
                          prompt.size(), &n, &error),
          "prompt");
    prompt.resize(n);
  }
  opened(const opened&) = delete;
  opened& operator=(const opened&) = delete;
  ~opened() {
    bitnet_model_close(model);
    bitnet_runtime_close(runtime);
  }
};

void of_runtime(bitnet_runtime* runtime) {
  print_text("bitnet_runtime_report", [&](char* out, uint64_t capacity, uint64_t* needed) {
    return bitnet_runtime_report(runtime, out, capacity, needed, &error);
  });
}

bitnet_shadow* open_shadow(const opened& on, const bitnet_session_options& sequences) {
  bitnet_shadow_options options;
  bitnet_shadow_defaults(&options, sizeof options);
  options.device = "cpu";
  options.share = 1;
  options.sequences = &sequences;
  bitnet_shadow* shadow = nullptr;
  check(bitnet_shadow_open(on.model, &options, &shadow, &error), "shadow");
  return shadow;
}

std::string shadow_report(bitnet_shadow* of) {
  return text_of("bitnet_shadow_report", [&](char* out, uint64_t capacity, uint64_t* needed) {
    return bitnet_shadow_report(of, out, capacity, needed, &error);
  });
}

// Generates `n` tokens, with drafts if `drafts` is true. Owns what `how` points to.
struct drafting {
  bitnet_speculation ahead;
  bitnet_sampling sampling;
  bitnet_generation how;

  drafting(int32_t n, bool drafts) {
    bitnet_speculation_defaults(&ahead, sizeof ahead);
    ahead.type = BITNET_SPECULATION_NGRAM;
    ahead.ngram_size = 1;
    bitnet_sampling_defaults(&sampling, sizeof sampling);
    sampling.ignore_eos = 1;
    bitnet_generation_defaults(&how, sizeof how);
    how.max_tokens = n;
    how.sampling = &sampling;
    if (drafts) how.speculation = &ahead;
  }
  drafting(const drafting&) = delete;
  drafting& operator=(const drafting&) = delete;
};

// Replaces the tokens of a session by a prompt and `n` new ones.
void generate(const opened& on, bitnet_session* session, int32_t n, bool drafts,
              bitnet_error& err) {
  check(bitnet_session_truncate(session, 0, &err), "truncate", err);
  const drafting wish(n, drafts);
  bitnet_generation_result result{};
  result.struct_size = sizeof result;
  check(bitnet_generate(session, on.prompt.data(), on.prompt.size(), &wish.how, &result, &err),
        "generate", err);
}

void print_report(bitnet_session* session) {
  print_text("bitnet_session_report", [&](char* out, uint64_t capacity, uint64_t* needed) {
    return bitnet_session_report(session, out, capacity, needed, &error);
  });
}

void receipts(bitnet_session* session) {
  bitnet_receipt_options options;
  bitnet_receipt_defaults(&options, sizeof options);
  options.key_file = "";
  options.statement_only = 1;
  const auto ask = [&](char* out, uint64_t capacity, uint64_t* needed) {
    return bitnet_session_receipt(session, &options, out, capacity, needed, &error);
  };
  print_text("bitnet_session_receipt", ask);
  options.statement_only = 0;
  const std::string receipt = text_of("bitnet_session_receipt", ask);
  bitnet_receipt_check rules;
  bitnet_receipt_check_defaults(&rules, sizeof rules);
  rules.allow_unsigned = 1;
  rules.require_gpu_kernels = 1;  // a finding
  print_text("bitnet_receipt_verify", [&](char* out, uint64_t capacity, uint64_t* needed) {
    return bitnet_receipt_verify({receipt.data(), receipt.size()}, &rules, out, capacity, needed,
                                 &error);
  });
}

// Waits until the shadow has compared a row.
void wait_for_row(bitnet_shadow* shadow) {
  for (int i = 0; i < 6000; ++i) {
    if (shadow_report(shadow).find("\"worst\"") != std::string::npos) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  std::fputs("the shadow compared no row\n", stderr);
  std::exit(1);
}

void of_session(const opened& on) {
  bitnet_session_options options;
  bitnet_session_defaults(&options, sizeof options);
  options.profile = 1;
  options.n_context = 256;
  bitnet_session* session = nullptr;
  check(bitnet_session_open(on.model, &options, &session, &error), "session");
  bitnet_shadow* const shadow = open_shadow(on, options);
  print("bitnet_shadow_report", shadow_report(shadow));
  check(bitnet_session_set_shadow(session, shadow, &error), "shadow of the session");
  generate(on, session, 40, true, error);
  wait_for_row(shadow);
  print("bitnet_shadow_report", shadow_report(shadow));
  check(bitnet_session_set_preference(session, "cpu:0", &error), "preference");
  print_report(session);
  print_text("bitnet_session_program", [&](char* out, uint64_t capacity, uint64_t* needed) {
    return bitnet_session_program(session, out, capacity, needed, &error);
  });
  receipts(session);
  bitnet_session_close(session);
  bitnet_shadow_close(shadow);

  bitnet_session_defaults(&options, sizeof options);
  options.embeddings = 1;
  options.n_context = 64;
  check(bitnet_session_open(on.model, &options, &session, &error), "session of embeddings");
  print_report(session);
  bitnet_session_close(session);
}

// Two choices of one request with drafts; a report while they run, and one at their end.
void of_scheduler(const opened& on) {
  bitnet_session_options sequences;
  bitnet_session_defaults(&sequences, sizeof sequences);
  sequences.n_context = 256;
  bitnet_scheduler_options options;
  bitnet_scheduler_defaults(&options, sizeof options);
  options.sequences = &sequences;
  options.max_sequences = 2;
  bitnet_scheduler* scheduler = nullptr;
  check(bitnet_scheduler_open(on.model, &options, &scheduler, &error), "scheduler");
  bitnet_shadow* const shadow = open_shadow(on, sequences);
  check(bitnet_scheduler_set_shadow(scheduler, shadow, &error), "shadow of the scheduler");
  const auto report = [&] {
    print_text("bitnet_scheduler_report", [&](char* out, uint64_t capacity, uint64_t* needed) {
      return bitnet_scheduler_report(scheduler, out, capacity, needed, &error);
    });
  };
  const drafting drafts(60, true);
  bitnet_request_options wish;
  bitnet_request_defaults(&wish, sizeof wish);
  wish.prompt = on.prompt.data();
  wish.n_prompt = on.prompt.size();
  wish.generation = &drafts.how;
  wish.n_choices = 3;  // one more than run together
  bitnet_request* request = nullptr;
  check(bitnet_request_submit(scheduler, &wish, &request, &error), "request");
  bitnet_event event{};
  event.struct_size = sizeof event;
  check(bitnet_request_next(request, 60000, &event, &error), "first event");
  report();
  bitnet_status status = BITNET_OK;
  while (status == BITNET_OK) status = bitnet_request_next(request, 60000, &event, &error);
  if (status != BITNET_NOT_FOUND) check(status, "events");
  report();
  wait_for_row(shadow);
  print("bitnet_shadow_report", shadow_report(shadow));
  bitnet_request_close(request);
  bitnet_scheduler_close(scheduler);
  bitnet_shadow_close(shadow);

  sequences.embeddings = 1;
  check(bitnet_scheduler_open(on.model, &options, &scheduler, &error), "embeddings");
  report();
  bitnet_scheduler_close(scheduler);
}

// A reload without a change; one with a canary, while a session generates; its session then moves.
void of_reload(const opened& on) {
  bitnet_session_options of;
  bitnet_session_defaults(&of, sizeof of);
  of.window = 128;
  of.window_keep = 4;
  of.deterministic = 1;
  bitnet_session* session = nullptr;
  check(bitnet_session_open(on.model, &of, &session, &error), "session with a window");
  bitnet_reload_options options;
  bitnet_reload_defaults(&options, sizeof options);
  std::string document;
  options.report = take;
  options.report_user = &document;
  check(bitnet_backend_reload(on.runtime, "cpu", &options, &error), "reload");
  print("bitnet_backend_reload", document);

  std::atomic<bool> reloaded{false};
  bitnet_error of_texts{};
  of_texts.struct_size = sizeof of_texts;
  std::thread texts([&] {
    while (!reloaded) generate(on, session, 8, false, of_texts);
  });
  options.force = 1;
  options.policy = BITNET_RELOAD_MIGRATE;
  options.canary_rows = 4;
  const bitnet_status status = bitnet_backend_reload(on.runtime, "cpu", &options, &error);
  reloaded = true;
  texts.join();
  check(status, "reload with a canary");
  print("bitnet_backend_reload", document);
  generate(on, session, 8, false, error);
  print_report(session);
  bitnet_session_close(session);
}

// A request that cannot be met: another device is chosen in its place, or none if there are fakes.
void of_fallback(const char* fakes) {
  setenv("BITNET_GPU_FAKE", fakes, 1);
  bitnet_runtime_options options;
  bitnet_runtime_defaults(&options, sizeof options);
  options.device = "no-such-backend";
  options.allow_fallback = 1;
  options.allow_fake = 1;
  options.n_threads = 1;
  bitnet_runtime* runtime = nullptr;
  check(bitnet_runtime_open(&options, &runtime, &error), "runtime with fakes");
  const bitnet_status status = bitnet_runtime_select(runtime, &error);
  if (status != BITNET_UNAVAILABLE) check(status, "choice");
  of_runtime(runtime);
  bitnet_runtime_close(runtime);
  unsetenv("BITNET_GPU_FAKE");
}

void of_files(const std::string& model, const char* plugin, const std::string& folder) {
  std::string document;
  check(bitnet_backend_lint(plugin, nullptr, take, &document, &error), "lint");
  print("bitnet_backend_lint", document);
  const std::string copy = folder + "/plugin.so", trusted = folder + "/trusted.d";
  check(bitnet_backend_sign(copy.c_str(), (folder + "/secret.pem").c_str(), &error), "sign");
  check(bitnet_backend_verify(copy.c_str(), trusted.c_str(), take, &document, &error), "verify");
  print("bitnet_backend_verify", document);
  print_text("bitnet_analyze_library", [&](char* out, uint64_t capacity, uint64_t* needed) {
    return bitnet_analyze_library(plugin, 3, out, capacity, needed, &error);
  });
  print_text("bitnet_inspect", [&](char* out, uint64_t capacity, uint64_t* needed) {
    return bitnet_inspect(model.c_str(), nullptr, out, capacity, needed, &error);
  });
  for (const char* const rules : {"none", "generic"})
    print_text("bitnet_inspect_weights", [&](char* out, uint64_t capacity, uint64_t* needed) {
      return bitnet_inspect_weights(model.c_str(), nullptr, rules, out, capacity, needed, &error);
    });
  bitnet_convert_options how;
  bitnet_convert_defaults(&how, sizeof how);
  how.overwrite = 1;
  how.verify = 1;
  how.n_threads = 1;
  const std::string to = folder + "/converted.gguf";
  check(bitnet_convert(model.c_str(), to.c_str(), &how, take, &document, &error), "convert");
  print("bitnet_convert", document);
}

void of_answer() {
  bitnet_answer_options options;
  bitnet_answer_defaults(&options, sizeof options);
  options.in_reasoning = 1;
  bitnet_answer* answer = nullptr;
  check(bitnet_answer_open(&options, &answer, &error), "answer");
  const auto message = [&] {
    print_text("bitnet_answer_message", [&](char* out, uint64_t capacity, uint64_t* needed) {
      return bitnet_answer_message(answer, out, capacity, needed, &error);
    });
  };
  message();
  const std::string text =
      "Hm.</think>\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"x\": 1}}\n</tool_call>";
  check(bitnet_answer_push(answer, {text.data(), text.size()}, &error), "text");
  check(bitnet_answer_finish(answer, &error), "end");
  message();
  bitnet_answer_close(answer);
}

bitnet_str part_of(const std::string& text) {
  return {text.data(), text.size()};
}

// Prints the request if the library makes a prompt of it.
void print_chat(const opened& on, const std::string& messages, const std::string& tools,
                const std::string& choice, const std::string& arguments) {
  bitnet_chat_request request;
  bitnet_chat_request_defaults(&request, sizeof request);
  request.messages = part_of(messages);
  request.tools = part_of(tools);
  request.tool_choice = part_of(choice);
  request.template_arguments = part_of(arguments);
  request.dialect = "hermes";
  bitnet_chat* chat = nullptr;
  check(bitnet_chat_open(on.model, &request, &chat, &error), "chat");
  bitnet_chat_close(chat);
  std::string all = "{\"messages\": " + messages;
  if (!tools.empty()) all += ", \"tools\": " + tools;
  if (!choice.empty()) all += ", \"tool_choice\": " + choice;
  if (!arguments.empty()) all += ", \"template_arguments\": " + arguments;
  print("bitnet_chat_open", all + "}");
}

void of_chats(const opened& on) {
  print_chat(
      on,
      R"([{"role": "user", "content": [{"type": "text", "text": "Hello"}], "name": "Ella"},)"
      R"( {"role": "assistant", "content": null, "reasoning_content": "Hm.", "tool_calls": [{"id": "1",)"
      R"( "type": "function", "function": {"name": "f", "arguments": {"x": 1}}}]},)"
      R"( {"role": "tool", "content": "2", "tool_call_id": "1"}])",
      R"([{"type": "function", "function": {"name": "f", "description": "It adds 1.", "strict": true,)"
      R"( "parameters": {"type": "object", "properties": {"x": {"type": "integer"}}}}}])",
      R"({"type": "function", "function": {"name": "f"}})", R"({"enable_thinking": false})");
  print_chat(on,
             R"([{"role": "assistant", "tool_calls": [{"function": {"name": "f"}}]},)"
             R"( {"role": "user", "content": "Hello"}])",
             R"([{"function": {"name": "f"}}])", R"({"function": {"name": "f"}})", "");
  print_chat(on, R"([{"role": "user", "content": "Hello"}])", "", "", "");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("usage: documents_program BACKEND_FILE FOLDER\n", stderr);
    return 2;
  }
  error.struct_size = sizeof error;
  print_text("bitnet_build_info", [](char* out, uint64_t capacity, uint64_t* needed) {
    return bitnet_build_info(out, capacity, needed, &error);
  });
  const opened on;
  of_runtime(on.runtime);
  of_session(on);
  of_scheduler(on);
  of_reload(on);
  of_runtime(on.runtime);
  of_fallback("none");
  of_fallback("fake:1");
  of_files(on.file, argv[1], argv[2]);
  of_answer();
  of_chats(on);
  return 0;
}
