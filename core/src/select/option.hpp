#pragma once
// A device that could be chosen, and which wish it meets.

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
// Best first.
[[nodiscard]] std::vector<option> in_order(const std::vector<option>& all);
// What another backend shows as well, and shows better; "" if nothing does. `ranked` best first.
[[nodiscard]] std::string shown_better(const std::vector<option>& ranked, const option& o);

// May the backend be meant, by its manifest?
[[nodiscard]] bool matches(const wish& w, const candidate& c);
[[nodiscard]] bool matches_any(const std::vector<wish>& wishes, const candidate& c);
[[nodiscard]] bool matches(const wish& w, const option& o);

}  // namespace bitnet::select
