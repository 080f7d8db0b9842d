#include "plugin/loading/loaded_libraries.hpp"

#include <fmt/core.h>

#include <fcntl.h>
#include <link.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "plugin/codes/text.hpp"
#include "plugin/trust/trust.hpp"

namespace bitnet::plugin {
namespace {

std::optional<mapped_identity> identity_of(const std::filesystem::path& path) {
  const file_descriptor fd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  return fd.get() < 0 ? std::nullopt : identity_when_mapped(fd.get());
}

// The judged library with the name of this object's file.
const needed_library* judged_as(const loaded_object& object,
                                const std::vector<needed_library>& judged) {
  const std::string name = std::filesystem::path(object.path).filename().string();
  const auto at = std::ranges::find(judged, name, &needed_library::name);
  return at == judged.end() ? nullptr : &*at;
}

bool is_one_of(const mapped_identity& mapped, const needed_library& judged) {
  return identity_of(judged.file) == mapped ||
         std::ranges::any_of(judged.variants,
                             [&](const auto& file) { return identity_of(file) == mapped; });
}

checked<void> check_object(const loaded_object& object, const mapped_identity& mapped,
                           const std::vector<needed_library>& judged) {
  const std::string shown = printable(object.path, 200);
  const char* const advice =
      "run the command again; if it stays, look at what the run paths and "
      "LD_LIBRARY_PATH lead to";
  const needed_library* const known = judged_as(object, judged);
  if (known != nullptr && !known->loaded) {
    if (is_one_of(mapped, *known)) return {};
    return reject(
        code::trust_changed,
        fmt::format(
            "the dynamic linker loaded {} as {}, but what was judged is {}", shown, known->name,
            known->file.empty() ? "that there is none" : printable(known->file.string(), 200)),
        advice);
  }
  const auto trusted = open_trusted(object.path);
  if (trusted && identity_when_mapped(trusted->fd.get()) == mapped) return {};
  return reject(
      code::trust_changed,
      fmt::format("with the plugin the dynamic linker loaded {}, which was not checked{}", shown,
                  trusted ? std::string() : fmt::format(": {}", trusted.error().reason)),
      advice);
}

}  // namespace

std::vector<loaded_object> loaded_objects() {
  std::vector<loaded_object> out;
  const auto add = [](dl_phdr_info* info, std::size_t, void* to) {
    for (unsigned i = 0; i < info->dlpi_phnum; ++i) {
      if (info->dlpi_phdr[i].p_type != PT_LOAD) continue;
      static_cast<std::vector<loaded_object>*>(to)->push_back(
          {info->dlpi_name, info->dlpi_addr + info->dlpi_phdr[i].p_vaddr});
      break;
    }
    return 0;
  };
  dl_iterate_phdr(add, &out);
  return out;
}

std::vector<std::string> stale_libraries(const inspection& plugin) {
  std::vector<std::string> out;
  for (const loaded_object& o : loaded_objects()) {
    const std::string name = std::filesystem::path(o.path).filename().string();
    if (std::ranges::find(plugin.needed, name) == plugin.needed.end()) continue;
    const auto now = identity_of(o.path);
    if (!now || now != mapped_at(o.begin)) out.push_back(o.path);
  }
  return out;
}

checked<void> check_loaded(const std::vector<loaded_object>& before, const mapped_identity& plugin,
                           const std::vector<needed_library>& judged) {
  const auto is_among = [](const loaded_object& object, const std::vector<loaded_object>& all) {
    return std::ranges::find(all, object) != all.end();
  };
  for (const loaded_object& object : loaded_objects()) {
    if (is_among(object, before)) continue;
    const auto mapped = mapped_at(object.begin);
    if (mapped == plugin) continue;                                // the plugin itself
    if (!mapped && !is_among(object, loaded_objects())) continue;  // another thread's, gone again
    if (auto fine = check_object(object, mapped.value_or(mapped_identity{}), judged); !fine)
      return fine;
  }
  return {};
}

}  // namespace bitnet::plugin
