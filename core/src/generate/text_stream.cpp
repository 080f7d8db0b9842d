#include "generate/text_stream.hpp"

#include <algorithm>

namespace bitnet::generate {

text_stream::text_stream(const std::vector<std::string>& stops) {
  for (std::size_t i = 0; i < stops.size(); ++i)
    if (!stops[i].empty()) stops_.add(stops[i], static_cast<uint32_t>(i));
  stops_.finish();
}

std::string text_stream::push(std::string_view bytes) {
  return release(characters_.push(bytes));
}

std::string text_stream::finish() {
  std::string out = release(characters_.finish());
  if (!stopped_by_) out.append(held_, gone_);
  held_.clear();
  gone_ = 0;
  return out;
}

std::string text_stream::release(const std::string& text) {
  if (stopped_by_) return {};
  // The earliest stop string in the text wins, then the first in the list. Of stop strings that end
  // at a byte the longest begins first; two that begin at the same byte end at different ones.
  const std::size_t held = held_.size() - gone_;
  std::size_t cut = std::string::npos;
  for (std::size_t i = 0; i < text.size(); ++i) {
    here_ = stops_.next(here_, static_cast<unsigned char>(text[i]));
    const auto found = stops_.longest(here_);
    if (found == patterns::begin) continue;
    const std::size_t at = held + i + 1 - stops_.depth(found);
    const std::size_t which = stops_.number(found);
    if (at < cut || (at == cut && which < *stopped_by_)) {
      cut = at;
      stopped_by_ = which;
    }
  }
  held_ += text;
  // The longest beginning of a stop string that the text ends with could still become one.
  const std::size_t shown = stopped_by_ ? cut : held + text.size() - stops_.depth(here_);
  std::string out = held_.substr(gone_, shown);
  gone_ = stopped_by_ ? held_.size() : gone_ + shown;
  if (gone_ > held_.size() / 2) {  // seldom, so that each byte is moved once or twice
    held_.erase(0, gone_);
    gone_ = 0;
  }
  return out;
}

}  // namespace bitnet::generate
