#!/bin/sh
# headers.sh INCLUDE_DIR CC CXX - every header below INCLUDE_DIR compiles alone, as pedantic C11 and
# C++17, and a plugin's note can be made in both.
include=$1
cc=$2
cxx=$3
flags="-I$include -Wall -Wextra -Wpedantic -Werror -fsyntax-only"
bad=0
check() { # NAME PROGRAM
  printf '%s\n' "$2" | "$cc" -std=c11 $flags -x c - || { echo "$1: not C11 for $cc"; bad=1; }
  printf '%s\n' "$2" | "$cxx" -std=c++17 $flags -x c++ - || { echo "$1: not C++17 for $cxx"; bad=1; }
}
n=0
for header in $(cd "$include" && find . -name '*.h' | sed 's|^\./||' | sort); do
  check "$header" "#include \"$header\"
int main(void) { return 0; }"
  n=$((n + 1))
done
[ "$n" -ge 8 ] || { echo "only $n headers found below $include"; bad=1; }
check "the note macro" '#include "bitnet/abi/note.h"
BITNET_BACKEND_NOTE("name", "0.1.0", "org.example", "MIT", BITNET_NOTE_FIELD("more", "yes"))
int main(void) { return 0; }'
exit $bad
