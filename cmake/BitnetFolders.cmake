# Where things are installed. GNUInstallDirs allows absolute folders, and packagers pass them:
# nixpkgs always, rpm's macros often. One below the prefix becomes relative to it, so that the
# installed tree may still be moved; one outside of it stays absolute.
include(GNUInstallDirs)

foreach(kind IN ITEMS BIN SBIN LIB LIBEXEC INCLUDE SYSCONF LOCALSTATE RUNSTATE DATAROOT DATA INFO
    LOCALE MAN DOC)
  set(folder CMAKE_INSTALL_${kind}DIR)
  cmake_path(IS_PREFIX CMAKE_INSTALL_PREFIX "${${folder}}" NORMALIZE below)
  if(IS_ABSOLUTE "${${folder}}" AND below)
    cmake_path(RELATIVE_PATH ${folder} BASE_DIRECTORY "${CMAKE_INSTALL_PREFIX}")
  endif()
endforeach()

# bitnet_build_folder(<variable> <folder>): the folder of the build tree for files that are installed in `folder`.
function(bitnet_build_folder variable folder)
  cmake_path(GET folder RELATIVE_PART inner)
  set(${variable} ${PROJECT_BINARY_DIR}/${inner} PARENT_SCOPE)
endfunction()

# bitnet_from_prefix(<variable> <folder>): for pkg-config files, which are found with their prefix.
function(bitnet_from_prefix variable folder)
  if(IS_ABSOLUTE "${folder}")
    set(${variable} "${folder}" PARENT_SCOPE)
  else()
    set(${variable} "\${prefix}/${folder}" PARENT_SCOPE)
  endif()
endfunction()

# bitnet_origin_to(<variable> <from> <to>): a run path from one folder to another, which may be anywhere. It
# stays valid if both are moved together.
function(bitnet_origin_to variable from to)
  set(base "${CMAKE_INSTALL_PREFIX}")
  cmake_path(ABSOLUTE_PATH from BASE_DIRECTORY "${base}" NORMALIZE)
  cmake_path(ABSOLUTE_PATH to BASE_DIRECTORY "${base}" NORMALIZE)
  file(RELATIVE_PATH way "${from}" "${to}")
  set(${variable} "$ORIGIN/${way}" PARENT_SCOPE)
endfunction()
