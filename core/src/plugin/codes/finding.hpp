#pragma once
// The result of a check of a plugin file. The loader stops at the first error, bitnet-backend-lint
// shows all results.

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "plugin/codes/codes.hpp"

namespace bitnet::plugin {

struct finding {
  enum class level_type : uint8_t { ok, warning, error };
  level_type level = level_type::ok;
  std::string check;  // the rule: "exports"; listed in docs/reference/lint.md
  defect what;        // code::ok: nothing is wrong
};

class findings {
 public:
  void ok(std::string check, std::string text) {
    add(finding::level_type::ok, std::move(check), {code::ok, BITNET_OK, std::move(text), ""});
  }
  void warning(std::string check, code c, std::string text, std::string hint = "") {
    add(finding::level_type::warning, std::move(check),
        {c, BITNET_OK, std::move(text), std::move(hint)});
  }
  void error(std::string check, defect what) {
    add(finding::level_type::error, std::move(check), std::move(what));
  }
  void error(std::string check, code c, std::string text, std::string hint = "") {
    error(std::move(check), {c, BITNET_REJECTED, std::move(text), std::move(hint)});
  }

  [[nodiscard]] const std::vector<finding>& all() const { return all_; }
  // nullptr: no error, the loader may continue.
  [[nodiscard]] const defect* first_error() const {
    const auto at = std::ranges::find(all_, finding::level_type::error, &finding::level);
    return at == all_.end() ? nullptr : &at->what;
  }

 private:
  void add(finding::level_type level, std::string check, defect what) {
    all_.push_back({level, std::move(check), std::move(what)});
  }

  std::vector<finding> all_;
};

}  // namespace bitnet::plugin
