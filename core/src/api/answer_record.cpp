#include "api/answer_record.hpp"

#include <algorithm>

#include "api/edge.hpp"
#include "receipt/digest.hpp"

namespace bitnet::api {
namespace {

std::string sum_of(bitnet_str text) {
  if (text.size == 0) return "";
  receipt::sha256 sum;
  sum.add(view(text));
  return sum.hex();
}

}  // namespace

answer_record record_of(const bitnet_generation& asked, const generate::options& how,
                        std::span<const int32_t> before, std::span<const int32_t> prompt) {
  answer_record out;
  out.any = true;
  out.sampling = how.sampling;
  // `asked` may be NULL or of an earlier version: missing members get defaults.
  if (const auto s =
          take_options(asked.sampling, bitnet_sampling_defaults, "the options of sampling"))
    for (uint32_t i = 0; i < s->n_dry_breakers; ++i)
      out.dry_breakers.emplace_back(view(s->dry_breakers[i]));
  out.ignore_eos = how.ignore_end;
  out.max_tokens = how.max_tokens;
  out.grammar_sum = sum_of(asked.grammar);
  out.schema_sum = sum_of(asked.json_schema);
  out.n_stop_strings = how.stop_strings.size();
  out.stop_tokens = how.stop_tokens;
  out.reasoning_budget = asked.reasoning_ends.size == 0 ? -1 : asked.reasoning_budget;
  out.prompt.assign(before.begin(), before.end());
  out.prompt.insert(out.prompt.end(), prompt.begin(), prompt.end());
  return out;
}

void note_answer(answer_record& to, const result<sequence::generated>& done, uint64_t wall_ns) {
  to.wall_ns = wall_ns;
  if (!done) {
    to.status = done.error().status;
    to.message = done.error().message;
    return;
  }
  to.output = done->outcome.tokens;
  to.stop_reason = done->outcome.stop_reason;
  to.n_evaluated = done->n_prompt;
  to.prompt_ns = done->prompt_ns;
  to.generate_ns = done->generate_ns;
}

}  // namespace bitnet::api
