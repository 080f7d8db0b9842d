#include "terminal/progress.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace bitnet::host {
namespace {
constexpr int width = 40;  // characters
}

progress_bar::~progress_bar() {
  if (shown_ && percent_ >= 0) to_.raw("\r\x1b[K");
}

void progress_bar::update(uint64_t done, uint64_t total) {
  if (!shown_ || total == 0) return;
  const double part = std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
  const int percent = static_cast<int>(part * 100);
  if (percent == percent_) return;
  percent_ = percent;
  const int filled = percent * width / 100;
  to_.raw(
      fmt::format("\r{} [{:#<{}}{:<{}}] {:>3}%", doing_, "", filled, "", width - filled, percent));
}

}  // namespace bitnet::host
