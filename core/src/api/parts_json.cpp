#include "api/parts_json.hpp"

#include <nlohmann/json.hpp>

namespace bitnet::api {

using nlohmann::ordered_json;

ordered_json parts_json(const engine::engine& e) {
  ordered_json out = ordered_json::array();
  for (const auto& p : e.parts()) {
    const auto& what = p->what();
    const auto& has = p->has();
    ordered_json one = {{"device", p->choice().device_name()},
                        {"embedding", what.embedding},
                        {"head", what.lm_head},
                        {"layers", {{"first", what.first}, {"count", what.last - what.first}}},
                        {"layer_bytes", has.layers}};
    if (what.embedding) one["embedding_bytes"] = has.embedding;
    if (what.lm_head) one["head_bytes"] = has.lm_head;
    one["weight_bytes"] = has.all();
    one["mapped_bytes"] = has.mapped;
    out.push_back(std::move(one));
  }
  return out;
}

ordered_json moves_json(const std::deque<sequence::move_record>& moves) {
  ordered_json out = ordered_json::array();
  for (const auto& m : moves) {
    ordered_json one = {{"from", m.from},
                        {"to", m.to},
                        {"why", m.why},
                        {"pause_ms", m.pause_ms},
                        {"method", m.method}};
    if (m.copy_ms > 0) one["copy_ms"] = m.copy_ms;
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace bitnet::api
