#include "generate/text_stream.hpp"

#include <algorithm>

namespace bitnet::generate {
namespace {

// Length of the longest end of `text` that is a proper beginning of `stop`.
std::size_t overlap(std::string_view text, std::string_view stop) {
  for (std::size_t n = std::min(text.size(), stop.size() - 1); n > 0; --n)
    if (text.substr(text.size() - n) == stop.substr(0, n)) return n;
  return 0;
}

}  // namespace

std::string text_stream::push(std::string_view bytes) {
  return release(characters_.push(bytes));
}

std::string text_stream::finish() {
  std::string out = release(characters_.finish());
  if (!stopped_by_) out += held_;
  held_.clear();
  return out;
}

std::string text_stream::release(const std::string& text) {
  if (stopped_by_) return {};
  held_ += text;
  std::size_t cut = std::string::npos;
  std::size_t keep = 0;
  for (std::size_t i = 0; i < stops_.size(); ++i) {
    if (stops_[i].empty()) continue;
    const std::size_t at = held_.find(stops_[i]);
    if (at < cut) {  // the earliest in the text wins, then the first in the list
      cut = at;
      stopped_by_ = i;
    }
    keep = std::max(keep, overlap(held_, stops_[i]));
  }
  if (stopped_by_) {
    std::string out = held_.substr(0, cut);
    held_.clear();
    return out;
  }
  std::string out = held_.substr(0, held_.size() - keep);
  held_.erase(0, held_.size() - keep);
  return out;
}

}  // namespace bitnet::generate
