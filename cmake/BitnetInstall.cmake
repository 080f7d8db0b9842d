# Packages that other projects build against. There are two, because a backend needs no library of ours:
#
#   find_package(BitnetBackend)  component sdk: bitnet::abi, bitnet::sdk, bitnet_add_backend()
#   find_package(Bitnet)         component dev: the same and bitnet::bitnet
#
# and their pkg-config files bitnet-backend.pc and bitnet.pc. All of them find their files from
# their own place, so that an installed tree may be moved.
#
# The other components: core, the library and the program that probes; cli, what users start; lint;
# conformance, the kit for authors; model; and backend-<name> for each backend.
include(CMakePackageConfigHelpers)

# The header contains the ABI's version.
foreach(part IN ITEMS MAJOR MINOR OLDEST_MINOR)
  file(STRINGS ${PROJECT_SOURCE_DIR}/abi/include/bitnet/abi/base.h line
    REGEX "^#define BITNET_ABI_${part} ")
  string(REGEX REPLACE "[^0-9]" "" BITNET_ABI_${part} "${line}")
endforeach()

set(templates ${PROJECT_SOURCE_DIR}/cmake/package)
set(made ${PROJECT_BINARY_DIR}/package)
set(config_dir ${CMAKE_INSTALL_LIBDIR}/cmake)
set(pkgconfig_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
# The relative path from lib/<triplet>/pkgconfig to the prefix; a folder outside of the prefix has none.
set(BITNET_PC_PREFIX ${CMAKE_INSTALL_PREFIX})
if(NOT IS_ABSOLUTE "${pkgconfig_dir}")
  file(RELATIVE_PATH up /prefix/${pkgconfig_dir} /prefix)
  set(BITNET_PC_PREFIX "\${pcfiledir}/${up}")
endif()
bitnet_from_prefix(BITNET_PC_LIBDIR "${CMAKE_INSTALL_LIBDIR}")
bitnet_from_prefix(BITNET_PC_INCLUDEDIR "${CMAKE_INSTALL_INCLUDEDIR}")
bitnet_from_prefix(BITNET_PC_BACKENDDIR "${BITNET_BACKEND_DIR}")
bitnet_from_prefix(BITNET_PC_MANIFESTDIR "${BITNET_MANIFEST_DIR}")

# bitnet_install_package(<Name> <component> [FILES <files...>]): config, version and target files
function(bitnet_install_package name component)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "FILES")
  set(folder ${config_dir}/${name})
  configure_package_config_file(${templates}/${name}Config.cmake.in ${made}/${name}Config.cmake
    INSTALL_DESTINATION ${folder} PATH_VARS CMAKE_INSTALL_INCLUDEDIR)
  write_basic_package_version_file(${made}/${name}ConfigVersion.cmake
    COMPATIBILITY SameMinorVersion) # before 1.0 a minor may change what programs see
  install(FILES ${made}/${name}Config.cmake ${made}/${name}ConfigVersion.cmake ${arg_FILES}
    DESTINATION ${folder} COMPONENT ${component})
  install(EXPORT ${name}Targets NAMESPACE bitnet:: DESTINATION ${folder} COMPONENT ${component})
endfunction()

# For backends.
set(sdk_targets bitnet_abi)
set_target_properties(bitnet_abi PROPERTIES EXPORT_NAME abi)
if(TARGET bitnet_sdk)
  list(APPEND sdk_targets bitnet_sdk)
  set_target_properties(bitnet_sdk PROPERTIES EXPORT_NAME sdk)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/plugins/sdk/include/
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT sdk)
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/abi/include/bitnet/abi
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/bitnet COMPONENT sdk)
install(TARGETS ${sdk_targets} EXPORT BitnetBackendTargets)
bitnet_install_package(BitnetBackend sdk
  FILES ${PROJECT_SOURCE_DIR}/cmake/BitnetBackend.cmake
        ${PROJECT_SOURCE_DIR}/cmake/bitnet-backend.map)
# The files that an author of a backend starts from.
set(sdk_data ${CMAKE_INSTALL_DATADIR}/bitnet/sdk)
bitnet_from_prefix(BITNET_PC_TEMPLATES "${sdk_data}")
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs/tutorials/write-a-backend DESTINATION ${sdk_data}
  COMPONENT sdk)
if(EXISTS ${PROJECT_SOURCE_DIR}/plugins/null)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/plugins/null DESTINATION ${sdk_data} COMPONENT sdk)
endif()
configure_file(${templates}/bitnet-backend.pc.in ${made}/bitnet-backend.pc @ONLY)
install(FILES ${made}/bitnet-backend.pc DESTINATION ${pkgconfig_dir} COMPONENT sdk)

# For programs.
install(FILES ${PROJECT_SOURCE_DIR}/abi/include/bitnet/bitnet.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/bitnet COMPONENT dev)
install(TARGETS bitnet EXPORT BitnetTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  COMPONENT core NAMELINK_COMPONENT dev)
bitnet_install_package(Bitnet dev)
configure_file(${templates}/bitnet.pc.in ${made}/bitnet.pc @ONLY)
install(FILES ${made}/bitnet.pc DESTINATION ${pkgconfig_dir} COMPONENT dev)

# Packages of a distribution install the licence in their own way; a plain installation needs it, too.
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/packaging/licences/NOTICES
  DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT core)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE-MIT DESTINATION ${CMAKE_INSTALL_DOCDIR}
  COMPONENT sdk)
