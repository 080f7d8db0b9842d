#include "schema/formats.hpp"

#include <algorithm>
#include <string>

namespace bitnet::schema {
namespace {

// Years 0001 to 9999: Python and others have no year 0.
#define BITNET_YEAR "(?:000[1-9]|00[1-9][0-9]|0[1-9][0-9]{2}|[1-9][0-9]{3})"
#define BITNET_LEAP \
  "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:0[48]|[2468][048]|[13579][26])00)"
#define BITNET_DATE                                                                     \
  "(?:" BITNET_YEAR                                                                     \
  "-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]" \
  "|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))|" BITNET_LEAP "-02-29)"
// Without leap seconds, which few programs read.
#define BITNET_CLOCK "(?:[01][0-9]|2[0-3]):[0-5][0-9]"
#define BITNET_TIME BITNET_CLOCK ":[0-5][0-9](?:\\.[0-9]{1,9})?(?:Z|[+-]" BITNET_CLOCK ")"
// RFC 3339, appendix A.
#define BITNET_SECONDS "[0-9]+S"
#define BITNET_MINUTES "(?:[0-9]+M(?:" BITNET_SECONDS ")?)"
#define BITNET_HOURS "(?:[0-9]+H" BITNET_MINUTES "?)"
#define BITNET_TIMES "(?:T(?:" BITNET_HOURS "|" BITNET_MINUTES "|" BITNET_SECONDS "))"
#define BITNET_MONTHS "(?:[0-9]+M(?:[0-9]+D)?)"
#define BITNET_YEARS "(?:[0-9]+Y" BITNET_MONTHS "?)"
#define BITNET_DURATION                                                              \
  "P(?:" BITNET_TIMES "|(?:[0-9]+D|" BITNET_MONTHS "|" BITNET_YEARS ")" BITNET_TIMES \
  "?|"                                                                               \
  "[0-9]+W)"
// At most 7 labels of 35 characters: RFC 1123 has 63 for each and 253 for all, which together need
// too many states.
#define BITNET_LABEL "[A-Za-z0-9](?:(?:[A-Za-z0-9]|-[A-Za-z0-9]){0,17})"
#define BITNET_HOST "(?:" BITNET_LABEL "\\.){0,6}[A-Za-z](?:(?:[A-Za-z0-9]|-[A-Za-z0-9]){0,17})"
#define BITNET_ATOM "[A-Za-z0-9!#$%&'*+/=?^_`\\{|\\}~-]+"
#define BITNET_BYTE "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
#define BITNET_IPV4 BITNET_BYTE "(?:\\." BITNET_BYTE "){3}"
// RFC 3986, section 3.2.2.
#define BITNET_H16 "[0-9a-fA-F]{1,4}"
#define BITNET_LS32 "(?:" BITNET_H16 ":" BITNET_H16 "|" BITNET_IPV4 ")"
#define BITNET_UPTO(n) "(?:(?:" BITNET_H16 ":){0," #n "}" BITNET_H16 ")?"
#define BITNET_IPV6                                                                             \
  "(?:(?:" BITNET_H16 ":){6}" BITNET_LS32 "|::(?:" BITNET_H16 ":){5}" BITNET_LS32               \
  "|(?:" BITNET_H16 ")?::(?:" BITNET_H16 ":){4}" BITNET_LS32                                    \
  "|" BITNET_UPTO(1) "::(?:" BITNET_H16 ":){3}" BITNET_LS32                                     \
                     "|" BITNET_UPTO(2) "::(?:" BITNET_H16 ":){2}" BITNET_LS32 "|" BITNET_UPTO( \
                         3) "::" BITNET_H16 ":" BITNET_LS32                                     \
                            "|" BITNET_UPTO(4) "::" BITNET_LS32                                 \
                                               "|" BITNET_UPTO(5) "::" BITNET_H16               \
                                                                  "|" BITNET_UPTO(6) "::)"
#define BITNET_PLAIN "A-Za-z0-9._~!$&'()*+,;=\\-"
#define BITNET_CODED "%[0-9A-Fa-f]{2}"
#define BITNET_SEGMENT "(?:[" BITNET_PLAIN ":@]|" BITNET_CODED ")"
#define BITNET_URI                                                                                 \
  "[A-Za-z][A-Za-z0-9+.-]*:(?://(?:(?:[" BITNET_PLAIN ":]|" BITNET_CODED ")*@)?(?:\\[" BITNET_IPV6 \
  "\\]|(?:[" BITNET_PLAIN "]|" BITNET_CODED ")*)(?::[0-9]*)?(?:/" BITNET_SEGMENT                   \
  "*)*|"                                                                                           \
  "/(?:" BITNET_SEGMENT "+(?:/" BITNET_SEGMENT "*)*)?|" BITNET_SEGMENT "+(?:/" BITNET_SEGMENT      \
  "*)*)?(?:\\?(?:" BITNET_SEGMENT "|[/?])*)?(?:#(?:" BITNET_SEGMENT "|[/?])*)?"

struct named {
  std::string_view name, pattern;
};
constexpr named formats[] = {
    {"date", BITNET_DATE},
    {"time", BITNET_TIME},
    {"date-time", BITNET_DATE "T" BITNET_TIME},
    {"duration", BITNET_DURATION},
    {"email", BITNET_ATOM "(?:\\." BITNET_ATOM ")*@" BITNET_HOST},
    {"hostname", BITNET_HOST},
    {"ipv4", BITNET_IPV4},
    {"ipv6", BITNET_IPV6},
    {"uri", BITNET_URI},
    {"uuid", "[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"},
};

}  // namespace

std::string_view pattern_of_format(std::string_view name) {
  const auto* const at = std::ranges::find(formats, name, &named::name);
  return at == std::end(formats) ? std::string_view() : at->pattern;
}

std::string_view format_names() {
  return "date, time, date-time, duration, email, hostname, ipv4, ipv6, uri, uuid";
}

}  // namespace bitnet::schema
