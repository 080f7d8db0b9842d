#include "code_objects.hpp"

#include <elf.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <optional>

extern "C" const unsigned char bitnet_rocm_archive[], bitnet_rocm_archive_end[];

namespace bitnet::rocm {
namespace {

// As pack.py writes it; numbers are little-endian, as those of all devices that HIP is for.
struct header {
  char magic[8];
  uint32_t entries, unused;
};
struct entry {
  char target[16], base[16], part[24];  // zeros behind them
  uint32_t machine, unused;             // EF_AMDGPU_MACH of the target
  uint64_t offset, bytes;
};
constexpr char magic[] = "BNROCM2";

std::string_view text_of(const char* from, size_t room) {
  return {from, static_cast<size_t>(std::find(from, from + room, '\0') - from)};
}

uint32_t count_of(std::span<const uint8_t> archive) {
  header h{};
  if (archive.size() < sizeof h) return 0;
  std::memcpy(&h, archive.data(), sizeof h);
  const uint64_t room = (archive.size() - sizeof h) / sizeof(entry);
  return std::memcmp(h.magic, magic, sizeof magic) == 0 && h.entries <= room ? h.entries : 0;
}
entry entry_at(std::span<const uint8_t> archive, uint32_t i) {
  entry out{};
  std::memcpy(&out, archive.data() + sizeof(header) + i * sizeof out, sizeof out);
  return out;
}

std::span<const uint8_t> own_archive() {
  return {bitnet_rocm_archive, bitnet_rocm_archive_end};
}

std::optional<entry> find(std::span<const uint8_t> archive, std::string_view target,
                          std::string_view part) {
  for (uint32_t i = 0; i < count_of(archive); ++i) {
    const entry one = entry_at(archive, i);
    if (text_of(one.target, sizeof one.target) == target &&
        text_of(one.part, sizeof one.part) == part)
      return one;
  }
  return std::nullopt;
}

// Whether it begins as a code object does, for whichever target.
bool is_code(const std::vector<uint8_t>& code) {
  Elf64_Ehdr header{};
  if (code.size() < sizeof header) return false;
  std::memcpy(&header, code.data(), sizeof header);
  return std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_machine == EM_AMDGPU;
}

// Targets with the same instructions share code, which is compiled for one of them. The runtime
// looks at the number in the ELF header, and at the name in the code object's note.
void name_target(const entry& one, std::string_view base, std::string_view target,
                 std::vector<uint8_t>& code) {
  // The lowest byte of e_flags is the machine.
  code[offsetof(Elf64_Ehdr, e_flags)] = static_cast<uint8_t>(one.machine);
  const std::string from = "amdgcn-amd-amdhsa--" + std::string(base);
  for (auto at = code.begin();; at += static_cast<std::ptrdiff_t>(from.size())) {
    at = std::search(at, code.end(), from.begin(), from.end());
    if (at == code.end()) return;
    std::copy(target.begin(), target.end(),
              at + static_cast<std::ptrdiff_t>(from.size() - base.size()));
  }
}

}  // namespace

bool has_code(std::string_view target) {
  const std::span<const uint8_t> archive = own_archive();
  for (uint32_t i = 0; i < count_of(archive); ++i) {
    const entry one = entry_at(archive, i);
    if (text_of(one.target, sizeof one.target) == target) return true;
  }
  return false;
}

bool has_code(std::string_view target, std::string_view part) {
  return find(own_archive(), target, part).has_value();
}

std::string built_targets() {
  const std::span<const uint8_t> archive = own_archive();
  std::string out;
  std::vector<std::string> seen;
  for (uint32_t i = 0; i < count_of(archive); ++i) {
    const entry one = entry_at(archive, i);
    std::string target(text_of(one.target, sizeof one.target));
    if (std::find(seen.begin(), seen.end(), target) != seen.end()) continue;
    out += (out.empty() ? "" : ", ") + target;
    seen.push_back(std::move(target));
  }
  return out;
}

std::vector<uint8_t> code_object(std::span<const uint8_t> archive, std::string_view target,
                                 std::string_view part) {
  const std::optional<entry> found = find(archive, target, part);
  if (!found || found->offset > archive.size() || found->bytes > archive.size() - found->offset)
    return {};
  const auto code = archive.subspan(found->offset, found->bytes);
  std::vector<uint8_t> out(code.begin(), code.end());
  const std::string_view base = text_of(found->base, sizeof found->base);
  if (!is_code(out) || base.size() != target.size()) return {};
  if (base != target) name_target(*found, base, target, out);
  return out;
}

std::vector<uint8_t> code_object(std::string_view target, std::string_view part) {
  return code_object(own_archive(), target, part);
}

}  // namespace bitnet::rocm
