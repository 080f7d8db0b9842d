#!/bin/sh
# oclgrind.sh TEST: runs a test of kernels on oclgrind, which sees races of work items, accesses out
# of bounds and wrong calls. Fails if it found one.
set -eu
# Beside the program, wherever that is installed.
program=$(command -v oclgrind) || { echo "skipped: oclgrind is not installed"; exit 77; }
driver=${program%/bin/oclgrind}/lib/oclgrind/liboclgrind-rt-icd.so
[ -e "$driver" ] || { echo "skipped: no $driver"; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
echo "$driver" >"$folder/oclgrind.icd"
status=0
OCL_ICD_VENDORS=$folder/oclgrind.icd OCLGRIND_DATA_RACES=1 OCLGRIND_CHECK_API=1 \
  OCLGRIND_LOG=$folder/log "$1" >"$folder/out" 2>&1 || status=$?
cat "$folder/out"
[ "$status" -eq 0 ] || exit "$status"
if grep -q SKIPPED "$folder/out"; then
  echo "oclgrind is installed, and its device was not found"
  exit 1
fi
if [ -s "$folder/log" ]; then
  echo "oclgrind found:"
  head -100 "$folder/log"
  exit 1
fi
