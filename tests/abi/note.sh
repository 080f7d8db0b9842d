#!/bin/sh
# note.sh READELF NAME PLUGIN - the plugin's identity is readable without running it.
readelf=$1
name=$2
plugin=$3
notes=$("$readelf" -n "$plugin" 2>&1)
strings=$("$readelf" -p .note.bitnet "$plugin" 2>&1)
bad=0
case $notes in *[Cc]orrupt* | *arning*) echo "$notes"; bad=1 ;; esac
case $notes in *BitNet*) ;; *) echo "no note of owner BitNet"; bad=1 ;; esac
for wanted in "schema=1" "abi=0.1-2" "name=$name" "version=" "vendor=" "license=" "compiler="; do
  case $strings in *"$wanted"*) ;; *) echo "the note lacks $wanted"; bad=1 ;; esac
done
exit $bad
