# Makes a manual page of a program's --help:
# cmake -DPROGRAM=... -DNAME=... -DWHAT=... -DTO=file -P help_page.cmake
execute_process(COMMAND ${PROGRAM} --help OUTPUT_VARIABLE text RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "${PROGRAM} --help ended with ${failed}")
endif()
string(REPLACE "\\" "\\e" text "${text}")
string(REPLACE "-" "\\-" text "${text}")
string(REGEX REPLACE "(^|\n)([.'])" "\\1\\\\&\\2" text "${text}")
file(WRITE ${TO} ".TH ${NAME} 1
.SH NAME
${NAME} \\- ${WHAT}
.SH DESCRIPTION
.nf
${text}.fi
.SH SEE ALSO
.BR bitnet (1)
")
