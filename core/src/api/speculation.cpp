#include "api/speculation.hpp"

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "api/edge.hpp"
#include "api/objects.hpp"
#include "speculate/ngram.hpp"

namespace bitnet::api {
namespace {

// Checks that both have the same tokens, by number and text.
result<void> check_same_vocabulary(const tokenizer::tokenizer& of,
                                   const tokenizer::tokenizer& draft) {
  const auto reject = [](std::string how) {
    return fail(BITNET_INVALID_ARGUMENT,
                fmt::format("the draft model has another vocabulary than the model: {}; choose a "
                            "draft model that was made with the same tokenizer",
                            how));
  };
  if (of.size() != draft.size())
    return reject(fmt::format("{} tokens, and the model has {}", draft.size(), of.size()));
  for (uint32_t i = 0; i < of.size(); ++i) {
    const auto id = static_cast<tokenizer::token>(i);
    const auto theirs = draft.piece(id, true, false), ours = of.piece(id, true, false);
    if (theirs.has_value() == ours.has_value() && (!ours || *theirs == *ours)) continue;
    return reject(fmt::format("its token {} is '{}', and the model's is '{}'", i,
                              text::printable(theirs.value_or("")),
                              text::printable(ours.value_or(""))));
  }
  return {};
}

result<std::unique_ptr<sequence::session>> open_draft(bitnet_model& of, uint32_t n_context) {
  engine::session_options o;
  o.n_context = n_context;
  o.own_kv = true;
  o.trace = of.runtime->services.trace();
  o.on_loss = [&of](const engine::engine_ptr& lost, const failure& why) {
    return of.runtime->find_replacement(of, of.runtime->request, lost, why);
  };
  return of.engines->open(
      [&](engine::engine_ptr e) { return sequence::session::open(std::move(e), o, 0); });
}

}  // namespace

result<std::shared_ptr<sequence::draft_sessions>> draft_models::sessions(const bitnet_model& of,
                                                                         bitnet_model& draft,
                                                                         uint32_t n_context) {
  const std::lock_guard lock(mutex_);
  if (last_ == &draft && n_context_ == n_context) return sessions_;
  if (!draft.engines)
    return fail(BITNET_INVALID_ARGUMENT,
                "the draft model was opened with vocabulary_only: it cannot compute");
  if (auto ok = check_same_vocabulary(of.model.tokens(), draft.model.tokens()); !ok)
    return std::unexpected(std::move(ok.error()));
  // A context beyond the trained length is rejected, so drafts end there.
  const uint32_t most = std::min(n_context, draft.model.shape().n_context);
  sessions_ = std::make_shared<sequence::draft_sessions>(
      [&draft, most] { return open_draft(draft, most); },
      [&draft](sequence::session& s) { draft.engines->leave(s); });
  last_ = &draft;
  n_context_ = n_context;
  return sessions_;
}

std::unique_ptr<speculate::drafter> taken_speculation::make_drafter() const {
  if (draft) return std::make_unique<sequence::model_drafter>(draft);
  return std::make_unique<speculate::ngram>(how.ngram_size);
}

result<std::optional<taken_speculation>> take_speculation(const bitnet_speculation* given,
                                                          const bitnet_model& of,
                                                          uint32_t n_context,
                                                          draft_models& drafts) {
  if (given == nullptr) return std::nullopt;
  const auto o = take_options(given, bitnet_speculation_defaults, "the options of speculation");
  if (!o) return std::unexpected(o.error());
  if (o->type > BITNET_SPECULATION_AUTO)
    return fail(BITNET_INVALID_ARGUMENT,
                fmt::format("the type of speculation is {}: expected BITNET_SPECULATION_NONE, "
                            "NGRAM, DRAFT or AUTO",
                            o->type));
  if (o->type == BITNET_SPECULATION_NONE) return std::nullopt;
  if (o->type == BITNET_SPECULATION_DRAFT && o->draft == nullptr)
    return fail(BITNET_INVALID_ARGUMENT,
                "speculation by a draft model needs one: give it as draft, or choose "
                "BITNET_SPECULATION_NGRAM");
  taken_speculation out;
  if (o->n_max != 0) out.how.n_max = o->n_max;
  if (o->n_min != 0) out.how.n_min = o->n_min;
  if (o->ngram_size != 0) out.how.ngram_size = o->ngram_size;
  if (auto ok = speculate::check(out.how); !ok) return std::unexpected(std::move(ok.error()));
  if (o->type == BITNET_SPECULATION_NGRAM || o->draft == nullptr) return out;
  auto sessions =
      drafts.sessions(of, *o->draft, o->draft_context != 0 ? o->draft_context : n_context);
  if (!sessions) return std::unexpected(std::move(sessions.error()));
  out.draft = std::move(*sessions);
  return out;
}

nlohmann::ordered_json speculation_json(const speculate::counts& c) {
  const double steps = static_cast<double>(std::max<uint64_t>(c.steps, 1));
  return {{"drafted", c.drafted},
          {"accepted", c.accepted},
          {"steps", c.steps},
          {"tokens_per_step", static_cast<double>(c.accepted + c.steps) / steps},
          {"step_ratio", c.step_ratio / steps},
          {"pauses", c.pauses}};
}

}  // namespace bitnet::api

void bitnet_speculation_defaults(bitnet_speculation* options, uint32_t size) {
  bitnet::api::give_defaults({}, options, size);
}
