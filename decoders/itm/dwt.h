/* SPDX-License-Identifier: MIT */
/*
 * DWT packets, the hardware sources of an ITM: their meaning, as events (flow/hardware.h).
 *
 * A comparator may report one access by several packets: the instruction's address, the data's
 * address, the value. They follow each other, others' between them, and make one event, which is
 * complete with the value, with a packet of a kind that is there already, or with anything else
 * than packets of comparators: then call tl_dwt_flush().
 *
 * Source: Arm DDI0403E D4.3, C1.8; DDI0553 F1.2. Plain data; not thread-safe.
 */
#ifndef TL_ITM_DWT_H
#define TL_ITM_DWT_H

#include "base/state.h"
#include "flow/hardware.h"
#include "setup/setup.h"

#define TL_DWT_COMPARATORS 4

/* What a comparator matches: addresses first..first+size-1; size 0: not configured. */
struct tl_dwt_range {
    uint32_t first;
    uint64_t size;
};

struct tl_dwt {
    struct tl_dwt_range ranges[TL_DWT_COMPARATORS];
    struct tl_hardware open[TL_DWT_COMPARATORS]; /* accesses that are not complete */
    uint8_t waiting;                             /* bit set of them */
};

/* Receive an event, which is borrowed; it has no name yet. */
typedef void tl_dwt_sink(void *context, const struct tl_hardware *event);

/* Read the configuration: DWT_COMPn, DWT_MASKn, DWT_FUNCTIONn. */
void tl_dwt_init(struct tl_dwt *dwt, const struct tl_source *source);

/* Does the standard give the discriminator (0 to 31) a meaning? */
bool tl_dwt_is_known(unsigned discriminator);
/* Can a packet of `size` bytes have this discriminator (0 to 31)? And this payload? */
bool tl_dwt_is_source(unsigned discriminator, unsigned size);
bool tl_dwt_is_packet(unsigned discriminator, unsigned size, uint32_t value);

/* Take a packet for which tl_dwt_is_packet() is true; `sink` receives what is complete by it. */
void tl_dwt_packet(struct tl_dwt *dwt, unsigned discriminator, unsigned size, uint32_t value,
                   tl_dwt_sink *sink, void *context);

/* Complete all accesses. */
void tl_dwt_flush(struct tl_dwt *dwt, tl_dwt_sink *sink, void *context);

/*
 * Write the name of what an event is about to `out`: that of the exception, or of the variable
 * accessed, with its value if its type is known (image/variables.h), "dwt1" if the comparator is
 * all that is known; returns it. NULL: it is about nothing.
 */
const char *tl_dwt_name(const struct tl_dwt *dwt, const struct tl_hardware *event,
                        const struct tl_image *image, char *out, size_t size);

/* Save or restore an event, except its name. */
void tl_dwt_event_state(struct tl_hardware *event, struct tl_state *state);
void tl_dwt_state(struct tl_dwt *dwt, struct tl_state *state);

#endif
