#include "commands/batch_runner.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "process/interrupt.hpp"
#include "receipts/receipts.hpp"
#include "session/generation.hpp"
#include "session/shadow.hpp"
#include "terminal/progress.hpp"

namespace bitnet::host {
namespace {

int64_t now_s() {
  using std::chrono::system_clock;
  return std::chrono::duration_cast<std::chrono::seconds>(system_clock::now().time_since_epoch())
      .count();
}

std::string text_of(bitnet_str text) {
  return {text.data, text.size};
}

}  // namespace

// ---- what computes -----------------------------------------------------------------------------

result<batch_runner::service*> batch_runner::service_for(openai::endpoint to) {
  const bool embeds = to == openai::endpoint::embeddings;
  std::optional<service>& one = embeds ? embeddings_ : texts_;
  if (one) return &*one;
  auto scheduler = open_scheduler(in_, model_, static_cast<uint32_t>(in_.set.integer("ctx-size")),
                                  setup_.n_parallel, embeds);
  if (!scheduler) return std::unexpected(scheduler.error());
  const auto report = scheduler_report(scheduler->get());
  if (!report) return std::unexpected(report.error());
  if (auto ok = give_shadow(scheduler->get(), embeds ? nullptr : setup_.shadow); !ok)
    return std::unexpected(ok.error());
  one.emplace(service{*std::move(scheduler),
                      {.n_vocab = info_.n_vocab,
                       .n_embedding = info_.n_embedding,
                       .n_context = report->value("n_context", 0U)},
                      report->value("max_sequences", 1U)});
  return &*one;
}

// Keeps two rounds of requests at hand, so that the scheduler never waits for the next line.
bool batch_runner::has_room() const {
  std::size_t n_parallel = 1;
  for (const auto* one : {&texts_, &embeddings_})
    if (*one) n_parallel = std::max<std::size_t>(n_parallel, (*one)->n_parallel);
  return running_.size() + n_waiting_ < 2 * n_parallel;
}

std::string batch_runner::speculation() const {
  if (!texts_) return "";
  const auto report = scheduler_report(texts_->scheduler.get());
  return report ? speculation_line(*report) : "";
}

// ---- lines come in -----------------------------------------------------------------------------

result<void> batch_runner::take_lines() {
  while (has_room() && !interrupt::requested()) {
    const auto line = from_.take();
    if (!line) return std::unexpected(line.error());
    const auto& read = *line;
    if (!read) return {};
    if (auto ok = take_line(*read); !ok) return ok;
  }
  return {};
}

result<void> batch_runner::take_line(const batch::input_line& line) {
  batch::read_line read;
  if (line.fault.empty())
    read = batch::read_request_line(line.text);
  else
    read.fault = openai::invalid("", line.fault, "invalid_line").error();
  if (!read.custom_id.empty())
    return setup_.part.has(read.custom_id) ? take_known(line, std::move(read)) : result<void>{};
  return setup_.part.has_line(line.number) ? write_fault("", line.number, read.fault)
                                           : result<void>{};
}

// Handles a line whose custom_id can be read.
result<void> batch_runner::take_known(const batch::input_line& line, batch::read_line read) {
  switch (already_.ids.meet(read.custom_id)) {
    case batch::id_set::found::answered:
      ++totals_.n_skipped;
      return {};
    case batch::id_set::found::repeated:
      return write_fault("", line.number,
                         openai::invalid("custom_id",
                                         fmt::format("an earlier line has the custom_id '{}'; each "
                                                     "needs its own",
                                                     read.custom_id),
                                         "duplicate_custom_id")
                             .error());
    case batch::id_set::found::unknown:
      break;
  }
  if (!read.request) return write_fault(read.custom_id, line.number, read.fault);
  return begin(*read.request);
}

// A line without an id is named by its number; an earlier run may have written it already.
result<void> batch_runner::write_fault(const std::string& custom_id, uint64_t number,
                                       const openai::api_error& why) {
  if (custom_id.empty() && !already_.lines.insert(number).second) {
    ++totals_.n_skipped;
    return {};
  }
  ++totals_.n_errors;
  return to_.append(batch::fault_line(custom_id, number, why));
}

openai::parsed<std::shared_ptr<batch_runner::job>> batch_runner::job_of(
    const batch::request_line& line, const openai::model_limits& limits) {
  auto asked = openai::parse_request(line.to, line.body, line.text, limits, setup_.defaults);
  if (!asked) return std::unexpected(asked.error());
  if (asked->stream)
    return openai::unsupported("stream", "a batch writes whole answers; leave it out");
  if (!asked->how.has_seed) asked->how.sampling.seed = seeds_();
  if (asked->model.empty()) asked->model = setup_.model_name;
  auto prompts = openai::prompts_of(*asked, model_, limits, setup_.template_name);
  if (!prompts) return std::unexpected(prompts.error());
  if (!prompts->front().unbound.empty())
    in_.out.note(fmt::format("{}: the arguments of tools may be anything: {}", line.custom_id,
                             prompts->front().unbound));
  asked->messages.clear();  // frees memory: the prompts have it all
  asked->tools.clear();
  asked->inputs.clear();
  auto out = std::make_shared<job>();
  out->custom_id = line.custom_id;
  out->created = now_s();
  out->n_open = prompts->size();
  const uint32_t n_choices = line.to == openai::endpoint::embeddings ? 1 : asked->how.n_choices;
  out->answers.assign(prompts->size(), openai::collected_answer(n_choices, model_));
  out->asked = *std::move(asked);
  out->prompts = *std::move(prompts);
  return out;
}

result<void> batch_runner::begin(const batch::request_line& line) {
  const auto by = service_for(line.to);
  if (!by) return std::unexpected(by.error());
  auto made = job_of(line, (*by)->limits);
  if (!made) {
    ++totals_.n_errors;
    return to_.append(batch::rejection_line(line.custom_id, made.error()));
  }
  n_waiting_ += (*made)->prompts.size();
  waiting_.push_back(*std::move(made));
  return {};
}

// ---- the schedulers ----------------------------------------------------------------------------

result<bool> batch_runner::submit_next(const std::shared_ptr<job>& of) {
  const auto by = service_for(of->asked.to);
  if (!by) return std::unexpected(by.error());
  const std::size_t index = of->n_submitted;
  const openai::generation_view view(of->asked.how, of->prompts[index].ids);
  bitnet_request_options options = view.options();
  options.receipt = wants_receipt(*of) ? 1 : 0;
  if (of->asked.to == openai::endpoint::embeddings) {
    bitnet_request_defaults(&options, sizeof options);
    options.prompt = of->prompts[index].ids.data();
    options.n_prompt = of->prompts[index].ids.size();
  }
  library_error err;
  bitnet_request* request = nullptr;
  const bitnet_status status =
      bitnet_request_submit((*by)->scheduler.get(), &options, &request, &err);
  if (status == BITNET_BUSY && !running_.empty()) return false;
  if (openai::is_of_request(status)) {
    auto ok = reject(of, openai::error_of(status, err.message));
    return ok ? result<bool>(true) : std::unexpected(ok.error());
  }
  if (status != BITNET_OK) return failed(status, err, stage::work);
  running_.emplace(request, running{request_handle(request), of, index});
  openai::token_list().swap(of->prompts[index].ids);
  --n_waiting_;
  ++of->n_submitted;
  return true;
}

result<void> batch_runner::submit() {
  while (!waiting_.empty()) {
    const std::shared_ptr<job> first = waiting_.front();
    if (first->n_submitted == first->prompts.size()) {
      waiting_.pop_front();
      continue;
    }
    const auto by = service_for(first->asked.to);
    if (!by) return std::unexpected(by.error());
    if (running_.size() >= std::size_t{2} * (*by)->n_parallel) return {};
    const auto taken = submit_next(first);
    if (!taken) return std::unexpected(taken.error());
    if (!*taken) return {};
  }
  return {};
}

result<void> batch_runner::take_events() {
  for (const auto* one : {&texts_, &embeddings_}) {
    while (*one) {
      library_error err;
      bitnet_request* ready = nullptr;
      const bitnet_status status = bitnet_scheduler_wait((*one)->scheduler.get(), 0, &ready, &err);
      if (status == BITNET_TIMEOUT) break;
      if (status != BITNET_OK) return failed(status, err, stage::work);
      if (auto ok = take_events_of(ready); !ok) return ok;
    }
  }
  return {};
}

result<void> batch_runner::take_events_of(bitnet_request* request) {
  while (running_.contains(request)) {
    bitnet_event e{};
    e.struct_size = sizeof e;
    library_error err;
    const bitnet_status status = bitnet_request_next(request, 0, &e, &err);
    if (status == BITNET_TIMEOUT) return {};
    if (status != BITNET_OK) return failed(status, err, stage::work);
    if (auto ok = take_event(e, request); !ok) return ok;
  }
  return {};
}

result<void> batch_runner::take_event(const bitnet_event& e, bitnet_request* request) {
  const running& at = running_.at(request);
  const std::shared_ptr<job> of = at.of;
  if (e.kind == BITNET_EVENT_FAILED) {
    // Lack of device memory during computation is not the request's fault; it was checked at
    // submission.
    if (openai::is_of_request(e.status) && e.status != BITNET_OUT_OF_DEVICE_MEMORY)
      return reject(of, openai::error_of(e.status, text_of(e.message)));
    return fail(exit_code_of(e.status, stage::work), text_of(e.message));
  }
  if (e.kind == BITNET_EVENT_END && e.stop_reason == BITNET_STOP_CANCELLED)
    return fail(exit_code::failure, "a request was cancelled that was not asked to end");
  openai::collected_answer& answer = of->answers[at.index];
  answer.take(e, of->asked.how.logprobs);
  if (!answer.ended()) return {};
  if (auto ok = note_receipts(at, request); !ok) return ok;
  running_.erase(request);
  return --of->n_open == 0 ? finish(*of) : result<void>{};
}

// ---- answers go out ----------------------------------------------------------------------------

// Embeddings have no receipts, since they generate nothing.
bool batch_runner::wants_receipt(const job& of) const {
  return receipts_.to != nullptr && of.asked.to != openai::endpoint::embeddings;
}

// Call it while the request exists. Makes a receipt for each of its choices.
result<void> batch_runner::note_receipts(const running& at, bitnet_request* request) {
  job& of = *at.of;
  if (!wants_receipt(of)) return {};
  const auto n_choices = static_cast<uint32_t>(of.answers[at.index].choices().size());
  for (uint32_t choice = 0; choice < n_choices; ++choice) {
    const auto text = request_receipt(in_, receipts_.runtime, request, choice,
                                      {{"command", "batch"},
                                       {"custom_id", of.custom_id},
                                       {"prompt", at.index},
                                       {"choice", choice}});
    if (!text) return std::unexpected(text.error());
    of.receipts += *text;
  }
  return {};
}

// Writes the receipts to disk before the answer.
result<void> batch_runner::append(const job& done, std::string_view line) {
  if (receipts_.to != nullptr) {
    if (auto ok = receipts_.to->append(done.receipts); !ok) return ok;
    if (to_.is_due())
      if (auto ok = receipts_.to->sync(); !ok) return ok;
  }
  return to_.append(line);
}

result<void> batch_runner::finish(const job& done) {
  const bool is_chat = done.asked.to == openai::endpoint::chat;
  const openai::object_facts about{
      (is_chat ? "chatcmpl-" : "cmpl-") + batch::name_of(done.custom_id), done.created,
      done.asked.model, setup_.fingerprint};
  const auto body = openai::response_json(done.asked, about, done.answers, done.prompts);
  if (!body) return fail(exit_code::out_of_memory, body.error().message);
  ++totals_.n_answered;
  for (const openai::collected_answer& one : done.answers) {
    totals_.n_prompt += one.used().prompt;
    totals_.n_generated += one.used().completion;
  }
  return append(done, batch::answer_line(done.custom_id, *body));
}

// If one prompt of a line cannot be answered, the line gets an error and its other prompts are
// dropped.
result<void> batch_runner::reject(const std::shared_ptr<job>& of, const openai::api_error& why) {
  n_waiting_ -= of->prompts.size() - of->n_submitted;
  std::erase(waiting_, of);
  std::erase_if(running_, [&](const auto& one) { return one.second.of == of; });
  ++totals_.n_errors;
  return to_.append(batch::rejection_line(of->custom_id, why));
}

// ---- all of it ---------------------------------------------------------------------------------

result<bool> batch_runner::wait() {
  std::vector<pollfd> watched;
  for (const auto* one : {&texts_, &embeddings_})
    if (*one) watched.push_back({bitnet_scheduler_descriptor((*one)->scheduler.get()), POLLIN, 0});
  const bool reads = has_room() && from_.wants_more();
  if (reads) watched.push_back({from_.descriptor(), POLLIN, 0});
  if (!interrupt::wait_readable(watched)) return false;
  if (reads && watched.back().revents != 0)
    if (auto ok = from_.read_more(); !ok) return std::unexpected(ok.error());
  return true;
}

result<void> batch_runner::sync() {
  if (receipts_.to != nullptr)
    if (auto ok = receipts_.to->sync(); !ok) return ok;
  return to_.sync();
}

result<int> batch_runner::run() {
  const interrupt::scope until_done;
  progress_bar bar(in_.out, "answering");
  while (!interrupt::requested()) {
    if (auto ok = take_lines(); !ok) return std::unexpected(ok.error());
    if (auto ok = submit(); !ok) return std::unexpected(ok.error());
    if (auto ok = take_events(); !ok) return std::unexpected(ok.error());
    if (from_.file_bytes() != 0) bar.update(from_.bytes_taken(), from_.file_bytes());
    const bool idle = running_.empty() && waiting_.empty();
    if (idle && from_.at_end()) {
      if (auto ok = sync(); !ok) return std::unexpected(ok.error());
      return exit_code::ok;
    }
    if (idle && !from_.wants_more()) continue;  // lines were read and not taken yet
    const auto goes_on = wait();
    if (!goes_on) return std::unexpected(goes_on.error());
    if (!*goes_on) break;
  }
  if (auto ok = sync(); !ok) return std::unexpected(ok.error());
  return exit_code::interrupted;
}

}  // namespace bitnet::host
