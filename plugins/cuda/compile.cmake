# cmake -P compile.cmake: runs the compiler given as COMMAND, a list, which makes IMAGE, and keeps what
# ptxas says of registers and memory beside it. A kernel whose registers do not suffice (a spill), whose
# products wait for each other where they need not, or that takes more shared memory of fixed size than the
# host code leaves for it, is an error.
execute_process(COMMAND ${COMMAND} RESULT_VARIABLE failed OUTPUT_VARIABLE said ERROR_VARIABLE said)
if(failed)
  file(REMOVE ${IMAGE})
  message(FATAL_ERROR "${said}")
endif()
file(WRITE ${IMAGE}.ptxas "${said}")

string(REPLACE "\n" ";" lines "${said}")
foreach(line IN LISTS lines)
  if(line MATCHES "Compiling entry function '([^']+)' for '([^']+)'")
    set(kernel "${CMAKE_MATCH_1} for ${CMAKE_MATCH_2}")
  elseif(line MATCHES "[1-9][0-9]* bytes spill")
    file(REMOVE ${IMAGE})
    message(FATAL_ERROR "${kernel} spills: ${line}")
  elseif(line MATCHES "Potential Performance Loss")
    file(REMOVE ${IMAGE})
    message(FATAL_ERROR "${line}")
  elseif(line MATCHES " ([0-9]+) bytes smem")
    if(CMAKE_MATCH_1 GREATER FIXED_SHARED)
      file(REMOVE ${IMAGE})
      message(FATAL_ERROR "${kernel} takes ${CMAKE_MATCH_1} bytes of shared memory, more than ${FIXED_SHARED}")
    endif()
  endif()
endforeach()
