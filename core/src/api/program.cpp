// Describes the programs of a session before they run.
#include <fmt/format.h>

#include <mutex>
#include <nlohmann/json.hpp>

#include "api/edge.hpp"
#include "api/objects.hpp"
#include "compute/graph/graph.hpp"
#include "engine/program_ops.hpp"
#include "select/ranking.hpp"
#include "sequence/session.hpp"

namespace {

using nlohmann::ordered_json;

ordered_json op_json(const bitnet::engine::program_op& of) {
  ordered_json out = {{"op", bitnet::compute::op_name(of.op)}};
  if (of.body_count != 0) out["body"] = of.body_count;
  if (of.layer) out["layer"] = *of.layer;
  out["level"] = bitnet::select::level_name(of.level);
  if (of.weights.empty()) return out;
  for (const uint32_t format : of.formats)
    out["formats"].push_back(bitnet::compute::format_name(format));
  out["weights"] = of.weights;
  out["weight_bytes"] = of.weight_bytes;
  return out;
}

bitnet::result<ordered_json> part_json(const bitnet::engine::part& on,
                                       const bitnet::sequence::session& of) {
  auto ops = bitnet::engine::program_ops(on, of.options(), of.limits());
  if (!ops) return std::unexpected(std::move(ops.error()));
  const bitnet::select::choice& by = on.choice();
  const auto& what = on.what();
  ordered_json out = {{"backend", by.backend->name()},
                      {"version", by.backend->version()},
                      {"build_id", by.build_id},
                      {"device", by.device_name()},
                      {"embedding", what.embedding},
                      {"head", what.lm_head},
                      {"layers", {{"first", what.first}, {"count", what.last - what.first}}},
                      {"ops", ordered_json::array()}};
  for (const auto& one : *ops) out["ops"].push_back(op_json(one));
  return out;
}

}  // namespace

bitnet_status bitnet_session_program(bitnet_session* session, char* out, uint64_t capacity,
                                     uint64_t* needed, bitnet_error* err) {
  return bitnet::api::guarded(err, "bitnet_session_program", [&]() -> bitnet::result<void> {
    if (session == nullptr) return bitnet::api::missing("session");
    const auto guard = bitnet::api::guard_or_callback(*session);
    if (!guard) return std::unexpected(guard.error());
    const auto make = [&]() -> bitnet::result<std::string> {
      const auto& engine = session->session->owner();
      const std::lock_guard devices(engine.device_mutex());
      ordered_json report = {{"parts", ordered_json::array()}};
      for (const auto& p : engine.parts()) {
        auto part = part_json(*p, *session->session);
        if (!part) return std::unexpected(std::move(part.error()));
        report["parts"].push_back(*std::move(part));
      }
      return report.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    };
    return bitnet::api::give_changing_text(
        fmt::format("program of session {}", static_cast<const void*>(session)), out, capacity,
        needed, make);
  });
}
