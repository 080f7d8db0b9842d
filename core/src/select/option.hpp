#pragma once
// A device that can be chosen, and the wish that it matches.

#include <string>
#include <vector>

#include "bitnet/abi/info.h"
#include "select/candidate.hpp"
#include "select/ranking.hpp"
#include "select/request.hpp"

namespace bitnet::select {

struct option {
  candidate* from = nullptr;
  uint32_t index = 0;

  [[nodiscard]] const bitnet_device_info& info() const { return from->devices()[index].info; }
  [[nodiscard]] std::string name() const { return from->name() + ":" + std::to_string(index); }
};

[[nodiscard]] score facts_of(const option& o);
[[nodiscard]] contender contender_of(const option& o);
// Sorts, best first.
[[nodiscard]] std::vector<option> in_order(const std::vector<option>& all);
// Device of another backend that is the same hardware and ranks higher; "": none. `ranked`: best
// first.
[[nodiscard]] std::string shown_better(const std::vector<option>& ranked, const option& o);

// Whether the wish may mean the backend, by its manifest.
[[nodiscard]] bool matches(const wish& w, const candidate& c);
[[nodiscard]] bool matches_any(const std::vector<wish>& wishes, const candidate& c);
[[nodiscard]] bool matches(const wish& w, const option& o);

}  // namespace bitnet::select
