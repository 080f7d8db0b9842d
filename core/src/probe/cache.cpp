#include "probe/cache.hpp"

#define XXH_INLINE_ALL
#include <fmt/core.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <span>
#include <system_error>
#include <utility>

#include "files/new_file.hpp"
#include "plugin/codes/text.hpp"
#include "plugin/trust/hash.hpp"
#include "plugin/trust/trust.hpp"
#include "text/json_members.hpp"

namespace bitnet::probe {
namespace {

using nlohmann::json;
using plugin::code;

constexpr std::string_view magic = "bitnet probe cache 1 ";
constexpr const char* answer_file = ".probe";
constexpr std::size_t checksum_digits = 16;
constexpr std::size_t header_bytes = magic.size() + checksum_digits + 1;
constexpr uint64_t max_file_bytes = uint64_t{16} << 20;

std::string hex(uint64_t value) {
  std::array<char, 17> out{};
  std::snprintf(out.data(), out.size(), "%016llx", static_cast<unsigned long long>(value));
  return out.data();
}

uint64_t checksum(std::string_view text) {
  return XXH3_64bits(text.data(), text.size());
}

std::unexpected<plugin::defect> damaged(const char* why) {
  return plugin::reject(code::probe_message, fmt::format("it is damaged: {}", why));
}

bool is_crash(code c) {
  return c == code::probe_crash || c == code::probe_exit;
}

// An outcome that does not depend on the plugin is not kept.
bool is_worth_keeping(const outcome& f) {
  if (!f.what.fault) return true;
  const code c = f.what.fault->code;
  return c != code::probe_helper && c != code::trust_changed && c != code::trust_missing;
}

// Hash of a plugin's bytes, "" if they cannot be read. It reads the whole file, so only for files
// that crash.
std::string content_of(const std::filesystem::path& library) {
  constexpr uint64_t largest = uint64_t{1} << 30;
  const auto file = plugin::open_trusted(library);
  if (!file) return "";
  const auto bytes = plugin::read_all(*file, largest);
  return bytes ? plugin::sha256_of(std::as_bytes(std::span(*bytes))) : "";
}

// Whether this is not the file that crashed, even if the build id is equal: a repair may keep the
// id.
bool is_other_file(const std::string& crashed, const std::filesystem::path& library) {
  if (crashed.empty()) return false;
  const std::string now = content_of(library);
  return !now.empty() && now != crashed;
}

void quarantine(outcome& f, uint32_t strikes) {
  if (!f.what.fault) return;
  f.quarantined = true;
  plugin::defect& d = *f.what.fault;
  d.reason = fmt::format("quarantined: this build crashed {} times, last it {}", strikes, d.reason);
  d.code = code::probe_quarantine;
  d.hint.clear();
}

}  // namespace

std::string write_entry(const cache_entry& e) {
  // The outcome is stored as text, so that only its own parser reads it.
  const std::string body = json({{"build_id", e.build_id},
                                 {"fingerprint", e.fingerprint},
                                 {"written_s", e.written_s},
                                 {"keep_s", e.keep_s},
                                 {"strikes", e.strikes},
                                 {"content", e.content},
                                 {"outcome", write_outcome(e.what)}})
                               .dump(-1, ' ', false, json::error_handler_t::replace);
  return fmt::format("{}{}\n{}", magic, hex(checksum(body)), body);
}

plugin::checked<cache_entry> read_entry(std::string_view entry) {
  if (entry.size() < header_bytes || !entry.starts_with(magic) || entry[header_bytes - 1] != '\n')
    return damaged("it begins otherwise");
  const std::string_view body = entry.substr(header_bytes);
  if (entry.substr(magic.size(), checksum_digits) != hex(checksum(body)))
    return damaged("its checksum is wrong");
  constexpr int deepest = 2;
  const json from = json::parse(
      body, [](int depth, json::parse_event_t, json&) { return depth <= deepest; }, false);
  if (from.is_discarded() || !from.is_object()) return damaged("it is no JSON object");
  const auto number_of = [&](const char* key) -> int64_t {
    const json& x = text::at(from, key);
    const bool fits = x.is_number_unsigned() && std::in_range<int64_t>(x.get<uint64_t>());
    return fits ? x.get<int64_t>() : -1;
  };
  cache_entry out;
  out.build_id = text::text_at(from, "build_id");
  out.fingerprint = text::text_at(from, "fingerprint");
  out.content = text::text_at(from, "content");
  out.written_s = number_of("written_s");
  out.keep_s = number_of("keep_s");
  const int64_t strikes = number_of("strikes");
  if (out.written_s < 0 || out.keep_s < 0 || out.keep_s > longest_keep_s || strikes < 0 ||
      strikes > 1'000'000)
    return damaged("a number is impossible");
  out.strikes = static_cast<uint32_t>(strikes);
  auto what = read_outcome(text::text_at(from, "outcome"));
  if (!what) return std::unexpected(std::move(what.error()));
  out.what = std::move(*what);
  return out;
}

// One file per build, wherever the plugin lies, so that a quarantine follows it.
std::filesystem::path cache::file_of(const cache_key& key, const char* extension) const {
  const bool named = !key.build_id.empty() && key.build_id.size() <= 128 &&
                     key.build_id.find_first_not_of("0123456789abcdef") == std::string::npos;
  return folder_ /
         (fmt::format("{}-{}{}", key.name,
                      named ? key.build_id : hex(checksum(key.library.string())), extension));
}

std::filesystem::path cache::lock_of(const cache_key& key) const {
  return file_of(key, ".lock");
}

std::filesystem::path cache::drivers_of(const cache_key& key) const {
  return file_of(key, ".drivers");
}

bool cache::prepare() const {
  return plugin::open_trusted_directory(folder_, plugin::missing_directory::make).has_value();
}

// Writes into the checked folder, wherever its path leads by now. Returns "" or the error.
std::string cache::write(const cache_key& key, const std::string& text) const {
  const auto folder = plugin::open_trusted_directory(folder_, plugin::missing_directory::make);
  if (!folder) return folder.error().reason;
  const std::filesystem::path path = file_of(key, answer_file);
  const auto written = [&]() -> files::new_file::outcome {
    auto file = files::new_file::create_in(folder->get(), path.filename().string(),
                                           {.mode = 0600, .regular_only = true});
    if (!file) return std::unexpected(file.error());
    if (auto fine = file->write(text); !fine) return fine;
    // If the system crashes before the data are written, the checksum detects it.
    return file->finish(files::new_file::flush::no);
  }();
  if (written) return "";
  return fmt::format("{}: {}", plugin::printable(path.string(), 400), written.error().text);
}

std::optional<cache_entry> cache::read(const cache_key& key,
                                       std::vector<std::string>& notes) const {
  const auto file = plugin::open_trusted(file_of(key, answer_file));
  if (!file) {
    if (file.error().code != code::trust_missing)
      notes.push_back(fmt::format("what was remembered of backend {} is not used: {}", key.name,
                                  file.error().reason));
    return std::nullopt;
  }
  const auto text = plugin::read_all(*file, max_file_bytes);
  auto entry =
      text ? read_entry(*text) : plugin::checked<cache_entry>(std::unexpected(text.error()));
  if (!entry) {
    notes.push_back(fmt::format("{} is not used: {}", plugin::printable(file->path.string(), 400),
                                entry.error().reason));
    return std::nullopt;
  }
  if (entry->build_id != key.build_id) return std::nullopt;
  return std::move(*entry);
}

std::optional<outcome> cache::recall(const cache_key& key, int64_t now_s,
                                     std::vector<std::string>& notes) const {
  auto entry = read(key, notes);
  if (!entry || entry->written_s > now_s) return std::nullopt;  // the clock was set back
  outcome out = std::move(entry->what);
  out.cached = true;
  out.age_s = now_s - entry->written_s;
  if (out.what.fault && is_crash(out.what.fault->code) && entry->strikes >= strikes_out) {
    if (entry->fingerprint != key.fingerprint && is_other_file(entry->content, key.library))
      return std::nullopt;
    quarantine(out, entry->strikes);
    return out;
  }
  if (entry->fingerprint != key.fingerprint) return std::nullopt;
  if (!out.what.fault) return out;
  if (out.age_s >= entry->keep_s) return std::nullopt;
  out.retry_in_s = entry->keep_s - out.age_s;
  return out;
}

void cache::remember(const cache_key& key, int64_t now_s, bool fresh, outcome& f) const {
  if (!is_worth_keeping(f)) return;
  std::vector<std::string> ignored;
  auto before = fresh ? std::nullopt : read(key, ignored);
  if (before && before->strikes >= strikes_out && is_other_file(before->content, key.library))
    before.reset();  // the strikes belong to another file
  cache_entry e;
  e.build_id = key.build_id;
  e.fingerprint = key.fingerprint;
  e.written_s = now_s;
  if (f.what.fault) {
    const bool again = before && before->what.what.fault;
    e.keep_s = again ? std::clamp(before->keep_s * 2, first_keep_s, longest_keep_s) : first_keep_s;
    if (is_crash(f.what.fault->code)) e.strikes = (again ? before->strikes : 0) + 1;
    f.retry_in_s = e.keep_s;
  }
  if (e.strikes >= strikes_out) e.content = content_of(key.library);
  e.what = f;
  if (!prepare()) return;
  if (const std::string problem = write(key, write_entry(e)); !problem.empty())
    f.notes.push_back(fmt::format("the answer is not remembered: {}", problem));
  drop_old_builds(key, now_s);
  if (e.strikes >= strikes_out) quarantine(f, e.strikes);
}

std::optional<outcome> cache::last_of(const cache_key& key) const {
  std::vector<std::string> ignored;
  auto entry = read(key, ignored);
  if (!entry) return std::nullopt;
  return std::move(entry->what);
}

void cache::forget(const cache_key& key) const {
  std::error_code ignored;
  std::filesystem::remove(file_of(key, answer_file), ignored);
  std::filesystem::remove_all(drivers_of(key), ignored);
}

// Each upgrade of a plugin is a new build, and leaves the old one's driver cache.
void cache::drop_old_builds(const cache_key& key, int64_t now_s) const {
  const std::string start = key.name + "-";
  const std::string mine = file_of(key, answer_file).filename().string();
  std::error_code ignored;
  for (std::filesystem::directory_iterator at(folder_, ignored), end; !ignored && at != end;
       at.increment(ignored)) {
    const std::string name = at->path().filename().string();
    struct stat facts{};
    // A longer name with the same start belongs to another backend; its builds are as old.
    if (!name.starts_with(start) || !name.ends_with(answer_file) || name == mine ||
        lstat(at->path().c_str(), &facts) != 0 || now_s - facts.st_mtim.tv_sec < old_build_s)
      continue;
    std::error_code refused;
    std::filesystem::path beside = at->path();
    std::filesystem::remove(beside, refused);
    std::filesystem::remove_all(beside.replace_extension(".drivers"), refused);
  }
}

}  // namespace bitnet::probe
