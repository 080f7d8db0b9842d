// bench --report: writes the rows as a page.
#include <fmt/format.h>

#include "commands/figures.hpp"
#include "files/new_file.hpp"
#include "measure/report_page.hpp"
#include "model_files/find_model.hpp"

namespace bitnet::host {

result<void> write_report(const invocation& in, const std::vector<ordered_json>& rows) {
  const std::string& target = in.set.text("report");
  if (target.empty()) return {};
  if (auto fine = check_is_no_model(target); !fine) return fine;
  if (auto done = files::write_file(target, measure::report_page(rows)); !done)
    return fail(exit_code::failure, fmt::format("cannot write {}: {}", target, done.error().text));
  return {};
}

}  // namespace bitnet::host
