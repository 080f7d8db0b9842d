#pragma once
// Makes the text of bitnet_scheduler_report, except its member `pooling`.

#include <nlohmann/json_fwd.hpp>

#include "schedule/statistics.hpp"
#include "serving/async_engine.hpp"

namespace bitnet::api {

[[nodiscard]] nlohmann::ordered_json scheduler_json(const serving::async_engine::facts& f,
                                                    const schedule::statistics& s);

}  // namespace bitnet::api
