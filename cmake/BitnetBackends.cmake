# Which backends of plugins/ are built: BITNET_BACKENDS.
#
# A backend is a folder with its manifest, plugins/<name>/<name>.yaml: adding or deleting one edits no file.
# Folders without a manifest are shared by backends (sdk, gpu-common).
set(BITNET_BACKENDS all CACHE STRING
    "Backends that are built: names such as cpu;vulkan, gpu (every backend for GPUs), all or none")

# bitnet_known_backends(<names> <for GPUs>): the backends in plugins/. The list for GPUs leaves out a backend whose
# manifest has `by_name_only: true` (docs/adr/0051).
function(bitnet_known_backends all gpu)
  file(GLOB files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/plugins/*/CMakeLists.txt)
  set(names)
  set(of_gpus)
  foreach(file IN LISTS files)
    cmake_path(GET file PARENT_PATH folder)
    cmake_path(GET folder FILENAME name)
    if(NOT EXISTS ${folder}/${name}.yaml)
      continue()
    endif()
    list(APPEND names ${name})
    file(STRINGS ${folder}/${name}.yaml class REGEX "^class: *gpu( |$)")
    file(STRINGS ${folder}/${name}.yaml by_name_only REGEX "^by_name_only: *true( |$)")
    if(class AND NOT by_name_only)
      list(APPEND of_gpus ${name})
    endif()
  endforeach()
  set(${all} ${names} PARENT_SCOPE)
  set(${gpu} ${of_gpus} PARENT_SCOPE)
endfunction()

# bitnet_wanted_backends(<wanted> <named>): the backends that BITNET_BACKENDS selects, and those among them that
# it selects by name, which must be buildable.
function(bitnet_wanted_backends wanted named)
  bitnet_known_backends(all gpu)
  if(BITNET_BACKENDS STREQUAL "")
    message(FATAL_ERROR "BITNET_BACKENDS is empty; none is the word for no backend at all, all for each")
  endif()
  set(chosen)
  set(by_name)
  foreach(word IN LISTS BITNET_BACKENDS)
    if(word STREQUAL "all" OR word STREQUAL "gpu")
      list(APPEND chosen ${${word}})
    elseif(word IN_LIST all)
      list(APPEND chosen ${word})
      list(APPEND by_name ${word})
    elseif(NOT BITNET_BACKENDS STREQUAL "none")
      list(JOIN all ", " known)
      message(FATAL_ERROR "BITNET_BACKENDS names '${word}', which is no backend of this tree; expected names "
                          "of ${known}, with ; between them, or gpu or all, or none alone")
    endif()
  endforeach()
  list(REMOVE_DUPLICATES chosen)
  set(${wanted} ${chosen} PARENT_SCOPE)
  set(${named} ${by_name} PARENT_SCOPE)
endfunction()

# Adds the folders that backends share, and the wanted backends.
function(bitnet_add_plugins)
  bitnet_wanted_backends(wanted BITNET_BACKENDS_NAMED)
  bitnet_known_backends(all gpu)
  list(JOIN wanted " " words)
  message(STATUS "Backends that BITNET_BACKENDS asks for: ${words}")
  file(GLOB files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/plugins/*/CMakeLists.txt)
  foreach(file IN LISTS files)
    cmake_path(GET file PARENT_PATH folder)
    cmake_path(GET folder FILENAME name)
    if(name IN_LIST all AND NOT name IN_LIST wanted)
      continue()
    endif()
    add_subdirectory(${folder})
  endforeach()
  file(GLOB manifests CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/plugins/*/*.yaml)
  foreach(manifest IN LISTS manifests)
    cmake_path(GET manifest PARENT_PATH folder)
    cmake_path(GET manifest STEM name)
    if(folder STREQUAL "${PROJECT_SOURCE_DIR}/plugins/${name}" AND NOT EXISTS ${folder}/CMakeLists.txt)
      message(WARNING "plugins/${name} has ${name}.yaml and no CMakeLists.txt: the backend is not built")
    endif()
  endforeach()
  # Otherwise the loader would still find and use backends of an earlier choice in this build's folders.
  foreach(name IN LISTS all)
    if(NOT TARGET bitnet-backend-${name})
      file(REMOVE ${PROJECT_BINARY_DIR}/${BITNET_BACKEND_DIR}/libbitnet-backend-${name}.so
        ${PROJECT_BINARY_DIR}/${BITNET_MANIFEST_DIR}/50-${name}.yaml)
    endif()
  endforeach()
endfunction()

# bitnet_write_names(<file>): writes rows of C++ for plugins/other-names.txt, in which blanks around | mean
# nothing, and for bitnet's own backends that have a package.
function(bitnet_write_names file)
  set(source ${PROJECT_SOURCE_DIR}/plugins/other-names.txt)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
  file(READ ${source} text)
  string(REPLACE ";" "\\;" text "${text}")
  string(REPLACE "\n" ";" lines "${text}")
  set(others)
  foreach(line IN LISTS lines)
    if(line MATCHES "^([a-z][a-z0-9 -]*[a-z0-9]) *\\| *([^|]*[^| ]) *\\| *([a-z -]*)$")
      set(names ${CMAKE_MATCH_1})
      set(sentence "${CMAKE_MATCH_2}")
      set(instead "${CMAKE_MATCH_3}")
      string(REPLACE " " ";" names ${names})
      foreach(name IN LISTS names)
        string(APPEND others "    {\"${name}\", \"${sentence}\", \"${instead}\"},\n")
      endforeach()
    elseif(NOT line MATCHES "^(#.*)?$")
      message(FATAL_ERROR "${source}: expected 'names | sentence | backends', found '${line}'")
    endif()
  endforeach()
  file(GLOB controls CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/packaging/backend/*.control)
  set(packages)
  foreach(control IN LISTS controls)
    cmake_path(GET control STEM name)
    string(APPEND packages "    \"${name}\",\n")
  endforeach()
  file(CONFIGURE OUTPUT ${file} @ONLY CONTENT "// Of plugins/other-names.txt and packaging/backend.
constexpr other_name all_others[] = {
@others@};
constexpr std::string_view all_packages[] = {
@packages@};
")
endfunction()
