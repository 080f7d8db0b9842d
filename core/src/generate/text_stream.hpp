#pragma once
// Holds generated text back until it consists of whole UTF-8 characters and cannot be a part of a
// stop string.
//
// Cost    linear in the text and in the bytes of all stop strings together, whatever they are.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/patterns.hpp"
#include "tokenizer/tokenizer.hpp"

namespace bitnet::generate {

class text_stream {
 public:
  // Empty stop strings are ignored.
  explicit text_stream(const std::vector<std::string>& stops);

  // Takes the bytes of one token; returns the text that may be shown now. Text that could still
  // become a stop string is held back. After a stop string nothing more is returned.
  std::string push(std::string_view bytes);
  // Returns the text that was held back, when the generation ends for another reason.
  std::string finish();

  [[nodiscard]] std::optional<std::size_t> stopped_by() const { return stopped_by_; }

 private:
  std::string release(const std::string& text);

  patterns stops_;
  patterns::state here_ = patterns::begin;  // state behind all text, held or shown
  tokenizer::utf8_stream characters_;
  std::string held_;  // text that was not shown yet, behind `gone_` bytes that were
  std::size_t gone_ = 0;
  std::optional<std::size_t> stopped_by_;
};

}  // namespace bitnet::generate
