#include "library/conformance_report.hpp"

#include <fmt/core.h>

#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "basic/json.hpp"
#include "basic/text_input.hpp"
#include "text/json_members.hpp"

namespace bitnet::host {
namespace {

using nlohmann::json;

constexpr uint64_t longest_report = uint64_t{4} << 20;

claimed_conformance unreadable(std::string why) {
  claimed_conformance out;
  out.problem = std::move(why);
  return out;
}

// Accepts "1.0": a few digits, a dot, a few digits.
bool is_version(const std::string& text) {
  constexpr std::size_t longest = 9;
  const auto dot = text.find('.');
  return text.size() <= longest && dot != 0 && dot != std::string::npos && dot + 1 != text.size() &&
         text.find_first_not_of("0123456789.") == std::string::npos &&
         text.find('.', dot + 1) == std::string::npos;
}

}  // namespace

claimed_conformance parse_conformance(const std::string& text, const std::string& name,
                                      const std::string& build_id) {
  claimed_conformance out;
  const json report = text::json_of(text);
  if (!report.is_object()) return unreadable("its report is no JSON object");
  if (member(report, "backend") != name) return unreadable("its report is about another backend");
  const std::string level = member(report, "level");
  if (level != "none" && level != "bronze" && level != "silver" && level != "gold")
    return unreadable("its report has no level");
  if (!is_version(member(report, "suite_version")))
    return unreadable("its report has no suite version");
  out.level = level;
  out.suite_version = member(report, "suite_version");
  out.same_build = !build_id.empty() && member(report, "build_id") == build_id;
  return out;
}

claimed_conformance read_conformance(const std::string& manifest, const std::string& name,
                                     const std::string& build_id) {
  if (manifest.empty() || name.empty() || name.find('/') != std::string::npos) return {};
  const auto file = std::filesystem::path(manifest).parent_path() / (name + ".conformance.json");
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) return {};
  // Reading a pipe or a device could block.
  if (!std::filesystem::is_regular_file(file, ignored))
    return unreadable("its report is no regular file");
  const auto text = read_usual_file(file.string(), longest_report);
  if (!text) return unreadable(fmt::format("its report cannot be read: {}", text.error().message));
  return parse_conformance(*text, name, build_id);
}

std::string in_words(const claimed_conformance& claim) {
  if (!claim.problem.empty()) return claim.problem;
  if (claim.level.empty()) return "";
  return fmt::format("{}, suite {}, self-reported{}", claim.level, claim.suite_version,
                     claim.same_build ? "" : ", of another build");
}

}  // namespace bitnet::host
