#pragma once
// The placement of a model and the moves of a sequence as JSON, for reports and receipts.

#include <deque>
#include <nlohmann/json_fwd.hpp>

#include "engine/engine.hpp"
#include "sequence/session.hpp"

namespace bitnet::api {

// The weights of each device, in the order in which a token passes them.
nlohmann::ordered_json parts_json(const engine::engine& e);
nlohmann::ordered_json moves_json(const std::deque<sequence::move_record>& moves);

}  // namespace bitnet::api
