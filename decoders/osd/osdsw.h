/* SPDX-License-Identifier: MIT */
/*
 * The text logs of osd-sw (osd-target-run, osd-systrace-log), for comparison and for scripts
 * that read them.
 *
 *     ctm    TIME MODECHANGE CALL RET MODE PC NPC      time 8, addresses 16 hex digits
 *     stm    TIME ID VALUE                             8, 4 and 16 hex digits
 *     both   Overflow, missed N events                 one line per overflow packet
 *     print  the characters of STM events with id 4
 *
 * Source: osd-sw ccb4dfa, coretracelogger.c and systracelogger.c.
 */
#ifndef TL_OSD_OSDSW_H
#define TL_OSD_OSDSW_H

#include "osd/reader.h"

enum tl_osdsw_log { TL_OSDSW_CTM, TL_OSDSW_STM, TL_OSDSW_PRINT };

/* Log type for an option value ("osd-sw-ctm", "osd-sw-stm", "osd-sw-print"), or TL_USAGE. */
int tl_osdsw_log_of(const char *name);

/* Append the log's text for one event, if it belongs to the log. Returns TL_NOMEM. */
TL_MUST_USE int tl_osdsw_event(struct tl_buf *out, enum tl_osdsw_log log,
                               const struct tl_osd_event *event);

/* A log converted from DI bytes. The members are private except `out`, which may be emptied at any
 * time. */
struct tl_osdsw {
    struct tl_buf out;
    enum tl_osdsw_log log;
    struct tl_di di;
    struct tl_osd_reader reader;
    struct tl_osd_event doubtful; /* pending until the module's next event shows what it is */
};

/* `setup` may be NULL. Returns TL_NOMEM. tl_osdsw_fini() must be called in any case. */
TL_MUST_USE int tl_osdsw_init(struct tl_osdsw *s, enum tl_osdsw_log log,
                              const struct tl_setup *setup);
TL_MUST_USE int tl_osdsw_push(struct tl_osdsw *s, const uint8_t *p, size_t n);
TL_MUST_USE int tl_osdsw_finish(struct tl_osdsw *s);
void tl_osdsw_fini(struct tl_osdsw *s);

#endif
