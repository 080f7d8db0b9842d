// bench serve URL: measures latency and throughput of a server of OpenAI's API.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <random>
#include <system_error>

#include "basic/output.hpp"
#include "basic/text_input.hpp"
#include "commands/bench_facts.hpp"
#include "commands/commands.hpp"
#include "commands/gated.hpp"
#include "load/load_run.hpp"
#include "load/server_address.hpp"
#include "process/interrupt.hpp"
#include "text/printable.hpp"

namespace bitnet::host {
namespace {

constexpr uint32_t most_streams = 1024;
constexpr uint32_t most_served_requests = 1000;  // per level; `bench compare` reads that many
constexpr double served_percents[] = {50, 95, 99};

// Latency limits that a request must meet to count as goodput.
struct service_level {
  double first_ms = 0, token_ms = 0;

  [[nodiscard]] bool is_met(const load::request_times& one) const {
    const auto first = one.first_ms();
    return one.failure.empty() && first && *first <= first_ms &&
           one.token_ms().value_or(0) <= token_ms;
  }
};

struct served_level {
  load::load_setup setup;
  load::load_outcome outcome;
  measure::machine_load machine;
};

// ---- what is asked for -------------------------------------------------------------------------

// The key of --api-key or of its file, one line; "": none.
result<std::string> key_of(const invocation& in) {
  constexpr std::size_t longest_file = 65'536;
  std::string key = in.set.list("api-key").empty() ? "" : in.set.list("api-key").front();
  if (const std::string& file = in.set.text("api-key-file"); key.empty() && !file.empty()) {
    auto text = read_text_file(file, longest_file);
    if (!text) return fail(exit_code::usage, text.error().message);
    key = text->substr(0, text->find('\n'));
  }
  const bool is_plain = std::ranges::all_of(key, [](char c) { return c > ' ' && c < '\x7f'; });
  if (!is_plain)
    return fail(exit_code::usage, "the key has blanks or characters that no head of HTTP may have");
  return key;
}

result<load::load_setup> setup_of(const invocation& in, const std::string& url) {
  auto address = load::parse_address(url);
  if (!address) return fail(exit_code::usage, address.error());
  auto key = key_of(in);
  if (!key) return std::unexpected(key.error());
  load::load_setup out;
  out.to = *std::move(address);
  out.key = *std::move(key);
  out.model = in.set.flagged("model") ? in.set.text("model") : "";
  out.chats = in.set.text("endpoint") == "chat";
  out.ignores_eos = in.set.flag("ignore-eos");
  out.n_shared = static_cast<uint32_t>(in.set.integer("shared-prefix"));
  return out;
}

// A level per combination of streams, prompt length and number of tokens.
result<std::vector<load::load_setup>> levels_of(const invocation& in,
                                                const load::load_setup& setup) {
  std::vector<uint32_t> streams = {1, 4, 16};
  if (in.set.given("parallel")) {
    auto given = counts(in.set, "parallel", "streams", 1, most_streams);
    if (!given) return std::unexpected(given.error());
    streams = *std::move(given);
  }
  const auto prompts = counts(in.set, "n-prompt", "words", 1, longest_bench_test);
  if (!prompts) return std::unexpected(prompts.error());
  const auto gens = counts(in.set, "n-gen", "tokens", 1, longest_bench_test);
  if (!gens) return std::unexpected(gens.error());
  std::random_device chance;  // new prompts: a server may have cached those of an earlier run
  std::vector<load::load_setup> out;
  for (const uint32_t n_prompt : *prompts)
    for (const uint32_t n_gen : *gens)
      for (const uint32_t n : streams) {
        load::load_setup& one = out.emplace_back(setup);
        one.n_streams = n;
        one.n_requests = static_cast<uint32_t>(n * in.set.integer("repetitions"));
        one.n_prompt = n_prompt;
        one.n_gen = n_gen;
        one.seed = chance();
        if (one.n_requests > most_served_requests)
          return fail(exit_code::usage,
                      fmt::format("{} streams with {} requests each are more than {}; choose a "
                                  "smaller -r",
                                  n, in.set.integer("repetitions"), most_served_requests));
      }
  return out;
}

// ---- what is printed ---------------------------------------------------------------------------

std::string served_test(const load::load_setup& setup) {
  std::string out = fmt::format("serve pp{}+tg{}", setup.n_prompt, setup.n_gen);
  if (setup.n_shared != 0) out += fmt::format(" shared {}", setup.n_shared);
  return out;
}

// Times of the answered requests.
struct served_times {
  std::vector<double> first, between, token, all, rates;
  uint64_t n_prompt = 0, n_generated = 0, n_met = 0, n_failed = 0;
};

served_times times_of(const served_level& level, const service_level& wanted) {
  served_times out;
  for (const load::request_times& one : level.outcome.requests) {
    if (!one.failure.empty()) {
      ++out.n_failed;
      continue;
    }
    if (const auto ms = one.first_ms()) out.first.push_back(*ms);
    for (std::size_t i = 1; i < one.pieces_ns.size(); ++i)
      out.between.push_back(static_cast<double>(one.pieces_ns[i] - one.pieces_ns[i - 1]) / 1e6);
    if (const auto ms = one.token_ms()) out.token.push_back(*ms);
    out.all.push_back(one.all_ms());
    out.rates.push_back(static_cast<double>(one.tokens()) / one.all_ms() * 1e3);
    out.n_prompt += one.n_prompt;
    out.n_generated += one.tokens();
    if (wanted.is_met(one)) ++out.n_met;
  }
  return out;
}

void put_percentiles(ordered_json& to, const char* name, const std::vector<double>& ms) {
  if (ms.empty()) return;
  for (const double percent : served_percents)
    to[fmt::format("{}_ms_p{}", name, percent)] = percentile(ms, percent);
}

ordered_json served_row(const served_level& level, const service_level& wanted) {
  const served_times t = times_of(level, wanted);
  const double seconds = static_cast<double>(level.outcome.wall_ns) / 1e9;
  const auto n_answered = static_cast<double>(t.all.size());
  ordered_json out = {{"test", served_test(level.setup)},
                      {"url", "http://" + level.setup.to.url.authority() + level.setup.to.url.path},
                      {"model_type", level.setup.model},
                      {"endpoint", level.setup.chats ? "chat" : "completions"},
                      {"n_parallel", level.setup.n_streams},
                      {"n_prompt_words", level.setup.n_prompt},
                      {"n_gen", level.setup.n_gen},
                      {"n_shared_prefix", level.setup.n_shared},
                      {"requests", level.outcome.requests.size()},
                      {"failed", t.n_failed},
                      {"wall_s", seconds},
                      {"requests_per_s", n_answered / seconds},
                      {"generated_ts", static_cast<double>(t.n_generated) / seconds},
                      {"prompt_tokens", t.n_prompt},
                      {"generated_tokens", t.n_generated}};
  put_percentiles(out, "first_token", t.first);
  put_percentiles(out, "between_tokens", t.between);
  put_percentiles(out, "per_token", t.token);
  put_percentiles(out, "request", t.all);
  out["slo_first_token_ms"] = wanted.first_ms;
  out["slo_per_token_ms"] = wanted.token_ms;
  out["goodput_per_s"] = static_cast<double>(t.n_met) / seconds;
  out["goodput_pct"] =
      100 * static_cast<double>(t.n_met) / static_cast<double>(level.outcome.requests.size());
  out["samples_ts"] = t.rates;
  out["samples_first_token_ms"] = t.first;
  out["samples_per_token_ms"] = t.token;
  out["samples_request_ms"] = t.all;
  out.update(level.machine.json());
  out["version"] = bitnet_version();
  return out;
}

std::string cells_of(const ordered_json& row, const std::string& name) {
  std::string out;
  for (const double percent : served_percents) {
    const auto ms = row.find(fmt::format("{}_ms_p{}", name, percent));
    if (ms != row.end()) out += fmt::format("{}{:.1f}", out.empty() ? "" : " ", ms->get<double>());
  }
  return out;
}

std::string served_table(const std::vector<ordered_json>& rows, const service_level& wanted) {
  std::string out =
      "| model | test | streams | requests | failed | t/s | requests/s | first token, ms: p50 p95 "
      "p99 | between pieces, ms | whole, ms | goodput/s |\n"
      "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n";
  for (const ordered_json& row : rows)
    out += fmt::format("| {} | {} | {} | {} | {} | {:.2f} | {:.2f} | {} | {} | {} | {:.2f} |\n",
                       row["model_type"].get<std::string>(), row["test"].get<std::string>(),
                       row["n_parallel"].get<uint32_t>(), row["requests"].get<uint64_t>(),
                       row["failed"].get<uint64_t>(), row["generated_ts"].get<double>(),
                       row["requests_per_s"].get<double>(), cells_of(row, "first_token"),
                       cells_of(row, "between_tokens"), cells_of(row, "request"),
                       row["goodput_per_s"].get<double>());
  return out + fmt::format(
                   "\ngoodput: requests with a first token within {} ms and each further one "
                   "within {} ms in the mean\n",
                   wanted.first_ms, wanted.token_ms);
}

// ---- all of it ---------------------------------------------------------------------------------

result<served_level> run_level(const invocation& in, const load::load_setup& setup) try {
  const doctor::system_tree system;
  if (in.set.flag("warmup")) {
    load::load_setup warm = setup;
    warm.n_requests = setup.n_streams;
    warm.seed += setup.n_requests;
    (void)load::run_load(warm, interrupt::requested);
  }
  const auto before = measure::load_now(system);
  served_level out{setup, load::run_load(setup, interrupt::requested), {}};
  out.machine = measure::load_between(before, measure::load_now(system));
  return out;
} catch (const std::system_error& e) {
  return fail(exit_code::out_of_memory,
              fmt::format("{} streams need a thread each: {}; choose a smaller --parallel",
                          setup.n_streams, e.code().message()));
}

// Counts how often each failure came.
std::string failures_of(const std::vector<served_level>& levels) {
  std::map<std::string, uint64_t> found;
  for (const served_level& level : levels)
    for (const load::request_times& one : level.outcome.requests)
      if (!one.failure.empty()) ++found[one.failure];
  std::string out;
  for (const auto& [why, n] : found)
    out += fmt::format("{}{} failed: {}", out.empty() ? "" : "; ", n, why);
  return out;
}

result<void> print_levels(const invocation& in, const std::vector<served_level>& levels) {
  const service_level wanted{in.set.real("slo-first-token"), in.set.real("slo-per-token")};
  std::vector<ordered_json> rows;
  rows.reserve(levels.size());
  for (const served_level& level : levels) rows.push_back(served_row(level, wanted));
  const std::string& format = in.set.text("output-format");
  auto done = print(format == "md" ? text::printable_lines(served_table(rows, wanted))
                                   : rows_as(format, rows));
  return done ? write_report(in, rows) : done;
}

}  // namespace

result<int> bench_serve(const invocation& in, const std::vector<std::string>& urls) {
  if (urls.size() != 1)
    return fail(exit_code::usage, "serve takes the address of one server: http://HOST:PORT");
  if (auto ok = no_gates(in, "a server's speed is no limit of this process"); !ok)
    return std::unexpected(ok.error());
  auto setup = setup_of(in, urls.front());
  if (!setup) return std::unexpected(setup.error());
  const auto levels = levels_of(in, *setup);
  if (!levels) return std::unexpected(levels.error());
  const interrupt::scope until_measured;
  if (setup->model.empty()) {
    auto found = load::first_model(setup->to, setup->key, interrupt::requested);
    if (!found) return fail(exit_code::failure, found.error());
    setup->model = *std::move(found);
  }
  std::vector<served_level> measured;
  for (load::load_setup one : *levels) {
    one.model = setup->model;
    auto level = run_level(in, one);
    if (!level) return std::unexpected(level.error());
    if (interrupt::requested()) break;  // cancelled requests have no valid times
    measured.push_back(*std::move(level));
  }
  if (!measured.empty())
    if (auto done = print_levels(in, measured); !done) return std::unexpected(done.error());
  if (interrupt::requested()) return exit_code::interrupted;
  if (const std::string failures = failures_of(measured); !failures.empty())
    return fail(exit_code::failure, failures);
  return exit_code::ok;
}

}  // namespace bitnet::host
