#pragma once
// Where a model lies and how a sequence moved, as reports and receipts have it.

#include <deque>
#include <nlohmann/json_fwd.hpp>

#include "engine/engine.hpp"
#include "sequence/session.hpp"

namespace bitnet::api {

// What each device has of the weights, in the order in which a token goes through them.
nlohmann::ordered_json parts_json(const engine::engine& e);
nlohmann::ordered_json moves_json(const std::deque<sequence::move_record>& moves);

}  // namespace bitnet::api
