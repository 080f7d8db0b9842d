#include "library/left_out.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "text/printable.hpp"

namespace bitnet::host {

std::string left_out_text(const nlohmann::json& members, std::string_view indent) {
  std::string out;
  for (const nlohmann::json& one : members) {
    const std::string member = one.value("member", "");
    out += fmt::format("{}{}{}{}: {}\n", indent, text::printable(one.value("file", "")),
                       member.empty() ? "" : ": ", text::printable(member),
                       text::printable(one.value("why", "")));
  }
  return out;
}

}  // namespace bitnet::host
