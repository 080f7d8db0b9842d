# Cross compiling for aarch64 with Debian's g++-aarch64-linux-gnu; the programs run in qemu-user. QEMU_CPU
# selects the emulated processor; by default it has every feature that qemu implements.
# Libraries come from the folder that scripts/aarch64-libraries makes; without it core and program
# cannot be built.
set(libraries ${CMAKE_CURRENT_LIST_DIR}/../build/aarch64-libraries)
cmake_path(NORMAL_PATH libraries)
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L /usr/aarch64-linux-gnu
    -E LD_LIBRARY_PATH=${libraries}/usr/lib/aarch64-linux-gnu:${libraries}/lib/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH ${libraries} /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_LIBDIR}
    ${libraries}/usr/lib/aarch64-linux-gnu/pkgconfig:${libraries}/usr/share/pkgconfig)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${libraries})
# Libraries that other libraries link.
add_link_options(-Wl,-rpath-link,${libraries}/usr/lib/aarch64-linux-gnu
                 -Wl,-rpath-link,${libraries}/lib/aarch64-linux-gnu)
