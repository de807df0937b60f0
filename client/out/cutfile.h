/* SPDX-License-Identifier: MIT */
/*
 * Programs' files are mapped, so that of large ones only what was executed is read. One that
 * becomes shorter meanwhile, as when it is linked anew in place, has no bytes where the command
 * reads.
 */
#ifndef TL_OUT_CUTFILE_H
#define TL_OUT_CUTFILE_H

/*
 * From now on, reading a mapped file behind its end ends the process with status 1 and a message
 * that names the file; incomplete output files (out/outfile.h) are removed. Without it, SIGBUS
 * does.
 */
void tl_cutfile_guard(void);

#endif
