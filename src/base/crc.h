/*
 * crc - a checksum against damage, not against forgers
 *
 * CRC-32 of IEEE 802.3 (as zlib's). Finds every damage of up to four bytes in a row. Pure.
 */
#ifndef SL_BASE_CRC_H
#define SL_BASE_CRC_H

#include <stddef.h>
#include <stdint.h>

uint32_t sl_crc32(const void *bytes, size_t size);

#endif
