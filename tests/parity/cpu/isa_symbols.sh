#!/bin/sh
# isa_symbols.sh NM OBJECT... - fails if an object with its own instruction set defines anything but
# plain functions: a weak or unique symbol could replace the same function elsewhere in the library,
# and a constructor would run before dispatch.
nm=$1
shift
[ $# -gt 0 ] || { echo "no objects given"; exit 1; }
bad=0
for object in "$@"; do
  # Sanitizers add constructors and data of their own.
  found=$("$nm" -C "$object" | grep -E ' [VvWwuBbDdC] |_GLOBAL__sub_I|static_initialization' |
    grep -vE 'asan|ubsan|tsan|gcov|sancov|__odr|\.Lubsan|DW\.ref|_\.str|\.data\.rel|__llvm|__prof|__covrec')
  if [ -n "$found" ]; then
    echo "$object:"
    echo "$found"
    bad=1
  fi
done
exit $bad
