#pragma once
// Resources of this process, under the names of Prometheus' own clients.

#include "service/metrics_text.hpp"

namespace bitnet::host {

// Leaves out rows that the system does not report.
void write_process(metrics_text& to);

}  // namespace bitnet::host
