// bitnet bench: how fast a model runs here, beside what the memory gives in the same minute.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <span>

#include "commands/bench_facts.hpp"
#include "commands/commands.hpp"
#include "commands/gated.hpp"
#include "interrupt.hpp"
#include "library/generation.hpp"
#include "terminal/output.hpp"
#include "text/printable.hpp"

namespace bitnet::host {
namespace {

struct test {
  uint32_t n_prompt, n_gen, depth;

  [[nodiscard]] uint32_t tokens() const { return n_prompt + n_gen; }
  // llama-bench's: pp512, tg128 @ d2048
  [[nodiscard]] std::string name() const {
    std::string text = n_gen == 0 ? fmt::format("pp{}", n_prompt) : fmt::format("tg{}", n_gen);
    if (depth != 0) text += fmt::format(" @ d{}", depth);
    return text;
  }
};

struct measurement {
  test what;
  std::vector<uint64_t> samples_ns;
  kernel_uses kernels;  // of all samples

  [[nodiscard]] std::vector<double> rates() const {  // tokens per second
    std::vector<double> out;
    out.reserve(samples_ns.size());
    for (const uint64_t ns : samples_ns)
      out.push_back(what.tokens() * 1e9 / static_cast<double>(ns));
    return out;
  }
  [[nodiscard]] double total_ns() const {
    return static_cast<double>(std::accumulate(samples_ns.begin(), samples_ns.end(), uint64_t{0}));
  }
  // Of weights; a prompt reads them once for many tokens.
  [[nodiscard]] double bytes_per_token() const {
    return static_cast<double>(bytes_of(kernels)) /
           (static_cast<double>(samples_ns.size()) * what.tokens());
  }
  [[nodiscard]] double gbps() const {
    return bytes_per_token() * what.tokens() * static_cast<double>(samples_ns.size()) / total_ns();
  }
};

result<std::vector<test>> tests_of(const invocation& in) {
  auto prompts = token_counts(in.set, "n-prompt");
  if (!prompts) return std::unexpected(prompts.error());
  auto gens = token_counts(in.set, "n-gen");
  if (!gens) return std::unexpected(gens.error());
  auto depths = token_counts(in.set, "n-depth");
  if (!depths) return std::unexpected(depths.error());
  std::vector<test> out;
  for (const uint32_t depth : *depths) {
    for (const uint32_t n : *prompts)
      if (n != 0) out.push_back({n, 0, depth});
    for (const uint32_t n : *gens)
      if (n != 0) out.push_back({0, n, depth});
  }
  if (out.empty())
    return fail(exit_code::usage, "nothing to measure: --n-prompt and --n-gen are 0");
  return out;
}

// Runs tests in one session. Every call is given the same random tokens.
class runner {
 public:
  runner(bitnet_session* session, const bitnet_model_info& model, const settings& set,
         const bitnet_speculation& ahead)
      : session_(session),
        ahead_(ahead),
        full_head_(set.text("head") == "full"),
        starts_anew_(set.integer("sliding-window") != 0),
        logits_(model.n_vocab) {
    std::mt19937 random(1);
    ids_ = random_tokens(random, bitnet_session_capacity(session), model.n_vocab);
  }

  // Nanoseconds of one run, counted into `to` unless it is a warm-up.
  result<void> run(measurement& to, bool counts) {
    if (auto done = fill(to.what.depth); !done) return done;
    auto before = session_report(session_);
    if (!before) return std::unexpected(before.error());
    auto ns = full_head_ ? with_all_logits(to.what) : greedily(to.what);
    if (!ns) return std::unexpected(ns.error());
    auto after = session_report(session_);
    if (!after) return std::unexpected(after.error());
    if (!counts) return {};
    to.samples_ns.push_back(*ns);
    add_difference(to.kernels, uses_in(*before), uses_in(*after));
    return {};
  }

 private:
  static result<void> stopped() { return fail(exit_code::interrupted, "interrupted"); }

  result<void> eval(std::size_t at, std::size_t n, std::span<float> logits) {
    library_error err;
    const bitnet_status status =
        bitnet_session_eval(session_, ids_.data() + at, n, 0, logits.data(), logits.size(), &err);
    if (status == BITNET_CANCELLED) return stopped();
    if (status != BITNET_OK) return failed(status, err, stage::work);
    return {};
  }

  // The first `depth` tokens, whatever an earlier run left.
  result<void> fill(uint32_t depth) {
    library_error err;
    // Going back behind a window would put off its evaluation into what is timed.
    const uint64_t kept =
        starts_anew_ ? 0 : std::min<uint64_t>(depth, bitnet_session_length(session_));
    const bitnet_status status = bitnet_session_truncate(session_, kept, &err);
    if (status != BITNET_OK) return failed(status, err, stage::work);
    return kept == depth ? result<void>{} : eval(kept, depth - kept, {});
  }

  result<uint64_t> with_all_logits(const test& what) {
    const auto start = std::chrono::steady_clock::now();
    const std::size_t step = what.n_gen == 0 ? what.n_prompt : 1;
    for (std::size_t at = 0; at < what.tokens(); at += step)
      if (auto done = eval(what.depth + at, step, logits_); !done)
        return std::unexpected(done.error());
    return static_cast<uint64_t>((std::chrono::steady_clock::now() - start).count());
  }

  // A prompt is timed to its end; generating, from the token before the first to the last.
  result<uint64_t> greedily(const test& what) {
    const greedy how(what.n_gen == 0 ? 1 : what.n_gen, &ahead_);
    bitnet_generation_result out{};
    out.struct_size = sizeof out;
    library_error err;
    const bitnet_status status =
        bitnet_generate(session_, ids_.data() + what.depth, what.n_gen == 0 ? what.n_prompt : 1,
                        &how.options(), &out, &err);
    if (status != BITNET_OK) return failed(status, err, stage::work);
    if (out.stop_reason == BITNET_STOP_CANCELLED) return std::unexpected(stopped().error());
    return what.n_gen == 0 ? out.prompt_ns : out.prompt_ns + out.generate_ns;
  }

  bitnet_session* session_;
  const bitnet_speculation ahead_;
  bool full_head_, starts_anew_;
  std::vector<float> logits_;
  token_list ids_;
};

ordered_json as_json(const measurement& m, const facts& f, const ceilings& limit) {
  const std::vector<double> rates = m.rates();
  ordered_json out = f.json();
  out["test"] = m.what.name();
  out["n_prompt"] = m.what.n_prompt;
  out["n_gen"] = m.what.n_gen;
  out["n_depth"] = m.what.depth;
  out["head"] = f.head;
  if (!f.tuning.empty()) out["tuning"] = f.tuning;
  out["avg_ns"] = m.total_ns() / static_cast<double>(m.samples_ns.size());
  out["avg_ts"] = mean(rates);
  out["stddev_ts"] = deviation(rates);
  out["median_ts"] = median(rates);
  out["samples_ns"] = m.samples_ns;
  out["samples_ts"] = rates;
  if (m.what.n_gen != 0) {
    out["bytes_per_token"] = m.bytes_per_token();
    out["gbps"] = m.gbps();
    if (limit.known()) out["pct_of_stream"] = 100 * m.gbps() / limit.best();
  }
  if (limit.known()) {
    out["stream"] = limit.json();
  }
  out["kernels"] = ordered_json::array();
  for (const auto& [id, use] : m.kernels) {
    ordered_json one = {{"id", id}, {"calls", use.calls}, {"bytes", use.bytes}};
    if (use.time_ns != 0) one["time_ns"] = use.time_ns;
    if (use.time_ns != 0 && use.bytes != 0 && m.what.n_gen != 0)
      one["gbps"] = static_cast<double>(use.bytes) / static_cast<double>(use.time_ns);
    out["kernels"].push_back(one);
  }
  out["version"] = bitnet_version();
  if (!f.gates.is_null()) out["gates"] = f.gates;
  return out;
}

std::string as_markdown(const std::vector<measurement>& all, const facts& f,
                        const ceilings& limit) {
  std::string out =
      "| model | size | params | backend | threads | test | t/s | median | GB/s | % of stream |\n"
      "| --- | ---: | ---: | --- | ---: | --- | ---: | ---: | ---: | ---: |\n";
  for (const measurement& m : all) {
    const std::vector<double> rates = m.rates();
    const bool gen = m.what.n_gen != 0;
    out += fmt::format(
        "{} {} | {:.2f} ± {:.2f} | {:.2f} | {} | {} |\n", f.cells(), m.what.name(), mean(rates),
        deviation(rates), median(rates), gen ? fmt::format("{:.1f}", m.gbps()) : "",
        gen && limit.known() ? fmt::format("{:.0f}", 100 * m.gbps() / limit.best()) : "");
  }
  out += "\n";
  if (limit.known()) out += limit.line();
  std::string kernels;
  kernel_uses seen;
  for (const measurement& m : all) add_difference(seen, {}, m.kernels);
  for (const auto& [id, use] : seen) kernels += (kernels.empty() ? "" : " ") + id;
  out += f.lines();
  out += fmt::format("kernels: {}\nbuild: bitnet {}\n", kernels, bitnet_version());
  return out;
}

std::string formatted(const std::string& format, const std::vector<measurement>& all,
                      const facts& f, const ceilings& limit) {
  if (format == "md") return text::printable_lines(as_markdown(all, f, limit));
  std::vector<ordered_json> rows;
  rows.reserve(all.size());
  for (const measurement& m : all) rows.push_back(as_json(m, f, limit));
  return rows_as(format, rows);
}

// What the gates ask of tests that all ran: their speeds, and their tokens again.
result<void> take_tests(const invocation& in, gates& limits, const engine& on,
                        const bitnet_model_info& model, const std::vector<measurement>& all) {
  std::mt19937 random(1);
  const token_list ids =
      random_tokens(random, bitnet_session_capacity(on.session.get()), model.n_vocab);
  for (const measurement& m : all) {
    limits.take_speed(median(m.rates()));
    const auto n_prompt =
        static_cast<std::ptrdiff_t>(std::max(m.what.depth + m.what.n_prompt, uint32_t{1}));
    if (auto done = take_repeats(in, limits, on.session.get(),
                                 {ids.begin(), ids.begin() + n_prompt}, std::max(m.what.n_gen, 1U));
        !done)
      return done;
  }
  return {};
}

// Runs all tests; returns the exit code of what ended them, with the samples that there are.
result<int> measure(const invocation& in, const engine& on, const bitnet_model_info& model,
                    std::vector<measurement>& all) {
  const interrupt::scope until_measured(on.session.get());
  auto ahead = given_speculation(in.set);
  if (!ahead) return std::unexpected(ahead.error());
  ahead->draft = on.draft.get();
  runner runs(on.session.get(), model, in.set, *ahead);
  const int64_t repetitions = in.set.integer("repetitions");
  for (measurement& m : all) {
    for (int64_t i = in.set.flag("warmup") ? -1 : 0; i < repetitions; ++i) {
      auto done = interrupt::requested() ? result<void>(fail(exit_code::interrupted, "interrupted"))
                                         : runs.run(m, i >= 0);
      if (!done && done.error().exit_code == exit_code::interrupted) return exit_code::interrupted;
      if (!done) return std::unexpected(done.error());
    }
  }
  return exit_code::ok;
}

}  // namespace

result<int> bench_command(const invocation& in) {
  gates limits(in.set);
  const bool compares = !in.positionals.empty() && in.positionals.front() == "compare";
  if (compares || in.set.flag("list") || in.set.given("kernel") || in.set.flag("tune"))
    if (auto ok = no_gates(in, "only tests of a model have gates"); !ok)
      return std::unexpected(ok.error());
  if (compares) return bench_compare(in, {in.positionals.begin() + 1, in.positionals.end()});
  if (in.set.flag("force"))
    return fail(exit_code::usage, "--force belongs to `bitnet bench compare A B`");
  const model_and_rest words = split_positionals(in);
  if (!words.rest.empty()) {
    return fail(exit_code::usage,
                fmt::format("unexpected '{}'; bench takes one model", words.rest.front()));
  }
  if (in.set.flag("list")) return list_kernels(in);
  if (in.set.given("kernel")) return bench_kernels(in);
  if (in.set.flag("tune")) return bench_tuning(in, words.model);
  if (in.set.given("parallel")) return bench_parallel(in, words.model, limits);
  if (in.set.given("shared-prefix"))
    return fail(exit_code::usage,
                "--shared-prefix says what the prompts of several requests begin with; give "
                "--parallel, too");
  auto tests = tests_of(in);
  if (!tests) return std::unexpected(tests.error());
  const auto ahead = given_speculation(in.set);
  if (!ahead) return std::unexpected(ahead.error());
  if (ahead->type != BITNET_SPECULATION_NONE && in.set.text("head") == "full")
    return fail(exit_code::usage,
                "--head full times steps of one token each: leave --spec-type and --model-draft");
  uint32_t context = 0;
  for (const test& t : *tests) context = std::max(context, t.depth + t.tokens() + 1);

  auto opened = open_bench(in, words.model, context, in.set.flag("kernel-times"));
  if (!opened) return std::unexpected(opened.error());
  facts& f = opened->about;

  ceilings limit(in.set.integer("ceiling-mb"), f.device, static_cast<uint32_t>(f.threads));
  std::vector<measurement> measured;
  for (const test& t : *tests) measured.push_back({t, {}, {}});
  auto ended = measure(in, opened->all, f.model, measured);
  if (!ended) return std::unexpected(ended.error());
  limits.end_of_work();
  if (const auto report = session_report(opened->all.session.get()))
    if (const std::string line = speculation_line(*report); !line.empty()) in.out.note(line);
  f.pages = large_pages_now();
  limit.measure_again();
  if (*ended == exit_code::ok)
    if (auto ok = take_tests(in, limits, opened->all, f.model, measured); !ok)
      return std::unexpected(ok.error());
  if (limits.any()) f.gates = gates_json(limits.results());
  std::erase_if(measured, [](const measurement& m) { return m.samples_ns.empty(); });
  if (!measured.empty()) {
    if (auto done = print(formatted(in.set.text("output-format"), measured, f, limit)); !done)
      return std::unexpected(done.error());
  }
  return *ended == exit_code::ok ? judged(in, limits) : ended;
}

}  // namespace bitnet::host
