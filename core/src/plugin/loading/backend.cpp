#include "plugin/loading/backend.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "plugin/codes/text.hpp"
#include "plugin/inspection/inspect.hpp"
#include "plugin/loading/foreign_error.hpp"
#include "plugin/loading/host_table.hpp"
#include "plugin/loading/kept_state.hpp"
#include "plugin/loading/running_call.hpp"
#include "plugin/loading/shared_library.hpp"
#include "plugin/loading/slots.hpp"

namespace bitnet::plugin {
namespace {

constexpr unsigned char canary_byte = 0xC5;
constexpr uint64_t quiesce_ns = 2'000'000'000;

// The table that the plugin fills. Guard bytes behind it show if it wrote more than the given size.
// The guard is as large as a table, so that it detects a plugin with a much longer table.
struct guarded_table {
  bitnet_backend_v0 table{};
  std::array<unsigned char, sizeof(bitnet_backend_v0)> canary;

  guarded_table() {
    table.struct_size = sizeof table;
    canary.fill(canary_byte);
  }
  [[nodiscard]] bool intact() const {
    return std::ranges::all_of(canary, [](unsigned char c) { return c == canary_byte; });
  }
};

const bitnet_interface_header* no_interface(bitnet_backend*, bitnet_str, uint32_t) {
  return nullptr;
}

uint32_t next_copy_number(const std::string& name) {
  static std::mutex mutex;
  static std::map<std::string, uint32_t> counts;
  const std::scoped_lock lock(mutex);
  return ++counts[name];
}

std::string subject(const std::string& name) {
  return fmt::format("backend {}: ", name);
}

// The library has no entry of this core's major: finds out whether it has an entry of another major
// or is no plugin.
defect explain_missing_entry(const shared_library& library, const std::string& name) {
  constexpr uint32_t newest_known = 9;
  for (uint32_t major = 0; major <= newest_known; ++major)
    if (library.function<void()>(("bitnet_backend_abi" + std::to_string(major)).c_str()) != nullptr)
      return other_major(name, major);
  return {code::abi_entry, BITNET_REJECTED,
          fmt::format("{}exports no entry symbol " BITNET_BACKEND_ENTRY_NAME, subject(name)),
          "build the plugin with bitnet_add_backend"};
}

std::unexpected<defect> bad_table(const std::string& name, const std::string& why) {
  return reject(code::abi_table, subject(name) + why);
}

checked<void> check_rejection(const std::string& name, bitnet_status status,
                              const bitnet_backend_v0& table, const bitnet_error& error) {
  if (status == BITNET_OK) return {};
  if (status == BITNET_INCOMPATIBLE)
    return std::unexpected(other_minor(name, table.need_minor_min, table.need_minor_max));
  defect d{code::abi_entry, BITNET_REJECTED,
           fmt::format("{}its entry function failed: {}", subject(name), describe(status, error)),
           "", origin_of(error)};
  if (status == BITNET_UNAVAILABLE) d.status = BITNET_UNAVAILABLE;
  return std::unexpected(std::move(d));
}

// Checks sizes, numbers and required slots; returns a table without null slots.
checked<bitnet_backend_v0> check_table(const std::string& name, const bitnet_backend_v0& filled) {
  if (filled.struct_size != sizeof(bitnet_backend_v0))
    return bad_table(name, fmt::format("it changed struct_size from {} to {}", sizeof filled,
                                       filled.struct_size));
  if (filled.filled_size < required_bytes || filled.filled_size > sizeof filled)
    return bad_table(
        name, fmt::format(
                  "its table has {} bytes; the required part has {} and the host gave room for {}",
                  filled.filled_size, required_bytes, sizeof filled));
  if (filled.abi_minor > BITNET_ABI_MINOR || filled.abi_minor < oldest_minor)
    return bad_table(name, fmt::format("it chose ABI minor {}, the host offered {} to {}",
                                       filled.abi_minor, oldest_minor, BITNET_ABI_MINOR));
  if (filled.reserved_0 != 0)
    return bad_table(name,
                     fmt::format("reserved_0 of its table is {:#x}; the plugin must leave it 0",
                                 filled.reserved_0));
  for (std::size_t i = 0; i < std::size(filled.features_used); ++i)
    if (filled.features_used[i] != 0)
      return bad_table(name, fmt::format("features_used[{}] of its table is {:#x}, but the host "
                                         "offers no features; the plugin must leave it 0",
                                         i, filled.features_used[i]));

  bitnet_backend_v0 out{};
  std::memcpy(&out, &filled, filled.filled_size);
  for (const slot& s : required_slots) {
    void* address = nullptr;
    std::memcpy(static_cast<void*>(&address), reinterpret_cast<const char*>(&out) + s.offset,
                sizeof address);
    if (address == nullptr)
      return reject(code::abi_slot,
                    fmt::format("{}the required slot '{}' is null", subject(name), s.name));
  }
  if (out.query_interface == nullptr) out.query_interface = no_interface;
  return out;
}

checked<std::string> copy_text(const std::string& name, const char* what, bitnet_str text) {
  constexpr uint64_t max_bytes = 255;
  if (text.data == nullptr && text.size != 0)
    return bad_table(
        name, fmt::format("info() gives a {} of {} bytes and no address of them", what, text.size));
  if (text.size > max_bytes)
    return bad_table(name, fmt::format("info() gives a {} of {} bytes; {} is the most", what,
                                       text.size, max_bytes));
  return text.size == 0 ? std::string() : printable({text.data, text.size}, max_bytes);
}

}  // namespace

struct backend::contents {
  bitnet_host_v0 host{};  // the plugin keeps this address until close
  bitnet_backend_v0 table{};
  std::string name, version;
  settings given;
  uint32_t life_flags = 0;
  bool may_unload = false;
  std::unique_ptr<shared_library> library;
  std::shared_ptr<plugin::complaints> complaints;
};

backend::backend(std::unique_ptr<contents> c) : contents_(std::move(c)) {}

backend::~backend() {
  std::optional<kept_process> kept(contents_->complaints);
  bitnet_error error = blank_error();
  bool quiet = false;
  {
    const running_call now("quiesce");
    quiet = contents_->table.quiesce(contents_->table.self, quiesce_ns, &error) == BITNET_OK;
  }
  {
    const running_call now("close");
    contents_->table.close(contents_->table.self);
  }
  kept.reset();
  // Code that may still run or be called stays mapped.
  if (quiet && contents_->may_unload && (contents_->life_flags & BITNET_LIFE_UNLOADABLE) != 0)
    contents_->library->release();
}

const bitnet_backend_v0& backend::table() const {
  return contents_->table;
}

const std::string& backend::name() const {
  return contents_->name;
}

const std::string& backend::version() const {
  return contents_->version;
}

const backend::settings& backend::given() const {
  return contents_->given;
}

const file_identity& backend::file() const {
  return contents_->library->file();
}

const std::shared_ptr<const trusted_file>& backend::opened_file() const {
  return contents_->library->opened();
}

mapped_identity backend::mapped() const {
  return contents_->library->mapped();
}

const std::shared_ptr<complaints>& backend::complaints() const {
  return contents_->complaints;
}

uint32_t backend::life_flags() const {
  return contents_->life_flags;
}

checked<std::shared_ptr<backend>> backend::open(const std::filesystem::path& library,
                                                const std::string& expected_name, uint32_t purpose,
                                                host_services& host, const settings& extra,
                                                bool may_unload) {
  if (!library.is_absolute())
    return reject(code::abi_load,
                  fmt::format("'{}' is not an absolute path, so it will not be loaded",
                              printable(library.string(), 400)));
  auto file = open_trusted(library);
  if (!file) return std::unexpected(std::move(file.error()));
  return open(std::move(*file), expected_name, purpose, host, extra, may_unload);
}

// Checks what the open plugin says about itself.
checked<void> backend::introduce(const std::string& expected_name) {
  bitnet_backend_info info{};
  info.struct_size = sizeof info;
  bitnet_error error = blank_error();
  const running_call now("info");
  if (const auto failed = contents_->table.info(contents_->table.self, &info, &error);
      failed != BITNET_OK)
    return reject(code::abi_entry, fmt::format("{}info() failed: {}", subject(expected_name),
                                               describe(failed, error)));
  if (info.struct_size != sizeof info)
    return bad_table(expected_name, fmt::format("info() changed struct_size from {} to {}",
                                                sizeof info, info.struct_size));
  auto name = copy_text(expected_name, "name", info.name);
  auto version = copy_text(expected_name, "version", info.version);
  if (!name) return std::unexpected(std::move(name.error()));
  if (!version) return std::unexpected(std::move(version.error()));
  for (const auto& [what, text] : {std::pair("vendor", info.vendor), {"license", info.license}}) {
    const auto copied = copy_text(expected_name, what, text);
    if (!copied) return std::unexpected(copied.error());
    if (copied->empty()) return bad_table(expected_name, fmt::format("info() gives no {}", what));
  }
  if (const auto driver = copy_text(expected_name, "driver", info.driver); !driver)
    return std::unexpected(driver.error());
  if (version->empty()) return bad_table(expected_name, "info() gives no version");
  if (*name != expected_name)
    return reject(code::abi_identity,
                  fmt::format("{}when loaded it calls itself '{}'", subject(expected_name), *name));
  contents_->name = std::move(*name);
  contents_->version = std::move(*version);
  contents_->life_flags = info.life_flags;
  return {};
}

checked<std::shared_ptr<backend>> backend::open(trusted_file file, const std::string& expected_name,
                                                uint32_t purpose, host_services& host,
                                                const settings& extra, bool may_unload) {
  const auto seen = std::make_shared<plugin::complaints>(host, expected_name);
  const kept_process kept(seen);
  auto mapped = shared_library::open(std::move(file));
  if (!mapped) return std::unexpected(std::move(mapped.error()));
  auto* const entry =
      mapped->function<std::remove_pointer_t<bitnet_backend_entry>>(BITNET_BACKEND_ENTRY_NAME);
  if (entry == nullptr) return std::unexpected(explain_missing_entry(*mapped, expected_name));

  auto c = std::make_unique<contents>();
  c->host = make_host_table(host);
  c->complaints = seen;
  c->may_unload = may_unload;
  c->given = host.params(expected_name);
  c->given.insert(c->given.end(), extra.begin(), extra.end());
  std::vector<bitnet_param> params;
  params.reserve(c->given.size());
  for (const auto& [key, value] : c->given)
    params.push_back({{key.data(), key.size()}, {value.data(), value.size()}});
  bitnet_open_request request{};
  request.struct_size = sizeof request;
  request.purpose = purpose;
  request.abi_minor_min = oldest_minor;
  request.abi_minor_max = BITNET_ABI_MINOR;
  request.generation = next_copy_number(expected_name);
  request.n_params = static_cast<uint32_t>(params.size());
  request.params = params.data();

  const auto out = std::make_unique<guarded_table>();
  bitnet_error error = blank_error();
  bitnet_status status = BITNET_INTERNAL;
  {
    const running_call now(BITNET_BACKEND_ENTRY_NAME);
    status = entry(&c->host, &request, &out->table, &error);
  }
  // Slots of a table that broke a rule are never called, not even close.
  if (!out->intact())
    return reject(code::abi_overrun,
                  fmt::format("{}it wrote behind the {} bytes that the host gave it",
                              subject(expected_name), sizeof out->table));
  if (auto fine = check_rejection(expected_name, status, out->table, error); !fine)
    return std::unexpected(std::move(fine.error()));
  auto table = check_table(expected_name, out->table);
  if (!table) return std::unexpected(std::move(table.error()));
  c->table = *table;
  c->library = std::make_unique<shared_library>(std::move(*mapped));
  std::shared_ptr<backend> self(new backend(std::move(c)));  // from here on close() is called

  if (auto ok = self->introduce(expected_name); !ok) return std::unexpected(std::move(ok.error()));
  return self;
}

result<std::shared_ptr<backend>> backend::load(const std::filesystem::path& library,
                                               const std::string& expected_name, uint32_t purpose,
                                               host_services& host) {
  auto opened = open(library, expected_name, purpose, host);
  if (!opened) return std::unexpected(opened.error().as_failure());
  return std::move(*opened);
}

}  // namespace bitnet::plugin
