# SPDX-License-Identifier: Apache-2.0 OR MIT
# bitnet_add_backend(<name> SOURCES <files...> [VERSION <version>] [LINK <targets...>]
#                    [LEVEL none|bronze|silver|gold] [OWN_PARITY] [ON_HOST])
#
# The only thing that a plugins/<name>/CMakeLists.txt needs. Makes libbitnet-backend-<name>.so with
# one exported symbol, finds its manifest <name>.yaml beside the CMakeLists and, if there is one, its
# manual page <name>.7, and gives them the install component `backend-<name>`; the page is installed
# as bitnet-backend-<name>.7. In the build tree plugins lie in lib/bitnet/backends-0 and manifests in
# share/bitnet/backends.d, at the same places as when installed.
#
# VERSION is the backend's own, whatever the version of bitnet: sources see it as the text
# BITNET_BACKEND_VERSION, and the manifest as @BITNET_BACKEND_VERSION@. A manifest with another version
# is an error. Without VERSION the author writes the version in both.
#
# In this tree it also adds tests: the ctest conformance.<name> requires LEVEL, by default bronze, and
# reads what <name>.conformance excuses; parity.<name>.{program,hostile,abi_ops} are added unless the
# backend has OWN_PARITY. LEVEL none is for a backend without a device. Builds with sanitizers run
# conformance.<name> only for a backend that computes ON_HOST, without a driver. tests/ reads two more
# files beside the CMakeLists if they exist: drivers.cmake, before all tests, for
#
#   BITNET_<name>_PINNED              the environment of its tests, which selects their driver
#   BITNET_<name>_PARITY_ENVIRONMENT  additional variables of parity.<name>.*
#   BITNET_<name>_SETTINGS            key=value..., settings of it in conformance.<name>
#   BITNET_<name>_FUZZED              the library that tests/fuzz/<name> is linked with
#
# and tests.cmake, after the suites, in the scope of tests/parity, for tests of its own. Builds for an
# emulated processor read it only for a backend that computes ON_HOST. An expected-skips there is read
# beside tests/expected-skips.
set(BITNET_BACKEND_CMAKE_DIR ${CMAKE_CURRENT_LIST_DIR})

function(bitnet_add_backend name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "OWN_PARITY;ON_HOST" "LEVEL;VERSION" "SOURCES;LINK")
  if(NOT arg_LEVEL)
    set(arg_LEVEL bronze)
  endif()
  if(NOT arg_LEVEL MATCHES "^(none|bronze|silver|gold)$")
    message(FATAL_ERROR "bitnet_add_backend(${name}): LEVEL is none, bronze, silver or gold, not '${arg_LEVEL}'")
  endif()
  if(NOT arg_SOURCES OR arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "bitnet_add_backend(${name}): bad arguments '${arg_UNPARSED_ARGUMENTS}'")
  endif()
  if(DEFINED arg_VERSION AND NOT arg_VERSION MATCHES "^[0-9]+(\\.[0-9]+)*([-+~][0-9A-Za-z.+~-]+)?$")
    message(FATAL_ERROR "bitnet_add_backend(${name}): VERSION is numbers such as 0.1.1, not '${arg_VERSION}'")
  endif()

  set(target bitnet-backend-${name})
  add_library(${target} MODULE ${arg_SOURCES})
  if(NOT BITNET_BACKEND_STANDALONE)
    bitnet_compile_options(${target})
  endif()
  target_compile_features(${target} PRIVATE cxx_std_20)
  target_link_libraries(${target} PRIVATE bitnet::abi ${arg_LINK}
    $<TARGET_NAME_IF_EXISTS:bitnet::sdk>) # the scan may add the folder sdk later
  # ops.h defines the sums: a product that is not rounded before it is added gives other bits.
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:C,CXX>:-ffp-contract=off>)
  # Hidden visibility alone still exports vague-linkage symbols and makes some unique, which would
  # pin the library for ever; the version script leaves one symbol.
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
  if(DEFINED arg_VERSION)
    set(BITNET_BACKEND_VERSION ${arg_VERSION}) # the manifest's @...@
    target_compile_definitions(${target} PRIVATE BITNET_BACKEND_VERSION="${arg_VERSION}")
    set_target_properties(${target} PROPERTIES BITNET_VERSION ${arg_VERSION})
  endif()
  set_property(GLOBAL APPEND PROPERTY BITNET_BACKENDS ${name})
  set_target_properties(${target} PROPERTIES BITNET_FOLDER ${CMAKE_CURRENT_SOURCE_DIR}
    BITNET_LEVEL ${arg_LEVEL} BITNET_OWN_PARITY ${arg_OWN_PARITY} BITNET_ON_HOST ${arg_ON_HOST})
  install(TARGETS ${target} LIBRARY DESTINATION ${BITNET_BACKEND_DIR} COMPONENT backend-${name})

  set(manifest ${CMAKE_CURRENT_SOURCE_DIR}/${name}.yaml)
  if(EXISTS ${manifest})
    configure_file(${manifest} ${PROJECT_BINARY_DIR}/${BITNET_MANIFEST_DIR}/50-${name}.yaml @ONLY)
    file(STRINGS ${PROJECT_BINARY_DIR}/${BITNET_MANIFEST_DIR}/50-${name}.yaml said REGEX "^version:")
    if(DEFINED arg_VERSION AND NOT said MATCHES "^version: *\"?${arg_VERSION}\"? *(#.*)?$")
      message(FATAL_ERROR "bitnet_add_backend(${name}): VERSION is ${arg_VERSION}, and ${manifest} says "
                          "'${said}'; write 'version: @BITNET_BACKEND_VERSION@' there")
    endif()
    install(FILES ${PROJECT_BINARY_DIR}/${BITNET_MANIFEST_DIR}/50-${name}.yaml
      DESTINATION ${BITNET_MANIFEST_DIR} COMPONENT backend-${name})
  elseif(NOT BITNET_BACKEND_STANDALONE)
    message(WARNING "bitnet_add_backend(${name}): ${manifest} is missing. Without this manifest the loader does not "
                    "find the backend, and BITNET_BACKENDS cannot leave it out")
  endif()
  if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${name}.7)
    include(GNUInstallDirs)
    install(FILES ${name}.7 DESTINATION ${CMAKE_INSTALL_MANDIR}/man7
      RENAME bitnet-backend-${name}.7 COMPONENT backend-${name})
  endif()
endfunction()

# bitnet_skip_backend(<name> <reason>): prints why the backend is not built; the caller then returns. It is an
# error if BITNET_BACKENDS names the backend.
function(bitnet_skip_backend name reason)
  if(name IN_LIST BITNET_BACKENDS_NAMED)
    message(FATAL_ERROR "Backend ${name} was asked for by name and cannot be built: ${reason}. Install what is "
                        "missing, or leave ${name} out of BITNET_BACKENDS")
  endif()
  message(STATUS "Backend ${name} is not built: ${reason}")
endfunction()
