#include "terminal/line_reader.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <histedit.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cwchar>
#include <filesystem>

#include "files/new_file.hpp"
#include "process/interrupt.hpp"

namespace bitnet::host {
namespace {

constexpr int longest_history = 1000;  // lines

class plain_reader final : public line_reader {
 public:
  outcome read(const std::string&, std::string& line) override {
    line.clear();
    for (;;) {
      if (const auto end = held_.find('\n'); end != std::string::npos) {
        line = held_.substr(0, end);
        held_.erase(0, end + 1);
        return outcome::line;
      }
      std::array<char, 4096> block;
      if (!interrupt::wait_readable(STDIN_FILENO)) return outcome::interrupted;
      const ssize_t n = ::read(STDIN_FILENO, block.data(), block.size());
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) break;
      held_.append(block.data(), static_cast<std::size_t>(n));
    }
    if (held_.empty()) return outcome::end;
    line.swap(held_);
    return outcome::line;
  }

 private:
  std::string held_;  // read, not yet returned
};

// Returns "" if there is no history.
std::string history_file(const environment& variables) {
  const auto home = variables.state_home();
  if (variables.get("BITNET_NOHISTORY") || !home) return "";
  return (*home / "bitnet/history").string();
}

using stream = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

void load_history(History* from, const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return;
  struct stat s{};
  HistEvent event;
  // libedit takes only a name. This one refers to the open file, so it cannot be redirected
  // meanwhile.
  if (::fstat(fd, &s) == 0 && S_ISREG(s.st_mode))
    history(from, &event, H_LOAD, fmt::format("/proc/self/fd/{}", fd).c_str());
  ::close(fd);
}

// The history is private: mode 0600. Failing to save it is not an error.
void save_history(History* from, const std::string& path) {
  // Written to memory first, since libedit sets a mode of its own on files.
  const stream to(::fdopen(::memfd_create("history", MFD_CLOEXEC), "w+"), std::fclose);
  HistEvent event;
  if (!to || history(from, &event, H_SAVE_FP, to.get()) < 0 || std::fflush(to.get()) != 0) return;
  std::string text;
  std::array<char, 4096> block;
  for (ssize_t n = 0; (n = ::pread(::fileno(to.get()), block.data(), block.size(),
                                   static_cast<off_t>(text.size()))) > 0;)
    text.append(block.data(), static_cast<std::size_t>(n));
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
  std::filesystem::permissions(
      path, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write,
      std::filesystem::perm_options::nofollow, ignored);
  (void)files::write_file(path, text, {.mode = S_IRUSR | S_IWUSR, .regular_only = true});
}

class edited_reader final : public line_reader {
 public:
  explicit edited_reader(const environment& variables)
      : edit_(el_init("bitnet", stdin, stderr, stderr)),
        history_(history_init()),
        file_(history_file(variables)) {
    std::setlocale(LC_CTYPE, "C.UTF-8");  // libedit counts characters by it
    HistEvent event;
    history(history_, &event, H_SETSIZE, longest_history);
    history(history_, &event, H_SETUNIQUE, 1);
    if (!file_.empty()) load_history(history_, file_);
    el_set(edit_, EL_CLIENTDATA, this);
    el_set(edit_, EL_PROMPT, &edited_reader::prompt_of);
    el_set(edit_, EL_EDITOR, "emacs");
    el_set(edit_, EL_HIST, history, history_);
    el_set(edit_, EL_SIGNAL, 0);  // Ctrl-C is ours
    el_set(edit_, EL_GETCFN, &edited_reader::next_character);
  }
  ~edited_reader() override {
    if (!file_.empty()) save_history(history_, file_);
    history_end(history_);
    el_end(edit_);
  }
  edited_reader(const edited_reader&) = delete;
  edited_reader& operator=(const edited_reader&) = delete;

  outcome read(const std::string& prompt, std::string& line) override {
    prompt_ = prompt;
    int n = 0;
    el_set(edit_, EL_PREP_TERM,
           1);  // set early, so that nothing is typed too soon
    const char* const text = el_gets(edit_, &n);
    if (interrupt::requested()) {
      el_set(edit_, EL_UNBUFFERED, 0);
      (void)std::fputs("\n", stderr);
      el_reset(edit_);
      return outcome::interrupted;
    }
    if (text == nullptr || n <= 0) return outcome::end;
    line.assign(text, static_cast<std::size_t>(n));
    if (line.ends_with('\n')) line.pop_back();
    if (!line.empty()) {
      HistEvent event;
      history(history_, &event, H_ENTER, line.c_str());
    }
    return outcome::line;
  }

 private:
  // Reads one UTF-8 character. Returns 1; 0 at the end; -1 at Ctrl-C or an error. Invalid bytes are
  // skipped. libedit's own read would miss a Ctrl-C that comes just before it.
  static int next_character(EditLine*, wchar_t* to) {
    std::mbstate_t state{};
    for (;;) {
      if (!interrupt::wait_readable(STDIN_FILENO)) return -1;
      char byte = 0;
      const ssize_t n = ::read(STDIN_FILENO, &byte, 1);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return static_cast<int>(n);
      // A Ctrl-D typed before the terminal was set up arrives as NUL, which is libedit's quoting
      // key.
      if (byte == 0) continue;
      const std::size_t used = std::mbrtowc(to, &byte, 1, &state);
      if (used == 0 || used == 1) return 1;
      if (used == static_cast<std::size_t>(-1)) state = {};
    }
  }

  static char* prompt_of(EditLine* edit) {
    edited_reader* self = nullptr;
    el_get(edit, EL_CLIENTDATA, &self);
    return self->prompt_.data();
  }

  EditLine* edit_;
  History* history_;
  std::string file_;
  std::string prompt_;
};

}  // namespace

std::unique_ptr<line_reader> line_reader::open(const environment& variables) {
  if (::isatty(STDIN_FILENO) == 1 && ::isatty(STDERR_FILENO) == 1) {
    return std::make_unique<edited_reader>(variables);
  }
  return std::make_unique<plain_reader>();
}

}  // namespace bitnet::host
