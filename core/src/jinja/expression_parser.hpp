#pragma once
// Parses expressions: those in {{ }} and those of tags.

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "jinja/syntax.hpp"
#include "jinja/token_reader.hpp"

namespace bitnet::jinja {

class expression_parser : protected token_reader {
 public:
  using token_reader::token_reader;

 protected:
  using form = expression::kind;

  expression_ptr conditional();  // any expression without a comma
  expression_ptr either();       // the same without `x if y else z`
  expression_ptr unary(bool with_filters);
  // One expression, or several separated by commas. `closing` "": it ends with the tag.
  expression_ptr tuple(bool may_be_empty, std::string_view closing = "");
  expression_ptr one_filter(expression_ptr of);
  expression_ptr filter_chain(expression_ptr of);

  static expression_ptr make(form what, uint32_t line, std::string name = {});
  void add_part(expression& to, expression_ptr part);

  // Sets the macro whose body is parsed (null: none) and returns the previous one. It records which
  // special names its body uses.
  macro_syntax* enter(macro_syntax* macro) { return std::exchange(macro_, macro); }

 private:
  void deepen(expression& to, uint32_t below);

  // In the order of precedence, the weakest first.
  expression_ptr both();
  expression_ptr inversion();
  expression_ptr compare();
  template <class Next>
  expression_ptr left_to_right(std::initializer_list<std::string_view> signs, Next&& next);
  expression_ptr sum();
  expression_ptr concat();
  expression_ptr product();
  expression_ptr power();

  expression_ptr primary();
  expression_ptr name_or_constant();
  expression_ptr texts();
  expression_ptr whole_number();
  expression_ptr bracketed();
  expression_ptr list();
  expression_ptr dict();

  expression_ptr postfix(expression_ptr of);
  expression_ptr call(expression_ptr of);
  expression_ptr subscript(expression_ptr of);
  void call_arguments(expression& to);
  expression_ptr filters_and_tests(expression_ptr of);
  expression_ptr test(expression_ptr of);
  std::string dotted_name();
  void mention(const std::string& name);

  macro_syntax* macro_ = nullptr;
};

}  // namespace bitnet::jinja
