# SPDX-License-Identifier: Apache-2.0 OR MIT
# bitnet_add_backend(<name> SOURCES <files...> [LINK <targets...>])
#
# The only thing that a plugins/<name>/CMakeLists.txt needs. Makes libbitnet-backend-<name>.so with
# one exported symbol, finds its manifest <name>.yaml beside the CMakeLists, and gives both the
# install component `backend-<name>`. In the build tree plugins lie in lib/bitnet/backends-0 and
# manifests in share/bitnet/backends.d, at the same places as when installed.
set(BITNET_BACKEND_CMAKE_DIR ${CMAKE_CURRENT_LIST_DIR})

function(bitnet_add_backend name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LINK")
  if(NOT arg_SOURCES OR arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "bitnet_add_backend(${name}): bad arguments '${arg_UNPARSED_ARGUMENTS}'")
  endif()

  set(target bitnet-backend-${name})
  add_library(${target} MODULE ${arg_SOURCES})
  if(NOT BITNET_BACKEND_STANDALONE)
    bitnet_compile_options(${target})
  endif()
  target_compile_features(${target} PRIVATE cxx_std_20)
  target_link_libraries(${target} PRIVATE bitnet::abi ${arg_LINK}
    $<TARGET_NAME_IF_EXISTS:bitnet::sdk>) # wherever in the scan the folder sdk comes
  # ops.h says which sums are exact: a product that is not rounded before it is added gives others.
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:C,CXX>:-ffp-contract=off>)
  # Hidden visibility alone still exports vague-linkage symbols and makes some unique, which would
  # pin the library for ever; the version script is what leaves one symbol.
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fno-gnu-unique>)
  target_link_options(${target} PRIVATE
    -Wl,--version-script=${BITNET_BACKEND_CMAKE_DIR}/bitnet-backend.map
    -Wl,--exclude-libs,ALL -Wl,-z,now -Wl,-z,relro -Wl,--build-id=sha1)
  if(NOT BITNET_SANITIZE) # sanitizers leave their runtime's symbols to the program
    target_link_options(${target} PRIVATE -Wl,-z,defs)
  endif()
  set_target_properties(${target} PROPERTIES
    C_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
    LINK_DEPENDS ${BITNET_BACKEND_CMAKE_DIR}/bitnet-backend.map
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/${BITNET_BACKEND_DIR}
    SKIP_BUILD_RPATH ON)
  set_property(GLOBAL APPEND PROPERTY BITNET_BACKENDS ${name})
  install(TARGETS ${target} LIBRARY DESTINATION ${BITNET_BACKEND_DIR} COMPONENT backend-${name})

  set(manifest ${CMAKE_CURRENT_SOURCE_DIR}/${name}.yaml)
  if(EXISTS ${manifest})
    configure_file(${manifest} ${PROJECT_BINARY_DIR}/${BITNET_MANIFEST_DIR}/50-${name}.yaml @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/${BITNET_MANIFEST_DIR}/50-${name}.yaml
      DESTINATION ${BITNET_MANIFEST_DIR} COMPONENT backend-${name})
  endif()
endfunction()
