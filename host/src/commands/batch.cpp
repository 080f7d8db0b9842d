// bitnet batch: answers a file of requests offline.
#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "commands/batch_runner.hpp"
#include "commands/commands.hpp"
#include "commands/gated.hpp"
#include "commands/request_defaults.hpp"
#include "model_files/find_model.hpp"
#include "model_files/fingerprint.hpp"
#include "process/interrupt.hpp"
#include "receipts/receipts.hpp"
#include "session/generation.hpp"
#include "session/shadow.hpp"
#include "text/json_members.hpp"

namespace bitnet::host {
namespace {

result<batch_setup> setup_of(const settings& set) {
  batch_setup out;
  if (const std::string& text = set.text("shard"); set.given("shard")) {
    const auto part = batch::parse_shard(text);
    if (!part)
      return fail(
          exit_code::usage,
          fmt::format("--shard expects I/N with I from 0 to N-1, such as 0/4, found '{}'", text));
    out.part = *part;
  }
  if (auto wish = given_shadow(set); !wish) return std::unexpected(wish.error());
  auto defaults = given_request_defaults(set);
  if (!defaults) return std::unexpected(defaults.error());
  out.n_parallel = defaults->n_parallel;
  out.defaults = std::move(defaults->wish);
  out.template_name = set.text("chat-template");
  return out;
}

// Returns the custom_id that batch_runner adds to a receipt.
std::optional<std::string> custom_id_in(std::string_view receipt) {
  const auto predicate = stated_predicate(receipt);
  if (!predicate) return std::nullopt;
  const nlohmann::json& id = text::at(text::at(*predicate, "program"), "custom_id");
  return id.is_string() ? std::optional(id.get<std::string>()) : std::nullopt;
}

// nullopt: no receipts were requested.
result<std::optional<batch::receipts_file>> receipts_of(const invocation& in, int input,
                                                        const batch::output_file& output,
                                                        const batch::written& already) {
  const std::string& path = in.set.text("receipts");
  if (path.empty()) return std::nullopt;
  const batch::other_file others[] = {{input, "the input"}, {output.descriptor(), "the output"}};
  uint64_t removed = 0;
  auto out = batch::receipts_file::open(path, others, already.ids, custom_id_in, removed);
  if (!out) return std::unexpected(out.error());
  if (removed != 0)
    in.out.note(fmt::format("removed {} receipts without an answer from {}", removed, path));
  return std::optional(*std::move(out));
}

void note_end(const invocation& in, const batch_totals& totals, double seconds) {
  std::string speed;
  if (totals.n_answered != 0 && seconds > 0)
    speed = fmt::format("; {} prompt tokens, {} generated, {:.1f} tokens/s", totals.n_prompt,
                        totals.n_generated, static_cast<double>(totals.n_generated) / seconds);
  in.out.note(fmt::format("{} answered, {} errors, {} skipped{}", totals.n_answered,
                          totals.n_errors, totals.n_skipped, speed));
}

result<int> answer_all(const invocation& in, const batch_setup& setup, bitnet_model* model,
                       batch::line_reader& from, batch::output_file& to, batch::written& already,
                       const batch_receipts& receipts, gates& limits) {
  using clock = std::chrono::steady_clock;
  batch_runner runner(in, setup, model, from, to, already, receipts);
  const auto begin = clock::now();
  const auto ended = runner.run();
  if (already.ids.unmet() != 0 && ended && *ended == exit_code::ok)
    in.out.warning(
        fmt::format("{} answers of the output are to requests that {} does not have; "
                    "was it begun with another input?",
                    already.ids.unmet(), from.name()));
  const double seconds = std::chrono::duration<double>(clock::now() - begin).count();
  limits.end_of_work();
  limits.take_speed(static_cast<double>(runner.totals().n_generated) / seconds);
  note_end(in, runner.totals(), seconds);
  if (const std::string line = runner.speculation(); !line.empty()) in.out.note(line);
  end_shadow(in, setup.shadow);
  if (ended && *ended == exit_code::interrupted)
    in.out.note("interrupted; the same command goes on");
  return ended && *ended == exit_code::ok ? judged(in, limits) : ended;
}

}  // namespace

result<int> batch_command(const invocation& in) {
  gates limits(in.set);
  if (in.positionals.size() != 2)
    return fail(exit_code::usage,
                "takes two files: IN.jsonl with requests, and OUT.jsonl for the answers");
  auto setup = setup_of(in.set);
  if (!setup) return std::unexpected(setup.error());
  const auto file = find_model(in.set.text("model"), in.variables);
  if (!file) return std::unexpected(file.error());
  setup->model_name = std::filesystem::path(*file).stem().string();
  setup->fingerprint = fingerprint_of(*file);

  interrupt::take_termination();
  auto from = batch::line_reader::open(in.positionals[0]);
  if (!from) return std::unexpected(from.error());
  const std::string& target = in.positionals[1];
  batch::written already;
  auto to = batch::output_file::open(target, from->descriptor(), setup->part, setup->fingerprint,
                                     already);
  if (!to) return std::unexpected(to.error());
  if (already.n != 0) in.out.note(fmt::format("{} has {} answers", target, already.n));
  if (already.cut_bytes != 0) in.out.note(fmt::format("removed the cut last line of {}", target));

  auto receipts = receipts_of(in, from->descriptor(), *to, already);
  if (!receipts) return std::unexpected(receipts.error());

  auto runtime = open_runtime(in);
  if (!runtime) return std::unexpected(runtime.error());
  const auto model =
      open_model(in, runtime->get(), *file, static_cast<uint32_t>(in.set.integer("ctx-size")));
  if (!model) return std::unexpected(model.error());
  const auto draft = open_draft(in, runtime->get());
  if (!draft) return std::unexpected(draft.error());
  setup->defaults.speculation.draft = draft->get();
  const auto shadow =
      open_shadow(in, model->get(), static_cast<uint32_t>(in.set.integer("ctx-size")));
  if (!shadow) return std::unexpected(shadow.error());
  setup->shadow = shadow->get();
  return answer_all(in, *setup, model->get(), *from, *to, already,
                    {runtime->get(), *receipts ? &**receipts : nullptr}, limits);
}

}  // namespace bitnet::host
