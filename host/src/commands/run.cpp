// bitnet run: continues one prompt.
#include <fmt/format.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "basic/json.hpp"
#include "basic/output.hpp"
#include "basic/text_input.hpp"
#include "commands/answer_printer.hpp"
#include "commands/chat_format.hpp"
#include "commands/commands.hpp"
#include "commands/gated.hpp"
#include "commands/prompt.hpp"
#include "receipts/receipts.hpp"
#include "session/generation.hpp"
#include "session/reloading.hpp"
#include "session/shadow.hpp"

namespace bitnet::host {
namespace {

// A prompt is text to continue; with a system prompt, a template or tools it is a chat message.
bool is_completion(const invocation& in) {
  return !in.set.given("system-prompt") && !in.set.given("chat-template") && !in.set.given("tools");
}

result<chat_prompt> prompt_ids(const invocation& in, const bitnet_model* model,
                               const chat_form& form, const std::string& prompt) {
  if (is_completion(in)) {
    auto ids = tokenize(model, prompt, BITNET_TOKENIZE_MODEL_BOS | BITNET_TOKENIZE_PARSE_SPECIAL);
    if (!ids) return std::unexpected(ids.error());
    return chat_prompt{*std::move(ids), "", 0, nullptr};
  }
  std::vector<chat_message> messages;
  if (auto system = system_prompt(in.set)) messages.push_back({"system", *system});
  messages.push_back({"user", prompt});
  return chat_ids(model, form, messages);
}

nlohmann::json stop_json(const generated& done, const generation_setup& setup) {
  nlohmann::json stop = {{"reason", stop_name(done.result.stop_reason)}};
  const uint32_t index = done.result.stop_index;
  if (done.result.stop_reason == BITNET_STOP_STRING && index < setup.stop_texts().size()) {
    stop["string"] = setup.stop_texts()[index];
  }
  if (done.result.stop_reason == BITNET_STOP_TOKEN && index < setup.stop_ids().size()) {
    stop["token"] = setup.stop_ids()[index];
  }
  return stop;
}

nlohmann::json model_json(const engine& all) {
  const bitnet_model_info info = describe(all.model.get());
  nlohmann::json model = {{"file", all.file},
                          {"architecture", info.architecture},
                          {"n_vocab", info.n_vocab},
                          {"n_context", info.n_context},
                          {"n_parameters", info.n_parameters},
                          {"weight_bytes", info.weight_bytes}};
  if (info.name[0] != '\0') model["name"] = info.name;
  return model;
}

// The session reports what ran, the runtime what was selected; unknown values are left out.
result<nlohmann::json> run_json(const engine& all, const std::string& prompt, const token_list& ids,
                                const generated& done, const generation_setup& setup) {
  auto choice = runtime_report(all.runtime.get());
  if (!choice) return std::unexpected(choice.error());
  auto ran = session_report(all.session.get());
  if (!ran) return std::unexpected(ran.error());
  nlohmann::json selection;
  for (const char* key : {"requested", "requested_by", "detected", "selected", "device"}) {
    if (choice->contains(key)) selection[key] = (*choice)[key];
  }
  nlohmann::json out = {{"text", done.text},
                        {"prompt", prompt},
                        {"tokens", {{"prompt", ids}, {"generated", done.ids}}},
                        {"timings", timings_json(done.result)},
                        {"stop", stop_json(done, setup)},
                        {"selection", selection},
                        {"model", model_json(all)},
                        {"seed", setup.seed()},
                        {"version", bitnet_version()}};
  for (const char* key : {"device_status", "kernels", "kv", "parts", "moves", "speculation"}) {
    if (ran->contains(key)) out[key] = (*ran)[key];
  }
  return out;
}

void say_why_it_ended(const invocation& in, const engine& all, const generated& done) {
  if (done.result.stop_reason == BITNET_STOP_CONTEXT) {
    in.out.note(fmt::format("stopped: the context of {} tokens is full; use a larger -c",
                            bitnet_session_capacity(all.session.get())));
  }
}

// The answer of a chat turn in its parts; hidden thinking is left out.
result<nlohmann::json> answer_json(const invocation& in, const std::string& text,
                                   const chat_prompt& asked, const chat_form& form) {
  const auto opened = open_answer(asked, form);
  if (!opened) return std::unexpected(opened.error());
  library_error err;
  bitnet_answer_push(opened->get(), borrowed(text), &err);
  bitnet_answer_finish(opened->get(), &err);
  auto said = message_of(opened->get());
  if (said && in.set.text("reasoning") == "hide") said->erase("reasoning_content");
  return said;
}

result<int> run_prompt(const invocation& in, const engine& all, generation_setup& setup,
                       const chat_form& form, const std::string& prompt, gates& limits) {
  auto asked = prompt_ids(in, all.model.get(), form, prompt);
  if (!asked) return std::unexpected(asked.error());
  setup.answer_to(asked->chat.get());
  if (setup.is_random()) in.out.note(fmt::format("seed={}", setup.seed()));

  const bool as_json = in.set.flag("json");
  const bool completion = is_completion(in);
  if (!as_json && completion && in.set.flag("display-prompt")) {
    if (auto done = print(prompt); !done) return std::unexpected(done.error());
  }
  result<void> printed;
  answer_printer printer(in.out, in.set.text("reasoning") == "show");
  if (auto opened = printer.open(*asked, form); !opened) return std::unexpected(opened.error());
  const auto sink = [&](std::string_view text) {
    if (as_json) return true;
    if (!completion) return printer.take(text);
    printed = print(text);
    return printed.has_value();
  };
  auto done = generate(all.session.get(), asked->ids, setup, sink);
  if (!as_json && !completion && !printer.finish()) printed = printer.printed();
  if (!printed) return std::unexpected(printed.error());
  if (!done) {
    // The terminal's line has the prompt already, so the message begins on a new line.
    if (!as_json && ::isatty(STDOUT_FILENO) == 1) printed = print("\n");
    return std::unexpected(done.error());
  }
  if (!as_json) printed = print("\n");
  if (auto ok = take_run(in, limits, all.session.get(), asked->ids, setup, *done); !ok)
    return std::unexpected(ok.error());
  const auto compared = end_shadow(in, all.shadow.get());
  if (as_json) {
    auto content = run_json(all, prompt, asked->ids, *done, setup);
    if (!content) return std::unexpected(content.error());
    if (compared) (*content)["shadow"] = *compared;
    if (limits.any()) (*content)["gates"] = gates_json(limits.results());
    if (!completion) {
      auto said = answer_json(in, done->text, *asked, form);
      if (!said) return std::unexpected(said.error());
      (*content)["message"] = *std::move(said);
    }
    printed = print(json_line(*content));
  }
  if (!printed) return std::unexpected(printed.error());
  say_why_it_ended(in, all, *done);
  if (in.set.flag("perf")) in.out.line(timings_line(done->result));
  if (const auto report = session_report(all.session.get()))
    if (const std::string line = speculation_line(*report); !line.empty()) in.out.note(line);
  if (done->result.stop_reason == BITNET_STOP_CANCELLED) return exit_code::interrupted;
  return judged(in, limits);
}

}  // namespace

result<int> run_command(const invocation& in) {
  gates limits(in.set);
  if (in.set.flag("list-devices")) return list_devices(in);
  const model_and_rest words = split_positionals(in);
  auto given = given_prompt(in, words.rest);
  if (!given) return std::unexpected(given.error());
  const bool has_prompt = given->has_value();
  if (in.set.flag("conversation") || (!has_prompt && stdin_is_terminal())) {
    if (auto ok = no_gates(in, "a chat has no end that is measured"); !ok)
      return std::unexpected(ok.error());
    return chat_command(in);
  }
  std::string prompt = std::move(*given).value_or("");
  if (!has_prompt) {
    auto text = piped_text();
    if (!text) return std::unexpected(text.error());
    prompt = *std::move(text);
    drop_last_newline(prompt);
  } else if (!in.set.given("file") && in.set.flag("escape")) {
    prompt = unescape(prompt);
  }

  // Check the settings before a model is loaded.
  if (auto wish = given_shadow(in.set); !wish) return std::unexpected(wish.error());
  auto kept_to = given_form(in.set);
  if (!kept_to) return std::unexpected(kept_to.error());
  auto setup = generation_setup::from(in.set, *std::move(kept_to));
  if (!setup) return std::unexpected(setup.error());
  auto form = chat_form::from(in.set);
  if (!form) return std::unexpected(form.error());
  auto all = open_engine(in, words.model);
  if (!all) return with_failed_receipt(in, all.error());
  const auto watch = watch_backends(in, all->runtime.get());
  if (!watch) return std::unexpected(watch.error());
  setup->draft_with(all->draft.get());
  auto done = run_prompt(in, *all, *setup, *form, prompt, limits);
  nlohmann::json facts = nlohmann::json::object();
  if (limits.any()) facts["gates"] = gates_json(limits.results());
  return with_receipt(in, *all, std::move(done), facts);
}

}  // namespace bitnet::host
