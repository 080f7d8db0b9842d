/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* bitnet/abi/tuning.h - optional interface: settings that a backend can only find by measuring.
 *
 * Settings are distances, tile sizes and group sizes that depend on the machine. The host requests
 * a measurement once, stores the settings for this device and this version of the backend, and
 * passes them to the backend at the next start. They change how long a computation takes, never its
 * result. A backend without this interface works, too.
 */
#ifndef BITNET_ABI_TUNING_H
#define BITNET_ABI_TUNING_H

#include "bitnet/abi/backend.h"

#define BITNET_INTERFACE_TUNING "bitnet.tuning"
#define BITNET_TUNING_TEXT_BYTES 256u

typedef struct bitnet_tuning_v1 {
  bitnet_interface_header header; /* version 1 */

  /* Writes the settings in use, as printable text of at most BITNET_TUNING_TEXT_BYTES with its NUL:
   * "ahead=8192 tile_rows=64". Words with a colon may report measurements: in
   * "ahead:4096=30.1~2" the value 4096 has the figure 30.1, of which larger is better, and its
   * repetitions differ by 2 percent.
   * Fails: BITNET_INVALID_ARGUMENT if the capacity is too small. [any] [instant] */
  bitnet_status (*describe)(bitnet_device* device, char* out, uint64_t capacity, bitnet_error* err);
  /* Measures for about budget_ns at most, and uses the best settings. cancel_token is for
   * host->cancelled.
   * Fails: BITNET_CANCELLED; the settings then do not change. BITNET_UNAVAILABLE if the measurement
   * is unreliable, for example because another program computes. The device then uses settings that
   * are good on any machine, or measured ones that were far better even so; `describe` writes the
   * settings for `adopt` at the next start. [device] [long] */
  bitnet_status (*measure)(bitnet_device* device, uint64_t budget_ns, uint64_t cancel_token,
                           bitnet_error* err);
  /* Uses settings that `describe` wrote.
   * Fails: BITNET_INVALID_ARGUMENT if they cannot be parsed, and then changes nothing;
   * BITNET_UNAVAILABLE if it uses them but the host should measure again. [device] [instant] */
  bitnet_status (*adopt)(bitnet_device* device, bitnet_str settings, bitnet_error* err);
} bitnet_tuning_v1;

#endif /* BITNET_ABI_TUNING_H */
