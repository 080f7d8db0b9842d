#include "session/generation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <random>
#include <type_traits>

#include "basic/text_input.hpp"
#include "process/interrupt.hpp"
#include "settings/value.hpp"
#include "tables/sampling.hpp"

namespace bitnet::host {
namespace {

constexpr double ns_per_ms = 1e6;

// ID(+|-)NUMBER, as llama.cpp writes it.
result<bitnet_logit_bias> parse_bias(const std::string& text) {
  bitnet_logit_bias bias{};
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, bias.token);
  if (error == std::errc{} && bias.token >= 0 && rest != end && (*rest == '+' || *rest == '-')) {
    if (const auto number = parse_real(std::string_view(rest + 1, end))) {
      bias.bias = static_cast<float>(*rest == '-' ? -*number : *number);
      return bias;
    }
  }
  return fail(exit_code::usage,
              fmt::format("--logit-bias expects ID+NUMBER or ID-NUMBER, found '{}'", text));
}

uint32_t draw_seed() {
  std::random_device source;
  return source();
}

double per_second(uint64_t n, uint64_t ns) {
  return static_cast<double>(n) * 1e9 / static_cast<double>(ns);
}

// n_generated tokens need n_generated - 1 steps of their own: the first comes from the prompt's
// logits. llama.cpp counts every token, and so do these timings.
void add_phase(nlohmann::json& to, const std::string& name, uint64_t n, uint64_t ns) {
  const double ms = static_cast<double>(ns) / ns_per_ms;
  to[name + "_n"] = n;
  to[name + "_ms"] = ms;
  if (n == 0 || ns == 0) return;
  to[name + "_per_token_ms"] = ms / static_cast<double>(n);
  to[name + "_per_second"] = per_second(n, ns);
}

std::string phase_line(const char* what, uint64_t n, uint64_t ns) {
  std::string line =
      fmt::format("{} {} tokens in {:.1f} ms", what, n, static_cast<double>(ns) / ns_per_ms);
  if (n > 0 && ns > 0) line += fmt::format(" ({:.1f} tokens/s)", per_second(n, ns));
  return line;
}

// Whole numbers and reals are separate kinds of options.
template <class T>
T parameter_of(const settings& set, std::string_view option) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(set.integer(option));
  else
    return static_cast<T>(set.real(option));
}

struct text_receiver {
  const std::function<bool(std::string_view)>& sink;
  std::string text;
};

int32_t on_text(void* user, bitnet_str piece) {
  auto& to = *static_cast<text_receiver*>(user);
  const std::string_view text(piece.data, piece.size);
  to.text += text;
  return to.sink(text) && !interrupt::requested() ? 0 : 1;
}

// Generates into `ids`, until the end or Ctrl-C. `out` is valid unless the call failed.
bitnet_status generate_into(token_list& ids, bitnet_session* session, const token_list& prompt,
                            bitnet_generation how, bitnet_generation_result& out,
                            library_error& err) {
  // The context limits how many tokens can be generated, so this holds all ids.
  ids.resize(bitnet_session_capacity(session) + 1);
  how.out_tokens = ids.data();
  how.out_capacity = ids.size();
  out.struct_size = sizeof out;
  const interrupt::scope until_generated(session);
  const bitnet_status status =
      bitnet_generate(session, prompt.data(), prompt.size(), &how, &out, &err);
  ids.resize(std::min<uint64_t>(out.n_generated, ids.size()));
  return status;
}

}  // namespace

result<text_form> given_form(const settings& set) {
  struct source {
    const char* option;
    const char* file_option;
    const char* what;
    std::string text_form::* member;
    decltype(&bitnet_grammar_check) check;
  };
  constexpr source sources[] = {
      {"grammar", "grammar-file", "grammar", &text_form::grammar, bitnet_grammar_check},
      {"json-schema", "json-schema-file", "JSON schema", &text_form::json_schema,
       bitnet_json_schema_check}};
  text_form out;
  for (const source& one : sources) {
    const std::string& file = set.text(one.file_option);
    std::string text = set.text(one.option);
    if (file.empty() && text.empty()) continue;
    if (!file.empty() && !text.empty())
      return fail(exit_code::usage, fmt::format("give the {} once: as --{} or as --{}", one.what,
                                                one.option, one.file_option));
    if (!file.empty()) {
      constexpr uint64_t longest_file = uint64_t{16} << 20;  // the library's bound is lower
      auto read = read_text_file(file, longest_file);
      if (!read)
        return fail(exit_code::usage,
                    fmt::format("--{} {}", one.file_option, read.error().message));
      text = *std::move(read);
    }
    library_error err;
    if (one.check(borrowed(text), &err) != BITNET_OK)
      return fail(
          exit_code::usage,
          fmt::format("{}: {}", file.empty() ? "--" + std::string(one.option) : file, err.message));
    out.*one.member = std::move(text);
  }
  if (!out.grammar.empty() && !out.json_schema.empty())
    return fail(exit_code::usage, "give a grammar or a JSON schema, not both");
  return out;
}

void take_parameters(const settings& set, bitnet_sampling& to){
#define BITNET_SAMPLING_SET(type, name, initial, accepted, expected, option, ...) \
  to.name = parameter_of<type>(set, option);
    BITNET_SAMPLING_PARAMETERS(BITNET_SAMPLING_SET)
#undef BITNET_SAMPLING_SET
}

result<generation_setup> generation_setup::from(const settings& set, text_form form) {
  generation_setup setup;
  setup.form_ = std::move(form);
  bitnet_sampling& s = setup.sampling_;
  bitnet_sampling_defaults(&s, sizeof s);
  s.seed = set.integer("seed") < 0 ? draw_seed() : static_cast<uint32_t>(set.integer("seed"));
  take_parameters(set, s);
  s.ignore_eos = set.flag("ignore-eos") ? 1 : 0;
  for (const std::string& text : set.list("logit-bias")) {
    auto bias = parse_bias(text);
    if (!bias) return std::unexpected(bias.error());
    setup.biases_.push_back(*bias);
  }
  if (auto ok = setup.take_breakers(set); !ok) return std::unexpected(ok.error());
  s.logit_bias = setup.biases_.data();
  s.n_logit_bias = static_cast<uint32_t>(setup.biases_.size());
  for (const std::string& text : set.list("reverse-prompt")) {
    std::string stop = set.flag("escape") ? unescape(text) : text;
    if (stop.empty()) return fail(exit_code::usage, "--reverse-prompt expects a text, found none");
    setup.stops_.push_back(std::move(stop));
  }
  for (const std::string& text : set.list("stop-id")) {
    auto ids = parse_ids(text);
    if (!ids) return fail(exit_code::usage, fmt::format("--stop-id {}", ids.error().message));
    setup.stop_ids_.insert(setup.stop_ids_.end(), ids->begin(), ids->end());
  }
  for (const std::string& stop : setup.stops_) setup.stop_views_.push_back(borrowed(stop));
  setup.max_tokens_ = static_cast<int32_t>(set.integer("n-predict"));
  setup.reasoning_budget_ = static_cast<int32_t>(set.integer("reasoning-budget"));
  auto speculation = given_speculation(set);
  if (!speculation) return std::unexpected(speculation.error());
  setup.speculation_ = *speculation;
  return setup;
}

// Given texts replace the library's; "none" alone removes all.
result<void> generation_setup::take_breakers(const settings& set) {
  const auto& texts = set.list("dry-sequence-breaker");
  if (texts.empty()) return {};
  for (const std::string& text : texts) {
    if (text == "none") continue;
    breakers_.push_back(set.flag("escape") ? unescape(text) : text);
    if (breakers_.back().empty())
      return fail(exit_code::usage, "--dry-sequence-breaker expects a text or none, found nothing");
  }
  for (const std::string& text : breakers_) breaker_views_.push_back(borrowed(text));
  sampling_.dry_breakers = breaker_views_.data();
  sampling_.n_dry_breakers = static_cast<uint32_t>(breaker_views_.size());
  return {};
}

void generation_setup::draft_with(bitnet_model* draft) {
  speculation_.draft = draft;
}

void generation_setup::answer_to(const bitnet_chat* chat) {
  reasoning_ends_.clear();
  if (chat == nullptr) return;
  bitnet_chat_info info{};
  info.struct_size = sizeof info;
  library_error err;
  if (bitnet_chat_describe(chat, &info, &err) != BITNET_OK) return;  // fails only for NULL
  in_reasoning_ = info.in_reasoning != 0;
  reasoning_begins_.assign(info.reasoning_begins.data, info.reasoning_begins.size);
  reasoning_ends_.assign(info.reasoning_ends.data, info.reasoning_ends.size);
}

result<bitnet_speculation> given_speculation(const settings& set) {
  bitnet_speculation out;
  bitnet_speculation_defaults(&out, sizeof out);
  const std::string& type = set.text("spec-type");
  const bool has_draft = !set.text("model-draft").empty();
  out.type = type == "ngram"   ? BITNET_SPECULATION_NGRAM
             : type == "draft" ? BITNET_SPECULATION_DRAFT
             : type == "auto"  ? BITNET_SPECULATION_AUTO
                               : BITNET_SPECULATION_NONE;
  if (has_draft && !set.given("spec-type")) out.type = BITNET_SPECULATION_DRAFT;
  if (out.type == BITNET_SPECULATION_DRAFT && !has_draft)
    return fail(exit_code::usage,
                "--spec-type draft expects a draft model, found none; give it as --model-draft");
  out.n_max = static_cast<uint32_t>(set.integer("draft-max"));
  out.n_min = static_cast<uint32_t>(set.integer("draft-min"));
  if (out.n_min > out.n_max)
    return fail(
        exit_code::usage,
        fmt::format("--draft-min expects at most --draft-max, {}; found {}", out.n_max, out.n_min));
  out.ngram_size = static_cast<uint32_t>(set.integer("spec-ngram-size-n"));
  return out;
}

std::string speculation_line(const nlohmann::json& report) {
  const auto at = report.find("speculation");
  if (at == report.end()) return "";
  const std::string why = at->value("why", "");
  const uint64_t pauses = at->value("pauses", uint64_t{0});
  std::string line =
      fmt::format("speculation: {} of {} drafted tokens accepted in {} steps",
                  at->value("accepted", uint64_t{0}), at->value("drafted", uint64_t{0}),
                  at->value("steps", uint64_t{0}));
  if (at->value("steps", uint64_t{0}) != 0)
    line += fmt::format(", {:.1f} tokens each, which took {:.2f} times as long as without",
                        at->value("tokens_per_step", 0.0), at->value("step_ratio", 0.0));
  if (pauses != 0) line += fmt::format("; paused {} times, as it cost time", pauses);
  if (!why.empty()) line += fmt::format("; the draft model failed: {}", why);
  return line;
}

bitnet_generation generation_setup::options() const {
  bitnet_generation g{};
  g.struct_size = sizeof g;
  g.max_tokens = max_tokens_;
  g.sampling = &sampling_;
  g.stop_strings = stop_views_.data();
  g.n_stop_strings = static_cast<uint32_t>(stop_views_.size());
  g.n_stop_tokens = static_cast<uint32_t>(stop_ids_.size());
  g.stop_tokens = stop_ids_.data();
  g.grammar = borrowed(form_.grammar);
  g.json_schema = borrowed(form_.json_schema);
  if (speculation_.type != BITNET_SPECULATION_NONE) g.speculation = &speculation_;
  // A grammar or schema leaves no room for thinking.
  const bool has_form = !form_.grammar.empty() || !form_.json_schema.empty();
  g.reasoning_budget = reasoning_ends_.empty() || has_form ? -1 : reasoning_budget_;
  g.in_reasoning = in_reasoning_ ? 1 : 0;
  g.reasoning_begins = borrowed(reasoning_begins_);
  g.reasoning_ends = borrowed(reasoning_ends_);
  return g;
}

result<generated> generate(bitnet_session* session, const token_list& prompt,
                           const generation_setup& setup,
                           const std::function<bool(std::string_view)>& sink) {
  generated done;
  text_receiver to{sink, {}};
  bitnet_generation options = setup.options();
  options.text = on_text;
  options.text_user = &to;
  library_error err;
  const bitnet_status status = generate_into(done.ids, session, prompt, options, done.result, err);
  if (status == BITNET_CANCELLED) {
    done.result.stop_reason = BITNET_STOP_CANCELLED;
  } else if (status != BITNET_OK) {
    return failed(status, err, stage::work);
  }
  done.text = std::move(to.text);
  return done;
}

result<token_list> generated_ids(bitnet_session* session, const token_list& prompt,
                                 bitnet_generation how) {
  token_list ids;
  bitnet_generation_result done{};
  library_error err;
  const bitnet_status status = generate_into(ids, session, prompt, how, done, err);
  if (status == BITNET_CANCELLED || done.stop_reason == BITNET_STOP_CANCELLED)
    return fail(exit_code::interrupted, "interrupted");
  if (status != BITNET_OK) return failed(status, err, stage::work);
  return ids;
}

const char* stop_name(uint32_t reason) {
  switch (reason) {
    case BITNET_STOP_LENGTH:
      return "length";
    case BITNET_STOP_EOS:
      return "eos";
    case BITNET_STOP_STRING:
      return "string";
    case BITNET_STOP_TOKEN:
      return "token";
    case BITNET_STOP_CONTEXT:
      return "context";
    case BITNET_STOP_CANCELLED:
      return "cancelled";
    case BITNET_STOP_GRAMMAR:
      return "grammar";
    default:
      return "unknown";
  }
}

nlohmann::json timings_json(const bitnet_generation_result& done) {
  nlohmann::json timings;
  add_phase(timings, "prompt", done.n_prompt, done.prompt_ns);
  add_phase(timings, "predicted", done.n_generated, done.generate_ns);
  if (done.n_drafted != 0) {
    timings["draft_n"] = done.n_drafted;
    timings["draft_n_accepted"] = done.n_accepted;
  }
  return timings;
}

std::string timings_line(const bitnet_generation_result& done) {
  return fmt::format("{}, {}", phase_line("prompt", done.n_prompt, done.prompt_ns),
                     phase_line("generated", done.n_generated, done.generate_ns));
}

result<token_list> parse_ids(std::string_view text) {
  token_list ids;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    if (std::string_view(" \t\r\n,[]").find(*at) != std::string_view::npos) {
      ++at;
      continue;
    }
    bitnet_token id = 0;
    const auto [rest, error] = std::from_chars(at, end, id);
    const bool ends =
        rest == end || std::string_view(" \t\r\n,]").find(*rest) != std::string_view::npos;
    if (error != std::errc{} || id < 0 || !ends) {
      const std::string_view found(at,
                                   std::min<std::size_t>(20, static_cast<std::size_t>(end - at)));
      return fail(exit_code::usage,
                  fmt::format("expects token ids such as \"1 2 3\", found '{}'", found));
    }
    ids.push_back(id);
    at = rest;
  }
  return ids;
}

}  // namespace bitnet::host
