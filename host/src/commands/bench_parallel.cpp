// bitnet bench --parallel: measures concurrent requests that share each read of the weights.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <unordered_map>

#include "basic/output.hpp"
#include "commands/bench_facts.hpp"
#include "commands/commands.hpp"
#include "commands/gated.hpp"
#include "measure/token_times.hpp"
#include "process/interrupt.hpp"
#include "text/printable.hpp"

namespace bitnet::host {
namespace {

struct parallel_test {
  uint32_t n_parallel, n_prompt, n_gen, n_shared;

  [[nodiscard]] std::string name() const {  // as in llama-bench: pp512+tg128
    std::string text = fmt::format("pp{}+tg{}", n_prompt, n_gen);
    if (n_shared != 0) text += fmt::format(" shared {}", n_shared);
    return text;
  }
};

// A sample: the results of requests that ran at the same time.
struct parallel_sample {
  uint64_t ns = 0;  // from the first submission to the last token
  std::vector<token_times> times;
  uint64_t n_cached = 0, n_recomputed = 0, n_preemptions = 0;
  uint64_t steps = 0, steps_ns = 0;
};

struct parallel_measurement {
  explicit parallel_measurement(const parallel_test& test) : what(test) {}

  parallel_test what;
  std::vector<uint64_t> samples_ns;
  std::vector<double> decode_rates;       // of samples in which all generated together
  std::vector<double> waits_ms, gaps_ms;  // of all requests in all samples
  uint64_t n_cached = 0, n_recomputed = 0, n_preemptions = 0, steps = 0, steps_ns = 0;

  void add(const parallel_sample& one) {
    samples_ns.push_back(one.ns);
    if (const auto rate = rate_together(one.times)) decode_rates.push_back(*rate);
    for (const token_times& times : one.times) {
      if (const auto ms = first_ms(times)) waits_ms.push_back(*ms);
      add_between_ms(times, gaps_ms);
    }
    n_cached += one.n_cached;
    n_recomputed += one.n_recomputed;
    n_preemptions += one.n_preemptions;
    steps += one.steps;
    steps_ns += one.steps_ns;
  }

  [[nodiscard]] std::vector<double> rates() const {  // generated tokens per second
    std::vector<double> out;
    out.reserve(samples_ns.size());
    for (const uint64_t ns : samples_ns)
      out.push_back(double{1e9} * what.n_parallel * what.n_gen / static_cast<double>(ns));
    return out;
  }
  [[nodiscard]] uint64_t prompt_tokens() const {
    return uint64_t{what.n_parallel} * what.n_prompt * samples_ns.size();
  }
  // A step reads the weights once, for a token of each request. 0: unknown.
  [[nodiscard]] double gbps(double bytes_per_step) const {
    if (decode_rates.empty()) return 0;
    return median(decode_rates) / what.n_parallel * bytes_per_step / 1e9;
  }
};

// ---- what is asked for -------------------------------------------------------------------------

result<void> check_tests(const invocation& in, const std::vector<uint32_t>& prompts,
                         const std::vector<uint32_t>& gens) {
  if (in.set.flagged("n-depth"))
    return fail(exit_code::usage,
                "--n-depth is of one session; with --parallel make --n-prompt longer");
  if (in.set.flagged("kernel-times") && in.set.flag("kernel-times"))
    return fail(exit_code::usage, "--kernel-times is of one session; with --parallel leave it out");
  if (std::ranges::min(prompts) == 0 || std::ranges::min(gens) == 0)
    return fail(exit_code::usage,
                "with --parallel each request has a prompt and generates: --n-prompt and --n-gen "
                "are at least 1");
  const uint32_t shortest = std::ranges::min(prompts);
  if (in.set.integer("shared-prefix") > shortest)
    return fail(exit_code::usage,
                fmt::format("--shared-prefix {} is longer than a prompt of {} tokens; choose a "
                            "larger --n-prompt",
                            in.set.integer("shared-prefix"), shortest));
  return {};
}

// Ordered by the number of concurrent requests, since a scheduler is opened for each number.
result<std::vector<parallel_test>> parallel_tests_of(const invocation& in) {
  const auto requests = counts(in.set, "parallel", "requests", 1, most_parallel);
  if (!requests) return std::unexpected(requests.error());
  const auto prompts = token_counts(in.set, "n-prompt");
  if (!prompts) return std::unexpected(prompts.error());
  const auto gens = token_counts(in.set, "n-gen");
  if (!gens) return std::unexpected(gens.error());
  if (auto ok = check_tests(in, *prompts, *gens); !ok) return std::unexpected(ok.error());
  const auto shared = static_cast<uint32_t>(in.set.integer("shared-prefix"));
  std::vector<parallel_test> out;
  for (const uint32_t n : *requests)
    for (const uint32_t n_prompt : *prompts)
      for (const uint32_t n_gen : *gens) out.push_back({n, n_prompt, n_gen, shared});
  return out;
}

// ---- a run -------------------------------------------------------------------------------------

uint64_t now_ns() {
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

std::unexpected<failure> stopped_by_user() {
  return fail(exit_code::interrupted, "interrupted");
}

// Submits the requests of a test to a scheduler and reads their events.
class request_reader {
 public:
  request_reader(bitnet_scheduler* scheduler, const parallel_test& what)
      : scheduler_(scheduler), what_(what), how_(what.n_gen) {}

  result<parallel_sample> run(const std::vector<token_list>& prompts) {
    auto before = scheduler_report(scheduler_);
    if (!before) return std::unexpected(before.error());
    const uint64_t begin = now_ns();
    for (const token_list& prompt : prompts)
      if (auto ok = submit(prompt); !ok) return std::unexpected(ok.error());
    if (auto ok = read(); !ok) return std::unexpected(ok.error());
    sample_.ns = now_ns() - begin;
    auto after = report_of_end(ended_in(*before) + prompts.size());
    if (!after) return std::unexpected(after.error());
    sample_.steps = counted("steps", *before, *after);
    sample_.steps_ns = counted("step_ns", *before, *after);
    return std::move(sample_);
  }

 private:
  static uint64_t counted(const char* what, const nlohmann::json& before,
                          const nlohmann::json& after) {
    return after.value(what, uint64_t{0}) - before.value(what, uint64_t{0});
  }

  static uint64_t ended_in(const nlohmann::json& report) {
    return report.value("choices", nlohmann::json::object()).value("length", uint64_t{0});
  }

  // Waits until the report counts the last step, whose events come earlier.
  result<nlohmann::json> report_of_end(uint64_t n_ended) {
    constexpr std::chrono::microseconds pause(100);
    while (true) {
      auto report = scheduler_report(scheduler_);
      if (!report || ended_in(*report) >= n_ended) return report;
      if (interrupt::requested()) return stopped_by_user();
      std::this_thread::sleep_for(pause);
    }
  }

  result<void> submit(const token_list& prompt) {
    bitnet_request_options options{};
    bitnet_request_defaults(&options, sizeof options);
    options.prompt = prompt.data();
    options.n_prompt = prompt.size();
    options.generation = &how_.options();
    options.client = sample_.times.size();
    sample_.times.push_back({now_ns(), {}, 0});
    sample_.times.back().tokens_ns.reserve(what_.n_gen);
    library_error err;
    bitnet_request* request = nullptr;
    const bitnet_status status = bitnet_request_submit(scheduler_, &options, &request, &err);
    if (status != BITNET_OK) return failed(status, err, stage::work);
    index_.emplace(request, requests_.size());
    requests_.emplace_back(request);
    return {};
  }

  result<void> read() {
    library_error err;
    while (n_ended_ < requests_.size()) {
      bitnet_request* ready = nullptr;
      const bitnet_status status = bitnet_scheduler_wait(scheduler_, 0, &ready, &err);
      if (status == BITNET_OK) {
        if (auto ok = take(ready); !ok) return ok;
      } else if (status != BITNET_TIMEOUT) {
        return failed(status, err, stage::work);
      } else if (!interrupt::wait_readable(bitnet_scheduler_descriptor(scheduler_))) {
        return stopped_by_user();
      }
    }
    return {};
  }

  result<void> take(bitnet_request* request) {
    bitnet_event e{};
    e.struct_size = sizeof e;
    library_error err;
    const bitnet_status status = bitnet_request_next(request, 0, &e, &err);
    if (status != BITNET_OK) return failed(status, err, stage::work);
    token_times& times = sample_.times[index_.at(request)];
    if (e.kind == BITNET_EVENT_TEXT) {
      if (e.token >= 0) times.tokens_ns.push_back(now_ns());
      return {};
    }
    ++n_ended_;
    if (e.kind == BITNET_EVENT_FAILED)
      return fail(exit_code_of(e.status, stage::work), std::string(e.message.data, e.message.size));
    if (times.tokens_ns.size() != what_.n_gen)
      return fail(exit_code::failure,
                  fmt::format("a request gave {} tokens in place of {}; nothing can be said of "
                              "its speed",
                              times.tokens_ns.size(), what_.n_gen));
    times.generate_ns = e.generate_ns;
    sample_.n_cached += e.n_cached;
    sample_.n_recomputed += e.n_recomputed;
    sample_.n_preemptions += e.preemptions;
    return {};
  }

  bitnet_scheduler* scheduler_;
  parallel_test what_;
  greedy how_;
  parallel_sample sample_;
  std::vector<request_handle> requests_;
  std::unordered_map<const bitnet_request*, std::size_t> index_;
  std::size_t n_ended_ = 0;
};

// Text after the shared prefix is new in each repetition, else the scheduler would reuse it.
std::vector<token_list> prompts_of(const parallel_test& what, const token_list& shared,
                                   uint32_t n_vocab, std::mt19937& random) {
  std::vector<token_list> out;
  for (uint32_t i = 0; i < what.n_parallel; ++i) {
    token_list& one = out.emplace_back(shared);
    const token_list rest = random_tokens(random, what.n_prompt - shared.size(), n_vocab);
    one.insert(one.end(), rest.begin(), rest.end());
  }
  return out;
}

// Runs all repetitions of a test. Returns the exit code of what ended them; `m` has the samples so
// far.
result<int> repeat(const invocation& in, bitnet_scheduler* scheduler, uint32_t n_vocab,
                   std::mt19937& random, parallel_measurement& m) {
  const interrupt::scope until_measured;
  const token_list shared = random_tokens(random, m.what.n_shared, n_vocab);
  const int64_t repetitions = in.set.integer("repetitions");
  for (int64_t i = in.set.flag("warmup") ? -1 : 0; i < repetitions; ++i) {
    auto sample =
        request_reader(scheduler, m.what).run(prompts_of(m.what, shared, n_vocab, random));
    if (!sample && sample.error().exit_code == exit_code::interrupted)
      return exit_code::interrupted;
    if (!sample) return std::unexpected(sample.error());
    if (i >= 0) m.add(*sample);
  }
  return exit_code::ok;
}

result<int> measure_parallel(const invocation& in, bitnet_model* model, uint32_t n_vocab,
                             uint32_t context, std::vector<parallel_measurement>& all) {
  std::mt19937 random(1);
  scheduler_handle scheduler;
  uint32_t opened_for = 0;
  for (parallel_measurement& m : all) {
    if (m.what.n_parallel != opened_for) {
      scheduler.reset();  // frees memory for the next one
      auto opened = open_scheduler(in, model, context, m.what.n_parallel);
      if (!opened) return std::unexpected(opened.error());
      scheduler = *std::move(opened);
      opened_for = m.what.n_parallel;
    }
    auto ended = repeat(in, scheduler.get(), n_vocab, random, m);
    if (!ended || *ended != exit_code::ok) return ended;
  }
  return exit_code::ok;
}

// Bytes of weights that a step of one token reads, by the kernels' counts; 0: not counted.
result<double> bytes_of_step(bitnet_session* session, uint32_t n_vocab) {
  constexpr uint32_t n_steps = 4;
  std::mt19937 random(1);
  const token_list prompt = random_tokens(random, 1, n_vocab);
  const greedy how(n_steps);
  const interrupt::scope until_generated(session);
  auto before = session_report(session);
  if (!before) return std::unexpected(before.error());
  bitnet_generation_result out{};
  out.struct_size = sizeof out;
  library_error err;
  const bitnet_status status =
      bitnet_generate(session, prompt.data(), prompt.size(), &how.options(), &out, &err);
  if (status == BITNET_CANCELLED || out.stop_reason == BITNET_STOP_CANCELLED)
    return stopped_by_user();
  if (status != BITNET_OK) return failed(status, err, stage::work);
  auto after = session_report(session);
  if (!after) return std::unexpected(after.error());
  kernel_uses used;
  add_difference(used, uses_in(*before), uses_in(*after));
  return static_cast<double>(bytes_of(used)) / n_steps;
}

// ---- what is printed ---------------------------------------------------------------------------

constexpr double shown_percents[] = {50, 95, 99};

// Adds flat members, so that CSV has them.
void add_percentiles(ordered_json& to, const std::string& name, const std::vector<double>& ms) {
  if (ms.empty()) return;
  for (const double percent : shown_percents)
    to[fmt::format("{}_ms_p{}", name, percent)] = percentile(ms, percent);
}

ordered_json parallel_row(const parallel_measurement& m, double bytes_per_step, const facts& f,
                          const ceilings& limit) {
  const std::vector<double> rates = m.rates();
  ordered_json out = f.json();
  out["n_parallel"] = m.what.n_parallel;
  out["n_prompt"] = m.what.n_prompt;
  out["n_gen"] = m.what.n_gen;
  out["n_shared_prefix"] = m.what.n_shared;
  out["avg_ns"] = mean({m.samples_ns.begin(), m.samples_ns.end()});
  out["avg_ts"] = mean(rates);
  out["stddev_ts"] = deviation(rates);
  out["median_ts"] = median(rates);
  out["samples_ns"] = m.samples_ns;
  out["samples_ts"] = rates;
  out["test"] = m.what.name();
  out.update(f.own_json());
  if (!m.decode_rates.empty()) {
    out["median_decode_ts"] = median(m.decode_rates);
    out["samples_decode_ts"] = m.decode_rates;
  }
  add_percentiles(out, "first_token", m.waits_ms);
  add_percentiles(out, "between_tokens", m.gaps_ms);
  out["prompt_tokens"] = m.prompt_tokens();
  out["cached_tokens"] = m.n_cached;
  out["preemptions"] = m.n_preemptions;
  out["recomputed_tokens"] = m.n_recomputed;
  out["steps"] = m.steps;
  out["steps_ns"] = m.steps_ns;
  if (bytes_per_step != 0) out["bytes_per_step"] = bytes_per_step;
  if (const double gbps = m.gbps(bytes_per_step); gbps != 0) {
    out["gbps"] = gbps;
    if (limit.known()) out["pct_of_stream"] = 100 * gbps / limit.best();
  }
  if (limit.known()) out["stream"] = limit.json();
  out["version"] = bitnet_version();
  if (!f.gates.is_null()) out["gates"] = f.gates;
  return out;
}

std::string percentiles_text(const std::vector<double>& ms) {
  std::string out;
  for (const double percent : shown_percents)
    if (!ms.empty())
      out += fmt::format("{}{:.1f}", out.empty() ? "" : " ", percentile(ms, percent));
  return out;
}

std::string parallel_table(const std::vector<parallel_measurement>& all, double bytes_per_step,
                           const facts& f, const ceilings& limit) {
  std::string out =
      "| model | size | params | backend | threads | parallel | test | t/s | median | t/s decoding "
      "| "
      "first token, ms: p50 p95 p99 | between tokens, ms | cached | GB/s | % of stream |\n"
      "| --- | ---: | ---: | --- | ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | "
      "---: | ---: |\n";
  for (const parallel_measurement& m : all) {
    const std::vector<double> rates = m.rates();
    const double gbps = m.gbps(bytes_per_step);
    out += fmt::format(
        "{} {} | {} | {:.2f} ± {:.2f} | {:.2f} | {} | {} | {} | {:.0f}% | {} | {} |\n", f.cells(),
        m.what.n_parallel, m.what.name(), mean(rates), deviation(rates), median(rates),
        m.decode_rates.empty() ? "" : fmt::format("{:.2f}", median(m.decode_rates)),
        percentiles_text(m.waits_ms), percentiles_text(m.gaps_ms),
        100 * static_cast<double>(m.n_cached) / static_cast<double>(m.prompt_tokens()),
        gbps != 0 ? fmt::format("{:.1f}", gbps) : "",
        gbps != 0 && limit.known() ? fmt::format("{:.0f}", 100 * gbps / limit.best()) : "");
  }
  out += "\n";
  if (limit.known()) out += limit.line();
  out += f.lines();
  for (const parallel_measurement& m : all)
    if (m.n_preemptions != 0)
      out += fmt::format("{} requests at once: {} preemptions, {} tokens computed again\n",
                         m.what.n_parallel, m.n_preemptions, m.n_recomputed);
  return out + fmt::format("build: bitnet {}\n", bitnet_version());
}

result<void> print_parallel(const invocation& in, const std::vector<parallel_measurement>& all,
                            double bytes_per_step, const facts& f, const ceilings& limit) {
  std::vector<ordered_json> rows;
  rows.reserve(all.size());
  for (const parallel_measurement& m : all)
    rows.push_back(parallel_row(m, bytes_per_step, f, limit));
  const std::string& format = in.set.text("output-format");
  auto done =
      print(format == "md" ? text::printable_lines(parallel_table(all, bytes_per_step, f, limit))
                           : rows_as(format, rows));
  return done ? write_report(in, rows) : done;
}

}  // namespace

result<int> bench_parallel(const invocation& in, const std::string& wanted, gates& limits) {
  if (limits.repeats() != 0)
    return fail(exit_code::usage,
                "--check-determinism is of one session; with --parallel leave it out");
  const auto tests = parallel_tests_of(in);
  if (!tests) return std::unexpected(tests.error());
  // A step has at most as many tokens as a context, so a short context would keep requests from
  // running together.
  uint32_t context = step_size(in.set);
  for (const parallel_test& t : *tests) context = std::max(context, t.n_prompt + t.n_gen + 1);

  auto opened = open_bench(in, wanted, context, false);
  if (!opened) return std::unexpected(opened.error());
  facts& f = opened->about;

  ceilings limit(in.set.integer("ceiling-mb"), f.device, static_cast<uint32_t>(f.threads));
  std::vector<parallel_measurement> measured(tests->begin(), tests->end());
  const doctor::system_tree system;
  const auto before = measure::load_now(system);
  auto ended = measure_parallel(in, opened->all.model.get(), f.model.n_vocab, context, measured);
  if (!ended) return std::unexpected(ended.error());
  f.load = measure::load_between(before, measure::load_now(system));
  limits.end_of_work();
  for (const parallel_measurement& m : measured)
    if (*ended == exit_code::ok) limits.take_speed(median(m.rates()));
  if (limits.any()) f.gates = gates_json(limits.results());
  f.pages = large_pages_now();
  limit.measure_again();
  // Measure this last, when many steps have brought the weights into their final form.
  auto bytes_per_step = bytes_of_step(opened->all.session.get(), f.model.n_vocab);
  if (!bytes_per_step) return std::unexpected(bytes_per_step.error());
  std::erase_if(measured, [](const parallel_measurement& m) { return m.samples_ns.empty(); });
  if (!measured.empty()) {
    if (auto done = print_parallel(in, measured, *bytes_per_step, f, limit); !done)
      return std::unexpected(done.error());
  }
  return *ended == exit_code::ok ? judged(in, limits) : ended;
}

}  // namespace bitnet::host
