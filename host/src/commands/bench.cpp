// bitnet bench: measures how fast a model runs, and the memory bandwidth in the same minute.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <span>

#include "basic/output.hpp"
#include "commands/bench_results.hpp"
#include "commands/bench_targets.hpp"
#include "commands/commands.hpp"
#include "commands/gated.hpp"
#include "measure/energy.hpp"
#include "measure/number_list.hpp"
#include "model_files/find_model.hpp"
#include "process/interrupt.hpp"
#include "receipts/receipts.hpp"
#include "session/generation.hpp"

namespace bitnet::host {
namespace {

// Parses "512,128": a prompt, and the tokens generated after it.
result<bench_test> pair_of(const std::string& text, uint32_t depth) {
  const auto numbers = measure::number_list(text, 1, longest_bench_test);
  if (!numbers || numbers->size() != 2)
    return fail(exit_code::usage,
                fmt::format("--prompt-gen expects two numbers of tokens from 1 to {}, such as "
                            "512,128; found '{}'",
                            longest_bench_test, text));
  return bench_test{numbers->front(), numbers->back(), depth};
}

result<std::vector<bench_test>> tests_of(const invocation& in) {
  auto prompts = token_counts(in.set, "n-prompt");
  if (!prompts) return std::unexpected(prompts.error());
  auto gens = token_counts(in.set, "n-gen");
  if (!gens) return std::unexpected(gens.error());
  auto depths = token_counts(in.set, "n-depth");
  if (!depths) return std::unexpected(depths.error());
  std::vector<std::string> pairs;
  if (in.set.given("prompt-gen")) pairs = in.set.each_text("prompt-gen");
  std::vector<bench_test> out;
  for (const uint32_t depth : *depths) {
    for (const uint32_t n : *prompts)
      if (n != 0) out.push_back({n, 0, depth});
    for (const uint32_t n : *gens)
      if (n != 0) out.push_back({0, n, depth});
    for (const std::string& text : pairs) {
      const auto both = pair_of(text, depth);
      if (!both) return std::unexpected(both.error());
      out.push_back(*both);
    }
  }
  if (out.empty())
    return fail(exit_code::usage, "nothing to measure: --n-prompt and --n-gen are 0");
  return out;
}

std::string time_now() {
  return fmt::format("{:%FT%TZ}", fmt::gmtime(std::time(nullptr)));
}

// Runs tests in one session. Every run uses the same random tokens.
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

  [[nodiscard]] const measure::energy_meter& energy() const { return energy_; }

  // Runs a test once; unless it is a warm-up, adds its time in nanoseconds to `to`.
  result<void> run(measurement& to, bool counts) {
    if (auto done = fill(to.what.depth); !done) return done;
    auto before = session_report(session_);
    if (!before) return std::unexpected(before.error());
    if (to.begun.empty()) to.begun = time_now();
    energy_.start();
    auto ns = full_head_ ? with_all_logits(to.what) : greedily(to.what);
    if (!ns) return std::unexpected(ns.error());
    const auto joules = energy_.joules();
    auto after = session_report(session_);
    if (!after) return std::unexpected(after.error());
    if (!counts) return {};
    to.samples_ns.push_back(*ns);
    if (joules) to.joules.push_back(*joules);
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

  // Makes the session hold the first `depth` tokens.
  result<void> fill(uint32_t depth) {
    library_error err;
    // With a sliding window, truncating would move evaluation into the timed part, so start anew.
    const uint64_t kept =
        starts_anew_ ? 0 : std::min<uint64_t>(depth, bitnet_session_length(session_));
    const bitnet_status status = bitnet_session_truncate(session_, kept, &err);
    if (status != BITNET_OK) return failed(status, err, stage::work);
    return kept == depth ? result<void>{} : eval(kept, depth - kept, {});
  }

  result<uint64_t> with_all_logits(const bench_test& what) {
    const auto start = std::chrono::steady_clock::now();
    if (what.n_prompt != 0)
      if (auto done = eval(what.depth, what.n_prompt, logits_); !done)
        return std::unexpected(done.error());
    for (std::size_t at = what.n_prompt; at < what.tokens(); ++at)
      if (auto done = eval(what.depth + at, 1, logits_); !done)
        return std::unexpected(done.error());
    return static_cast<uint64_t>((std::chrono::steady_clock::now() - start).count());
  }

  // A prompt is timed to its end, generation from the token before its first to its last. After a
  // prompt the first token comes from the prompt's logits, so one more token gives as many steps as
  // requested.
  result<uint64_t> greedily(const bench_test& what) {
    const greedy how(what.n_gen + (what.n_prompt != 0 ? 1 : 0), &ahead_);
    bitnet_generation_result out{};
    out.struct_size = sizeof out;
    library_error err;
    const bitnet_status status =
        bitnet_generate(session_, ids_.data() + what.depth, std::max(what.n_prompt, 1U),
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
  doctor::system_tree system_;
  measure::energy_meter energy_{system_};
};

// Takes the speeds of all tests into the gates, and repeats generation as they require.
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

// Facts for a receipt: the raw samples, from which all else follows, and the gates' results.
nlohmann::json receipt_facts(const std::vector<measurement>& all, const gates& limits) {
  nlohmann::json tests = nlohmann::json::array();
  for (const measurement& m : all)
    tests.push_back({{"test", m.what.name()}, {"samples_ns", m.samples_ns}});
  nlohmann::json out{{"program", {{"command", "bench"}, {"tests", std::move(tests)}}}};
  if (limits.any()) out["gates"] = gates_json(limits.results());
  return out;
}

// A receipt belongs to one session that generates.
result<void> check_receipt(const invocation& in, std::string_view word) {
  const settings& set = in.set;
  if (set.text("receipt").empty()) return {};
  const bool is_of_one = word != "compare" && word != "serve" && !set.flag("list") &&
                         !set.given("kernel") && !set.flag("tune") && !set.given("parallel") &&
                         !set.flag("matrix") && set.each_text("model").size() <= 1 &&
                         set.text("head") != "full";
  if (is_of_one) return {};
  return fail(exit_code::usage,
              "--receipt is of one session that generates: leave compare, serve, --list, --kernel, "
              "--tune, --parallel, --matrix, --head full and further models");
}

// Runs all tests. Returns the exit code of what ended them; `all` has the samples so far.
result<int> run_tests(const invocation& in, const engine& on, const facts& about,
                      std::vector<measurement>& all) {
  const interrupt::scope until_measured(on.session.get());
  auto ahead = given_speculation(in.set);
  if (!ahead) return std::unexpected(ahead.error());
  ahead->draft = on.draft.get();
  runner runs(on.session.get(), about.model, in.set, *ahead);
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

// A target's results, and whether its tests ended early.
struct measured_target {
  bench_result result;
  int code = exit_code::ok;
};

result<measured_target> measure_target(const invocation& in, const std::string& model,
                                       const std::vector<bench_test>& tests, gates& limits) {
  uint32_t context = 0;
  for (const bench_test& t : tests) context = std::max(context, t.depth + t.tokens() + 1);
  auto opened = open_bench(in, model, context, in.set.flag("kernel-times"));
  if (!opened) return std::unexpected(opened.error());
  facts& f = opened->about;

  const doctor::system_tree system;
  ceilings limit(in.set.integer("ceiling-mb"), f.device, static_cast<uint32_t>(f.threads));
  std::vector<measurement> measured;
  measured.reserve(tests.size());
  for (const bench_test& t : tests) measured.push_back({t, {}, {}, {}, ""});
  const auto before = measure::load_now(system);
  auto ended = run_tests(in, opened->all, f, measured);
  if (!ended) return std::unexpected(ended.error());
  f.load = measure::load_between(before, measure::load_now(system));
  f.energy_source = measure::energy_meter(system).source();
  if (const auto report = session_report(opened->all.session.get()))
    if (const std::string line = speculation_line(*report); !line.empty()) in.out.note(line);
  f.pages = large_pages_now();
  limit.measure_again();
  if (*ended == exit_code::ok)
    if (auto ok = take_tests(in, limits, opened->all, f.model, measured); !ok)
      return std::unexpected(ok.error());
  std::erase_if(measured, [](const measurement& m) { return m.samples_ns.empty(); });
  if (!in.set.text("receipt").empty()) {
    limits.end_of_work();
    const auto written = with_receipt(in, opened->all, *ended, receipt_facts(measured, limits));
    if (!written) return std::unexpected(written.error());
  }
  return measured_target{{std::move(f), std::move(limit), std::move(measured)}, *ended};
}

// The results of all targets, and why one is missing.
struct measured_targets {
  std::vector<bench_result> results;
  int code = exit_code::ok;
  std::string missing;
};

result<measured_targets> measure_targets(const invocation& in, const std::vector<bench_test>& tests,
                                         gates& limits) {
  const auto targets = bench_targets(in);
  if (!targets) return std::unexpected(targets.error());
  measured_targets out;
  for (const bench_target& one : *targets) {
    const auto set = settings_for(in.set, one);
    if (!set) return std::unexpected(set.error());
    auto done = measure_target(in.with(*set), one.model, tests, limits);
    if (!done && done.error().exit_code == exit_code::unavailable && targets->size() > 1) {
      in.out.line(fmt::format("skipped (no {}: {})", one.device, done.error().message));
      out.missing = done.error().message;
      continue;
    }
    if (!done) return std::unexpected(done.error());
    if (!done->result.all.empty()) out.results.push_back(std::move(done->result));
    out.code = done->code;
    if (out.code != exit_code::ok) break;
  }
  limits.end_of_work();
  if (limits.any())
    for (bench_result& one : out.results) one.about.gates = gates_json(limits.results());
  return out;
}

result<void> check_bench(const invocation& in) {
  const auto ahead = given_speculation(in.set);
  if (!ahead) return std::unexpected(ahead.error());
  if (ahead->type != BITNET_SPECULATION_NONE && in.set.text("head") == "full")
    return fail(exit_code::usage,
                "--head full times steps of one token each: leave --spec-type and --model-draft");
  if (in.set.given("shared-prefix"))
    return fail(exit_code::usage,
                "--shared-prefix says what the prompts of several requests begin with; give "
                "--parallel, too");
  return {};
}

// Runs the other measurements than tests of models; nothing: none was requested.
std::optional<result<int>> bench_other(const invocation& in, gates& limits) {
  const std::string word = in.positionals.empty() ? "" : in.positionals.front();
  if (auto ok = check_receipt(in, word); !ok) return std::unexpected(ok.error());
  const bool compares = word == "compare";
  const bool is_alone =
      compares || in.set.flag("list") || in.set.given("kernel") || in.set.flag("tune");
  if (is_alone)
    if (auto ok = no_gates(in, "only tests of a model have gates"); !ok)
      return std::unexpected(ok.error());
  if ((compares || in.set.flag("list") || in.set.flag("tune")) && in.set.flagged("report"))
    return fail(exit_code::usage,
                "--report is of what is timed here: leave compare, --list, --tune");
  if (const std::string& page = in.set.text("report"); !page.empty())
    if (auto fine = check_is_no_model(page); !fine) return std::unexpected(fine.error());
  if (compares) return bench_compare(in, {in.positionals.begin() + 1, in.positionals.end()});
  if (word == "serve") return bench_serve(in, {in.positionals.begin() + 1, in.positionals.end()});
  if (in.set.flag("force"))
    return fail(exit_code::usage, "--force belongs to `bitnet bench compare A B`");
  if (!is_alone && !in.set.given("parallel")) return std::nullopt;
  if (in.set.flag("matrix") || in.set.each_text("model").size() > 1 || in.set.given("prompt-gen"))
    return fail(exit_code::usage,
                "--matrix, --prompt-gen and several models are of tests of one session; leave "
                "--parallel, --kernel, --list and --tune");
  const model_and_rest words = split_positionals(in);
  if (!words.rest.empty())
    return fail(exit_code::usage,
                fmt::format("unexpected '{}'; bench takes one model", words.rest.front()));
  if (in.set.flag("list")) return list_kernels(in);
  if (in.set.given("kernel")) return bench_kernels(in);
  if (in.set.flag("tune")) return bench_tuning(in, words.model);
  return bench_parallel(in, words.model, limits);
}

}  // namespace

result<int> bench_command(const invocation& in) {
  gates limits(in.set);
  if (auto done = bench_other(in, limits)) return *std::move(done);
  const auto tests = tests_of(in);
  if (!tests) return std::unexpected(tests.error());
  if (auto ok = check_bench(in); !ok) return std::unexpected(ok.error());
  const auto measured = measure_targets(in, *tests, limits);
  if (!measured) return std::unexpected(measured.error());
  if (!measured->results.empty()) {
    const std::string text = bench_text(in.set.text("output-format"), measured->results);
    if (auto done = print(text); !done) return std::unexpected(done.error());
    if (auto done = write_report(in, bench_rows(measured->results)); !done)
      return std::unexpected(done.error());
  }
  if (measured->code != exit_code::ok) return measured->code;
  const bool may_be_missing = in.set.flag("skip-if-missing") && !measured->results.empty();
  if (!measured->missing.empty() && !may_be_missing)
    return fail(exit_code::unavailable, measured->missing);
  return judged(in, limits);
}

}  // namespace bitnet::host
