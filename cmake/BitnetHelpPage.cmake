# bitnet_help_page(<program> <component> <what it does>): a manual page out of `<program> --help`,
# installed with that component.
set(BITNET_HELP_PAGE ${CMAKE_CURRENT_LIST_DIR}/help_page.cmake)
function(bitnet_help_page program component what)
  if(CMAKE_CROSSCOMPILING) # the program does not run here
    return()
  endif()
  set(page ${CMAKE_CURRENT_BINARY_DIR}/${program}.1)
  add_custom_command(OUTPUT ${page}
    COMMAND ${CMAKE_COMMAND} -DPROGRAM=$<TARGET_FILE:${program}> -DNAME=${program} -DWHAT=${what}
      -DTO=${page} -P ${BITNET_HELP_PAGE}
    DEPENDS ${program} ${BITNET_HELP_PAGE} COMMENT "Manual page of ${program}" VERBATIM)
  add_custom_target(${program}-page ALL DEPENDS ${page})
  install(FILES ${page} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT ${component})
endfunction()
