# Asks the program for its manual pages and completions: cmake -DPROGRAM=... -DTO=folder -P pages.cmake
# TO becomes what share/ of an installation gets; the program's own list says which pages there are.
function(keep file)
  execute_process(COMMAND ${PROGRAM} ${ARGN} OUTPUT_FILE ${TO}/${file} RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "${PROGRAM} ${ARGN} ended with ${failed}")
  endif()
endfunction()

file(REMOVE_RECURSE ${TO})
file(MAKE_DIRECTORY ${TO}/man/man1 ${TO}/bash-completion/completions ${TO}/zsh/site-functions
     ${TO}/fish/vendor_completions.d)
keep(man/man1/bitnet.1 man)
file(STRINGS ${TO}/man/man1/bitnet.1 lines REGEX "^.fBbitnet.-[a-z]+.fR")
if(NOT lines)
  message(FATAL_ERROR "bitnet man lists no command")
endif()
foreach(line IN LISTS lines)
  string(REGEX REPLACE "^.fBbitnet.-([a-z]+).fR.*" "\\1" command "${line}")
  keep(man/man1/bitnet-${command}.1 man ${command})
endforeach()
keep(bash-completion/completions/bitnet completion bash)
keep(zsh/site-functions/_bitnet completion zsh)
keep(fish/vendor_completions.d/bitnet.fish completion fish)
