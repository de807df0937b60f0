/* SPDX-License-Identifier: MIT */
/*
 * What users change: labels and notes of traces, their setup, images, and which traces there are.
 * The interface is lake.h; this is what other parts of the server need of it. Thread-safe.
 */
#ifndef TL_CHANGE_CHANGE_H
#define TL_CHANGE_CHANGE_H

struct tl_trace;

/* Delete a capture without bytes that nobody pushes. Does nothing with any other. */
void tl_trace_delete_empty(struct tl_trace *trace);

#endif
