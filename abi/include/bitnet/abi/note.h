/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* bitnet/abi/note.h - a plugin's identity, readable before a byte of it runs.
 *
 * An allocated ELF note: section .note.bitnet, owner "BitNet", type 1. Its description is a run of
 * NUL-terminated "key=value" strings, the first of which is "schema=1". Readers ignore keys that
 * they do not know. Required keys: abi ("major.minor_min-minor_max"), name, version, vendor,
 * license. The macro is assembly because a C variable in that section would get an alignment of
 * 32 bytes, which readers report as corrupt. Use it once per plugin, at file scope:
 *
 *   BITNET_BACKEND_NOTE("cpu", "0.1.0", "org.bitnet", "Apache-2.0",
 *                       BITNET_NOTE_FIELD("flags", "..."))
 *
 * It says that the plugin speaks all minors of these headers. A plugin can name its minors:
 *
 *   BITNET_BACKEND_NOTE_MINORS(1, 2, "cpu", ...)
 *
 * The oldest and the newest minor are plain numbers, or macros for them.
 */
#ifndef BITNET_ABI_NOTE_H
#define BITNET_ABI_NOTE_H

#include "bitnet/abi/base.h"

#define BITNET_NOTE_SECTION ".note.bitnet"
#define BITNET_NOTE_OWNER "BitNet"
#define BITNET_NOTE_TYPE 1

#define BITNET_NOTE_FIELD(key, value) ".asciz \"" key "=" value "\"\n"

#if defined(__clang__)
#define BITNET_NOTE_COMPILER_ "clang " __clang_version__
#else
#define BITNET_NOTE_COMPILER_ "gcc " __VERSION__
#endif

#define BITNET_NOTE_QUOTED_(number) #number
#define BITNET_NOTE_NUMBER_(number) BITNET_NOTE_QUOTED_(number)

#define BITNET_BACKEND_NOTE(name, version, vendor, license, more) \
  BITNET_NOTE_OF_RANGE_(BITNET_ABI_RANGE, name, version, vendor, license, more)

/* The major is 0, as in the entry symbol. */
#define BITNET_BACKEND_NOTE_MINORS(oldest, newest, name, version, vendor, license, more)        \
  BITNET_NOTE_OF_RANGE_("0." BITNET_NOTE_NUMBER_(oldest) "-" BITNET_NOTE_NUMBER_(newest), name, \
                        version, vendor, license, more)

#define BITNET_NOTE_OF_RANGE_(range, name, version, vendor, license, more)                  \
  __asm__(".pushsection " BITNET_NOTE_SECTION                                               \
          ",\"a\",%note\n"                                                                  \
          ".balign 4\n"                                                                     \
          ".long 7\n"                                                                       \
          ".long 992f - 991f\n"                                                             \
          ".long 1\n"                                                                       \
          ".asciz \"" BITNET_NOTE_OWNER                                                     \
          "\"\n"                                                                            \
          ".balign 4\n"                                                                     \
          "991:\n" BITNET_NOTE_FIELD("schema", "1") BITNET_NOTE_FIELD("abi", range)         \
              BITNET_NOTE_FIELD("name", name) BITNET_NOTE_FIELD("version", version)         \
                  BITNET_NOTE_FIELD("vendor", vendor) BITNET_NOTE_FIELD("license", license) \
                      BITNET_NOTE_FIELD("compiler", BITNET_NOTE_COMPILER_) more             \
          "992:\n"                                                                          \
          ".balign 4\n"                                                                     \
          ".popsection\n");

#endif /* BITNET_ABI_NOTE_H */
