/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* bitnet/abi/base.h - definitions that all headers of the contract share.
 *
 * Units      sizes and offsets are bytes, shapes are elements, unless the name says otherwise
 *            (`_bytes`, `_ns`).
 * Growth     structs that one side passes to the other start with struct_size and only grow at the
 *            end. A reader uses a field only if BITNET_HAS_FIELD is true for it. Arrays of structs
 *            come with the size of one element. For an answer, the caller sets struct_size (or the
 *            element's size) and zeroes the rest; the callee writes no more bytes than that, and
 *            does not change struct_size.
 * Minors     if a plugin agreed on an older minor (bitnet_backend_v0::abi_minor), all members of
 *            later minors are 0 in the structs that the host sends.
 * Unknown    a receiver answers BITNET_UNSUPPORTED if it does not know a part of a request, or
 *            BITNET_LEVEL_NONE where the answer is a level; it neither ignores the part nor reports
 *            it as malformed. This applies to ids (ops, dtypes, dimensions, formats, roles), and
 *            from minor 2 on to a weight of a rank above 2. It applies to attributes that an op
 *            does not have, to members named reserved_n, and to bytes after the receiver's own form
 *            of a struct, unless they are 0. It applies to flags of the high half of a word; a
 *            receiver ignores unknown flags of the low half.
 *            The host sends a field that changes results only to a device that declared it. A
 *            receiver ignores unknown parts of the open request and of the host's table, because
 *            both sides have not agreed on a minor yet.
 * Private    ids from BITNET_PRIVATE on (BITNET_PRIVATE_STATUS for statuses) and interfaces whose
 *            names begin with a domain of their author ("org.example.thing") are free for all.
 * Ownership  out parameters are written on success only, unless stated otherwise. The side that
 *            creates a handle also provides the call that destroys it. Every pointer comes with
 *            its length.
 * Tags       each function ends its comment with its thread rule and its time class.
 *            Threads: [any] from any thread; [device] one call at a time per device; [queue] one
 *            call at a time per queue; "beside no other call": no other call of the backend runs.
 *            Times: [instant] < 1 ms; [short] < 100 ms; [long] reports cancellation; "once ..."
 *            after a class: the class counts from then on. In place of a class "up to ...": at
 *            most the time in that argument; "as long as ...": until that has ended.
 *            bitnet.h has tags of its own, whose objects are those of the C API.
 *
 * Plain C11, valid C++17; 64-bit little- or big-endian targets; no enum-typed, bool, long or
 * size_t fields.
 */
#ifndef BITNET_ABI_BASE_H
#define BITNET_ABI_BASE_H

#include <stddef.h>
#include <stdint.h>

#if UINTPTR_MAX < 0xffffffffffffffffu
#error "the contract is for 64-bit targets"
#endif

#define BITNET_ABI_MAJOR 0u
#define BITNET_ABI_MINOR 2u        /* the newest */
#define BITNET_ABI_OLDEST_MINOR 1u /* that host and plugins of this tree still speak */
#define BITNET_ABI_RANGE "0.1-2"   /* major.oldest minor-newest minor, as the ELF note says it */

/* UTF-8 bytes without a terminator; data may be NULL when size is 0. */
typedef struct bitnet_str {
  const char* data;
  uint64_t size;
} bitnet_str;

/* An integer of fixed width, because compilers choose the size of an enum. */
typedef int32_t bitnet_status;
#define BITNET_OK 0
#define BITNET_INVALID_ARGUMENT 1 /* the caller's bug or usage error; retrying is pointless */
#define BITNET_UNSUPPORTED 2      /* a valid request that this side cannot do               */
#define BITNET_UNAVAILABLE 3      /* no driver, device or backend here; try another one     */
#define BITNET_INCOMPATIBLE 4     /* ABI or file format of another generation               */
#define BITNET_OUT_OF_MEMORY 5    /* host memory                                            */
#define BITNET_OUT_OF_DEVICE_MEMORY 6
#define BITNET_BAD_DATA 7         /* a model or other outside data is malformed             */
#define BITNET_DEVICE_LOST 8      /* close the device and open it again, or take another    */
#define BITNET_CONTEXT_POISONED 9 /* only a new process helps                               */
#define BITNET_CANCELLED 10
#define BITNET_TIMEOUT 11
#define BITNET_NOT_FOUND 12
#define BITNET_REJECTED 13     /* a plugin broke the rules of inspection or trust        */
#define BITNET_CONTEXT_FULL 14 /* the sequence does not fit the context                  */
#define BITNET_INTERNAL 15     /* our bug                                                */
#define BITNET_IO 16           /* a file cannot be written                               */
#define BITNET_FORBIDDEN 17    /* the user's own rules do not allow it                   */
#define BITNET_BUSY 18         /* the object is at work for another call                 */

#define BITNET_PRIVATE_STATUS 0x40000000 /* and above: the plugin author's own */

#define BITNET_PRIVATE 0x80000000u /* and above, less BITNET_NONE: an author's own ids */
#define BITNET_FLAGS_MUST_UNDERSTAND 0xffff0000u /* of every word of flags */

/* Flags of an error; several may be set. libbitnet sets the flags that belong to the status. If a
 * plugin's call failed, it keeps the flags that the plugin set, too.
 *            retryable    OUT_OF_MEMORY, OUT_OF_DEVICE_MEMORY, DEVICE_LOST, TIMEOUT, BUSY
 *            user fixable UNAVAILABLE, INCOMPATIBLE, OUT_OF_MEMORY, OUT_OF_DEVICE_MEMORY, BAD_DATA,
 *                         NOT_FOUND, REJECTED, CONTEXT_FULL, IO, FORBIDDEN
 */
#define BITNET_ERROR_RETRYABLE 1u    /* the same request may succeed later, without a change */
#define BITNET_ERROR_USER_FIXABLE 2u /* a user can remove the cause: a file, a setting, a driver */

/* The reason why a call failed. The caller owns it. It has no pointers, so it may be passed to
 * another library or process and outlive the library that filled it. 512 bytes. */
typedef struct bitnet_error {
  uint32_t struct_size;
  bitnet_status code;
  uint32_t flags; /* BITNET_ERROR_* */
  uint32_t reserved_0;
  int64_t native_code; /* CUresult, VkResult, errno ... or 0           */
  char domain[16];     /* NUL terminated: "cuda", "errno", ... or ""   */
  char where[64];      /* NUL terminated: the slot or stage that failed */
  char message[408];   /* NUL terminated UTF-8, one line                */
} bitnet_error;

/* True if the struct at `ptr` includes `field`, by the size that its sender wrote. */
#define BITNET_HAS_FIELD(ptr, type, field) \
  ((ptr)->struct_size >= offsetof(type, field) + sizeof((ptr)->field))

/* The same for a table of slots that begins with a bitnet_interface_header. */
#define BITNET_HAS_SLOT(ptr, type, slot) \
  ((ptr)->header.struct_size >= offsetof(type, slot) + sizeof((ptr)->slot))

#define BITNET_NONE 0xffffffffu /* "no value / no weight" in index fields */

#endif /* BITNET_ABI_BASE_H */
