/* SPDX-License-Identifier: MIT */
/* Packets of ETMv3 and PTM as lines of a listing: `offset id NAME field=value…`. Thread-safe. */
#ifndef TL_ETM3_PACKET_TEXT_H
#define TL_ETM3_PACKET_TEXT_H

#include "etm3/packet.h"

#define TL_ETM3_TEXT_MAX 160u /* bytes, with the final zero */

void tl_etm3_packet_text(char out[static TL_ETM3_TEXT_MAX], const struct tl_etm3_config *config,
                         const struct tl_etm3_packet *packet);

#endif
