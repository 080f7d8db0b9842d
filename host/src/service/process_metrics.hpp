#pragma once
// What this process takes of the machine, under the names that Prometheus' own clients use.

#include "service/metrics_text.hpp"

namespace bitnet::host {

// Rows that the system does not answer are left out.
void write_process(metrics_text& to);

}  // namespace bitnet::host
