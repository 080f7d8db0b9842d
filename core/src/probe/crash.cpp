#include "probe/crash.hpp"

#include <cxxabi.h>
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/socket.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "plugin/loading/running_call.hpp"
#include "plugin/trust/file_map.hpp"
#include "plugin/trust/trust.hpp"
#include "probe/frame.hpp"

namespace bitnet::probe {
namespace {

struct named_function {
  uint64_t address = 0, size = 0;  // as in the file
  std::string name;
};

// Written before a crash; the handler only reads it.
struct knowledge {
  int fd = -1;
  pid_t process = 0;
  std::string library;                    // its file name
  std::vector<named_function> functions;  // by address
  std::array<char, 160> test{};
};

knowledge& crash_knowledge() {
  static auto* const all = new knowledge;  // never destroyed: the process may crash while it ends
  return *all;
}

// Text in preallocated memory: a signal handler must not allocate.
class crash_text {
 public:
  static constexpr std::size_t most = 1000;  // bytes
  crash_text& operator<<(std::string_view text) {
    const std::size_t n = std::min(text.size(), bytes_.size() - size_);
    std::memcpy(bytes_.data() + size_, text.data(), n);
    size_ += n;
    return *this;
  }
  crash_text& hex(uint64_t number) {
    std::array<char, 16> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number, 16).ptr;
    return *this << "0x" << std::string_view(digits.data(), end);
  }
  [[nodiscard]] std::string_view text() const { return {bytes_.data(), size_}; }

 private:
  std::array<char, most> bytes_{};
  std::size_t size_ = 0;
};

// The object at an address, by the linker's name, and the offset in it.
struct code_location {
  std::string_view object;
  uint64_t offset = 0;

  // Only the plugin is mapped through a descriptor: "/proc/4711/fd/.//7".
  [[nodiscard]] bool is_plugin() const {
    return object.starts_with("/proc/") && object.contains("/fd/");
  }
};

std::optional<code_location> location_of(uint64_t address) {
  dl_find_object found{};
  // NOLINTNEXTLINE(performance-no-int-to-ptr): from a register
  if (_dl_find_object(reinterpret_cast<void*>(address), &found) != 0) return std::nullopt;
  const link_map* map = found.dlfo_link_map;
  return code_location{map->l_name == nullptr ? "" : map->l_name, address - map->l_addr};
}

const named_function* function_at(uint64_t offset) {
  const auto& all = crash_knowledge().functions;
  const auto behind = std::ranges::upper_bound(all, offset, {}, &named_function::address);
  if (behind == all.begin()) return nullptr;
  const named_function& f = *(behind - 1);
  return offset - f.address < std::max<uint64_t>(f.size, 1) ? &f : nullptr;
}

void describe(crash_text& out, const code_location& p) {
  if (p.is_plugin()) {
    if (const named_function* f = function_at(p.offset); f != nullptr) {
      out << f->name << "+";
      out.hex(p.offset - f->address);
      out << " ";
    }
    out << "(" << crash_knowledge().library << "+";
    out.hex(p.offset);
    out << ")";
    return;
  }
  const std::size_t slash = p.object.rfind('/');
  out << (p.object.empty() ? "bitnet-backend-probe" : p.object.substr(slash + 1)) << "+";
  out.hex(p.offset);
}

void send_frame(std::string_view text) {
  const auto header = encode_header(frame_kind::crash, text);
  std::array<std::byte, sizeof header + crash_text::most> frame{};
  std::memcpy(frame.data(), header.data(), header.size());
  std::memcpy(frame.data() + header.size(), text.data(), text.size());
  // In one call, since other threads may send logs meanwhile; and without waiting for a reader,
  // since the process is ending.
  send(crash_knowledge().fd, frame.data(), header.size() + text.size(), MSG_NOSIGNAL);
}

// `by`: the place in the plugin that led to a crash outside of it.
void report(int number, const siginfo_t& info, uint64_t at, std::optional<code_location> by) {
  crash_text out;
  if (const char* slot = plugin::running_slot; slot != nullptr) out << ", in " << slot << "()";
  if (crash_knowledge().test[0] != 0) out << ", testing " << crash_knowledge().test.data();
  if (const auto p = location_of(at)) {
    out << ", at ";
    describe(out, *p);
  }
  if (by) {
    out << ", called from ";
    describe(out, *by);
  }
  if (number != SIGABRT) {
    out << ", address ";
    out.hex(reinterpret_cast<uint64_t>(info.si_addr));
  }
  send_frame(out.text());
}

uint64_t instruction_of(const void* context) {
  const auto& machine = static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  return static_cast<uint64_t>(machine.gregs[REG_RIP]);
#elif defined(__aarch64__)
  return machine.pc;
#else
  return 0;
#endif
}

// Stops at the first frame in the plugin.
_Unwind_Reason_Code look_for_plugin(_Unwind_Context* frame, void* out) {
  const auto p = location_of(_Unwind_GetIP(frame) - 1);  // the call, not the return address
  if (!p || !p->is_plugin()) return _URC_NO_REASON;
  *static_cast<std::optional<code_location>*>(out) = p;
  return _URC_END_OF_STACK;
}

// A crash in here ends the process after the parts already sent.
void report_and_end(int number, siginfo_t* info, void* context) {
  std::signal(number, SIG_DFL);
  if (getpid() == crash_knowledge().process) {  // else a process that the plugin started
    const uint64_t at = instruction_of(context);
    report(number, *info, at, std::nullopt);
    const auto p = location_of(at);
    std::optional<code_location> by;
    if (!p || !p->is_plugin()) _Unwind_Backtrace(look_for_plugin, &by);
    if (by) report(number, *info, at, by);
  }
  raise(number);
}

std::string demangled(const char* name) {
  int status = -1;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(name, nullptr, nullptr, &status), std::free);
  return status == 0 && text ? text.get() : name;
}

template <class T>
std::optional<T> part_at(std::span<const std::byte> file, uint64_t offset) {
  T out;
  if (offset > file.size() || file.size() - offset < sizeof out) return std::nullopt;
  std::memcpy(&out, file.data() + offset, sizeof out);
  return out;
}

// Functions of .symtab, which the linker does not need and stripping removes. Bounds are checked;
// damaged entries get no name.
std::vector<named_function> functions_of(std::span<const std::byte> file) {
  constexpr uint64_t most = 100'000, most_demangled = 20'000;
  std::vector<named_function> out;
  const auto header = part_at<Elf64_Ehdr>(file, 0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return out;
  const auto section = [&](uint64_t i) {
    return i < header->e_shnum ? part_at<Elf64_Shdr>(file, header->e_shoff + i * sizeof(Elf64_Shdr))
                               : std::nullopt;
  };
  for (uint64_t i = 0; i < header->e_shnum; ++i) {
    const auto table = section(i);
    if (!table || table->sh_type != SHT_SYMTAB) continue;
    const auto names = section(table->sh_link);
    if (!names || names->sh_offset > file.size()) return out;
    const auto texts = file.subspan(names->sh_offset);
    const uint64_t n = std::min(table->sh_size / sizeof(Elf64_Sym), most);
    for (uint64_t k = 0; k < n; ++k) {
      const auto s = part_at<Elf64_Sym>(file, table->sh_offset + k * sizeof(Elf64_Sym));
      if (!s || s->st_name >= texts.size()) break;
      if (ELF64_ST_TYPE(s->st_info) != STT_FUNC || s->st_shndx == SHN_UNDEF) continue;
      const auto* name = reinterpret_cast<const char*>(texts.data()) + s->st_name;
      if (std::memchr(name, 0, texts.size() - s->st_name) == nullptr) break;
      out.push_back({s->st_value, s->st_size, n > most_demangled ? name : demangled(name)});
    }
  }
  std::ranges::sort(out, {}, &named_function::address);
  return out;
}

}  // namespace

running_test::running_test(const std::string& what) {
  auto& room = crash_knowledge().test;
  room[std::min(what.copy(room.data(), room.size() - 1), room.size() - 1)] = 0;
}

running_test::~running_test() {
  crash_knowledge().test[0] = 0;
}

void report_crashes(int fd, const std::filesystem::path& library) {
  knowledge& k = crash_knowledge();
  k.fd = fd;
  k.process = getpid();
  k.library = library.filename().string();
  plugin::notes_running_slot = true;
  // The first unwind loads the libraries that it needs.
  std::optional<code_location> nowhere;
  _Unwind_Backtrace(look_for_plugin, &nowhere);
  // A full stack has no room for a handler.
  static std::array<char, size_t{64} * 1024> room;
  const stack_t own{.ss_sp = room.data(), .ss_flags = 0, .ss_size = room.size()};
  sigaltstack(&own, nullptr);
  struct sigaction how{};
  how.sa_sigaction = report_and_end;
  how.sa_flags = static_cast<int>(SA_SIGINFO | SA_NODEFER | SA_ONSTACK);
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT})
    sigaction(number, &how, nullptr);
  // After the handlers are set: the handler of mappings passes faults to the previous one.
  if (const auto file = plugin::open_any(library))
    if (const auto map = plugin::file_map::open(file->fd.get(), file->identity.size_bytes))
      k.functions = functions_of(map->bytes());
}

}  // namespace bitnet::probe
