#pragma once
// Runs many requests of a batch at once: reads lines, submits them to a scheduler, and writes each
// answer when it ends. Memory holds the running and waiting requests only, not the file.

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include "batch/batch_line.hpp"
#include "batch/line_reader.hpp"
#include "batch/output_file.hpp"
#include "batch/receipts_file.hpp"
#include "openai/answer.hpp"
#include "session/engine.hpp"

namespace bitnet::host {

struct batch_setup {
  batch::shard part;
  uint32_t n_parallel = 0;  // requests that a step computes; 0: the library's number
  openai::generation_wish defaults;
  std::string template_name;
  std::string model_name;           // for requests that name no model
  std::string fingerprint;          // of the model
  bitnet_shadow* shadow = nullptr;  // of --shadow, which outlives the runner; nullptr: none
};

// The file that the receipts of answers go to.
struct batch_receipts {
  bitnet_runtime* runtime;
  batch::receipts_file* to;  // nullptr: no receipts were requested
};

struct batch_totals {
  uint64_t n_answered = 0, n_errors = 0, n_skipped = 0;  // lines
  uint64_t n_prompt = 0, n_generated = 0;                // tokens
};

// Threads: a single one, neither a library thread nor a signal handler.
class batch_runner {
 public:
  // All arguments outlive the runner. `already`: the contents of `to`.
  batch_runner(const invocation& in, const batch_setup& setup, bitnet_model* model,
               batch::line_reader& from, batch::output_file& to, batch::written& already,
               const batch_receipts& receipts)
      : in_(in),
        setup_(setup),
        model_(model),
        info_(describe(model)),
        from_(from),
        to_(to),
        already_(already),
        receipts_(receipts) {}

  // Runs until each line has an answer or an error. Exit code 130 after Ctrl-C or SIGTERM: running
  // requests are dropped, and the output keeps the finished answers.
  result<int> run();

  [[nodiscard]] const batch_totals& totals() const { return totals_; }
  // A line with the results of drafting; "" if drafting was off.
  [[nodiscard]] std::string speculation() const;

 private:
  // A scheduler of texts or of embeddings, opened when the first request needs it.
  struct service {
    scheduler_handle scheduler;
    openai::model_limits limits;
    uint32_t n_parallel = 0;
  };
  // An input line that is being answered.
  struct job {
    std::string custom_id;
    openai::request asked;
    int64_t created = 0;  // seconds since 1970
    std::vector<openai::prompt> prompts;
    std::vector<openai::collected_answer> answers;  // one per prompt
    std::string receipts;                           // lines, of prompts that have ended
    std::size_t n_submitted = 0;                    // prompts
    std::size_t n_open = 0;                         // prompts that have not ended
  };
  // A prompt of a job that a scheduler computes.
  struct running {
    request_handle request;
    std::shared_ptr<job> of;
    std::size_t index;
  };

  result<service*> service_for(openai::endpoint to);
  [[nodiscard]] bool has_room() const;

  result<void> take_lines();
  result<void> take_line(const batch::input_line& line);
  result<void> take_known(const batch::input_line& line, batch::read_line read);
  result<void> write_fault(const std::string& custom_id, uint64_t number,
                           const openai::api_error& why);
  result<void> begin(const batch::request_line& line);
  openai::parsed<std::shared_ptr<job>> job_of(const batch::request_line& line,
                                              const openai::model_limits& limits);

  result<void> submit();
  // False: the scheduler's queue is full.
  result<bool> submit_next(const std::shared_ptr<job>& of);
  result<void> take_events();
  result<void> take_events_of(bitnet_request* request);
  result<void> take_event(const bitnet_event& e, bitnet_request* request);
  [[nodiscard]] bool wants_receipt(const job& of) const;
  result<void> note_receipts(const running& at, bitnet_request* request);
  result<void> append(const job& done, std::string_view line);
  result<void> finish(const job& done);
  result<void> reject(const std::shared_ptr<job>& of, const openai::api_error& why);
  result<bool> wait();  // false: interrupted
  result<void> sync();

  const invocation& in_;
  const batch_setup& setup_;
  bitnet_model* model_;
  bitnet_model_info info_;
  batch::line_reader& from_;
  batch::output_file& to_;
  batch::written& already_;
  const batch_receipts receipts_;
  std::optional<service> texts_, embeddings_;
  std::deque<std::shared_ptr<job>> waiting_;  // jobs with prompts that were not submitted
  std::size_t n_waiting_ = 0;                 // those prompts
  std::unordered_map<const bitnet_request*, running> running_;
  std::random_device seeds_;
  batch_totals totals_;
};

}  // namespace bitnet::host
