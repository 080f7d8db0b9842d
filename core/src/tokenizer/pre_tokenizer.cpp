#define PCRE2_CODE_UNIT_WIDTH 8
#include "tokenizer/pre_tokenizer.hpp"

#include <fmt/core.h>

#include <pcre2.h>

#include <algorithm>
#include <limits>
#include <new>

namespace bitnet::tokenizer {
namespace {

// Unicode White_Space. PCRE2's own \s adds U+180E, which no tokenizer counts.
constexpr std::string_view white_space =
    R"(\x09-\x0D\x20\x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})";

// Replaces \s and \S by this class.
std::string expanded(std::string_view expression) {
  std::string out;
  bool in_class = false;
  for (size_t i = 0; i < expression.size(); ++i) {
    const char c = expression[i];
    const char next = i + 1 < expression.size() ? expression[i + 1] : '\0';
    if (c == '\\' && (next == 's' || next == 'S')) {
      if (!in_class) out += next == 's' ? "[" : "[^";
      out += white_space;
      if (!in_class) out += ']';
      ++i;
    } else if (c == '\\') {
      out += {c, next};
      ++i;
    } else {
      in_class = c == '[' || (in_class && c != ']');
      out += c;
    }
  }
  return out;
}

std::string pcre2_message(int code) {
  char text[160] = {};
  pcre2_get_error_message(code, reinterpret_cast<unsigned char*>(text), sizeof text);
  return text;
}

struct data_deleter {
  void operator()(pcre2_match_data* d) const noexcept { pcre2_match_data_free(d); }
};
struct context_deleter {
  void operator()(pcre2_match_context* c) const noexcept { pcre2_match_context_free(c); }
};

// Finds the next match; uses the interpreter if the compiled code exceeds its 32 KiB stack.
int next_match(const pcre2_code* code, std::string_view text, size_t from, pcre2_match_data* data,
               pcre2_match_context* context) {
  const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  const uint32_t options = PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY;
  const int rc = pcre2_match(code, subject, text.size(), from, options, data, context);
  if (rc != PCRE2_ERROR_JIT_STACKLIMIT) return rc;
  return pcre2_match(code, subject, text.size(), from, options | PCRE2_NO_JIT, data, context);
}

}  // namespace

void pre_tokenizer::code_deleter::operator()(void* code) const noexcept {
  pcre2_code_free(static_cast<pcre2_code*>(code));
}

pre_tokenizer::pre_tokenizer() = default;
pre_tokenizer::pre_tokenizer(pre_tokenizer&&) noexcept = default;
pre_tokenizer& pre_tokenizer::operator=(pre_tokenizer&&) noexcept = default;
pre_tokenizer::~pre_tokenizer() = default;

result<pre_tokenizer> pre_tokenizer::make(const std::vector<split_step>& steps, engine how) {
  pre_tokenizer out;
  for (const split_step& s : steps) {
    const std::string text = expanded(s.expression);
    int error = 0;
    size_t offset = 0;
    pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
                                     PCRE2_UTF, &error, &offset, nullptr);
    if (code == nullptr) {
      return fail(BITNET_INTERNAL,
                  fmt::format("pre-tokenizer expression, at {}: {}", offset, pcre2_message(error)));
    }
    out.steps_.push_back({std::unique_ptr<void, code_deleter>(code), s.where});
    // Without it, or on platforms without a compiler, PCRE2 interprets.
    if (how == engine::compiled) (void)pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
  }
  return out;
}

result<std::vector<std::string_view>> pre_tokenizer::split(std::string_view text) const {
  const std::unique_ptr<pcre2_match_data, data_deleter> data(pcre2_match_data_create(1, nullptr));
  const std::unique_ptr<pcre2_match_context, context_deleter> context(
      pcre2_match_context_create(nullptr));
  if (!data || !context) throw std::bad_alloc();
  // The expressions need a few steps per byte, so a limit linear in the text stops only faulty
  // ones.
  const size_t steps =
      std::min<size_t>(64 * text.size() + 100'000, std::numeric_limits<uint32_t>::max());
  pcre2_set_match_limit(context.get(), static_cast<uint32_t>(steps));
  pcre2_set_depth_limit(context.get(), 1000);
  pcre2_set_heap_limit(context.get(), 64 * 1024);  // KiB

  std::vector<std::string_view> pieces;
  if (!text.empty()) pieces.push_back(text);
  for (const step& s : steps_) {
    const auto* code = static_cast<const pcre2_code*>(s.code.get());
    std::vector<std::string_view> finer;
    finer.reserve(std::max(pieces.size(), text.size() / 4));
    for (const std::string_view piece : pieces) {
      size_t cut = 0;   // start of the piece that is not written yet
      size_t done = 0;  // end of the last match
      const auto cut_at = [&](size_t at) {
        if (at > cut) finer.push_back(piece.substr(cut, at - cut));
        cut = at;
      };
      while (done < piece.size()) {
        const int rc = next_match(code, piece, done, data.get(), context.get());
        if (rc == PCRE2_ERROR_NOMATCH) break;
        if (rc < 0) {
          const auto at = static_cast<size_t>(piece.data() - text.data()) + done;
          return fail(BITNET_INVALID_ARGUMENT,
                      fmt::format("splitting the text at byte {}: {}; give it in shorter parts", at,
                                  pcre2_message(rc)));
        }
        const size_t* range = pcre2_get_ovector_pointer(data.get());
        if (s.where == split_step::only_matches) cut = range[0];
        cut_at(range[0]);
        if (s.where != split_step::cut_before) cut_at(range[1]);
        done = range[1];
      }
      if (s.where != split_step::only_matches) cut_at(piece.size());
    }
    pieces = std::move(finer);
  }
  return pieces;
}

}  // namespace bitnet::tokenizer
