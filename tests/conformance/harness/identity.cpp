#include "harness/identity.hpp"

#include <link.h>

#include <cstring>
#include <string_view>

#include "bitnet/abi/note.h"

namespace bitnet::conformance {
namespace {

struct search {
  const void* address;
  identity found;
};

constexpr std::size_t padded(std::size_t n) {
  return (n + 3) / 4 * 4;
}

void read_note(std::string_view owner, uint32_t type, std::string_view text, identity& out) {
  if (owner == "GNU" && type == NT_GNU_BUILD_ID) {
    constexpr char digits[] = "0123456789abcdef";
    out.build_id.clear();
    for (const char c : text) {
      const auto byte = static_cast<unsigned char>(c);
      out.build_id += digits[byte >> 4];
      out.build_id += digits[byte & 15];
    }
  }
  if (owner != BITNET_NOTE_OWNER || type != BITNET_NOTE_TYPE) return;
  while (!text.empty()) {
    const std::string_view field = text.substr(0, text.find('\0'));
    const auto equals = field.find('=');
    if (equals != std::string_view::npos)
      out.fields.emplace(field.substr(0, equals), field.substr(equals + 1));
    text.remove_prefix(std::min(field.size() + 1, text.size()));
  }
}

void read_notes(const char* at, std::size_t size, identity& out) {
  while (size >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) head;
    std::memcpy(&head, at, sizeof head);
    const std::size_t name = padded(head.n_namesz),
                      all = sizeof head + name + padded(head.n_descsz);
    if (all > size) return;
    const std::string_view owner(at + sizeof head, head.n_namesz == 0 ? 0 : head.n_namesz - 1);
    read_note(owner, head.n_type, {at + sizeof head + name, head.n_descsz}, out);
    at += all;
    size -= all;
  }
}

int look_at(dl_phdr_info* library, std::size_t, void* argument) {
  search& s = *static_cast<search*>(argument);
  bool holds = false;
  const auto wanted = reinterpret_cast<uintptr_t>(s.address);
  for (int i = 0; i < library->dlpi_phnum; ++i) {
    const auto& p = library->dlpi_phdr[i];
    const uintptr_t from = library->dlpi_addr + p.p_vaddr;
    holds |= p.p_type == PT_LOAD && wanted >= from && wanted < from + p.p_memsz;
  }
  if (!holds) return 0;
  for (int i = 0; i < library->dlpi_phnum; ++i) {
    const auto& p = library->dlpi_phdr[i];
    if (p.p_type == PT_NOTE)
      // NOLINTNEXTLINE(performance-no-int-to-ptr): the linker gives addresses as numbers
      read_notes(reinterpret_cast<const char*>(library->dlpi_addr + p.p_vaddr), p.p_memsz, s.found);
  }
  return 1;
}

}  // namespace

identity identity_of(const void* address) {
  search s{address, {}};
  dl_iterate_phdr(look_at, &s);
  return s.found;
}

}  // namespace bitnet::conformance
