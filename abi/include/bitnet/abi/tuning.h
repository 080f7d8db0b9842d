/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* bitnet/abi/tuning.h - optional interface: what a backend can only find out by measuring.
 *
 * Distances, tile and group sizes that depend on the machine. The host has them measured once,
 * keeps the answer for this device and this version of the backend, and hands it over at the next
 * start. Settings change how fast an answer comes, never the answer. Without it everything works.
 */
#ifndef BITNET_ABI_TUNING_H
#define BITNET_ABI_TUNING_H

#include "bitnet/abi/backend.h"

#define BITNET_INTERFACE_TUNING "bitnet.tuning"
#define BITNET_TUNING_TEXT_BYTES 256u

typedef struct bitnet_tuning_v1 {
  bitnet_interface_header header; /* version 1 */

  /* Writes the settings in use, as printable text of at most BITNET_TUNING_TEXT_BYTES with its NUL:
   * "ahead=8192 tile_rows=64". Words with a colon may say what was measured:
   * "ahead:4096=30.1~2" is a figure of that value, larger is better, and how far its repetitions
   * are apart in percent.
   * Fails: BITNET_INVALID_ARGUMENT if the capacity is too small. [any] [instant] */
  bitnet_status (*describe)(bitnet_device* device, char* out, uint64_t capacity, bitnet_error* err);
  /* Measures for about budget_ns at most, and uses the best settings. cancel_token is for
   * host->cancelled.
   * Fails: BITNET_CANCELLED; the settings are then as before. BITNET_UNAVAILABLE if the measurement
   * is unreliable, as beside another program that computes: settings are then used that are good on
   * any machine, or that were far better all the same, and describe gives those to adopt at the
   * next start. [device] [long] */
  bitnet_status (*measure)(bitnet_device* device, uint64_t budget_ns, uint64_t cancel_token,
                           bitnet_error* err);
  /* Uses settings that describe gave.
   * Fails: BITNET_INVALID_ARGUMENT, with nothing changed, if they cannot be read;
   * BITNET_UNAVAILABLE if they are used but should be measured again now. [device] [instant] */
  bitnet_status (*adopt)(bitnet_device* device, bitnet_str settings, bitnet_error* err);
} bitnet_tuning_v1;

#endif /* BITNET_ABI_TUNING_H */
