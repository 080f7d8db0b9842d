#pragma once
// Reads tokens one after the other and keeps the first error.
//
// After an error every read returns the end, so that all loops over tokens end.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "jinja/lexer.hpp"

namespace bitnet::jinja {

constexpr uint32_t deepest_syntax = 200;  // trees and brackets; each level is a recursive call

class token_reader {
 public:
  // The last of `tokens` is `end`.
  explicit token_reader(std::vector<token> tokens) : tokens_(std::move(tokens)) {}

 protected:
  using kind = token::kind;
  static constexpr std::size_t longest_quote = 40;

  [[nodiscard]] const token& now() const { return trouble_ ? tokens_.back() : tokens_[at_]; }
  [[nodiscard]] const token& ahead() const {
    return trouble_ || at_ + 1 >= tokens_.size() ? tokens_.back() : tokens_[at_ + 1];
  }
  token take();

  static bool is_sign(const token& t, std::string_view s) {
    return t.what == kind::sign && t.content == s;
  }
  static bool is_word(const token& t, std::string_view s) {
    return t.what == kind::name && t.content == s;
  }
  [[nodiscard]] bool at_sign(std::string_view s) const { return is_sign(now(), s); }
  [[nodiscard]] bool at_word(std::string_view s) const { return is_word(now(), s); }
  [[nodiscard]] bool at(kind k) const { return now().what == k; }
  bool skip_sign(std::string_view s);
  bool skip_word(std::string_view s);
  void expect_sign(std::string_view s);
  void expect(kind k, std::string_view shown);
  std::string expect_name();
  static std::string describe(const token& t);

  [[nodiscard]] bool ok() const { return !trouble_; }
  [[nodiscard]] const std::optional<failure>& trouble() const { return trouble_; }
  void wrong(const std::string& message) { wrong_at(now().line, message); }
  void wrong_at(uint32_t line, const std::string& message);
  void too_deep();

  class level {
   public:
    explicit level(token_reader& p) : p_(p) {
      if (++p_.depth_ > deepest_syntax) p_.too_deep();
    }
    level(const level&) = delete;
    level& operator=(const level&) = delete;
    ~level() { --p_.depth_; }

   private:
    token_reader& p_;
  };

 private:
  std::vector<token> tokens_;
  std::size_t at_ = 0;
  uint32_t depth_ = 0;
  std::optional<failure> trouble_;
};

}  // namespace bitnet::jinja
