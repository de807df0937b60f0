/* SPDX-License-Identifier: MIT */
/*
 * The store in a pool of a Ceph cluster, through librados.
 *
 *   root       the number of index objects, the epoch of TL_LEASE_ALL, and whether the catalog was
 *              filled
 *   index.N    omap: keys, catalog rows, epochs and intents of the traces whose hash is N. All
 *              entries of a trace are in one object, so each change of it is one atomic operation
 *   d.S.N.P    piece P (4 MiB) of what was written as S.N; a name is never reused by a later writer
 *   lease.NAME the exclusive lock of a lease, with a duration measured by the cluster
 *   live.S     the same for a session: its process is alive
 *   news       watched by all servers; it is empty
 *
 * Fencing: acquiring a lease increments its epoch in the index, and each change of the index
 * compares the epochs of the held leases in the same operation. Bytes that a former holder still
 * writes go to pieces that no entry names. So nothing depends on clocks, or on a process noticing
 * in time that it has lost a lease.
 *
 * Pieces are announced in the index (an intent) before they are written, until an entry names them;
 * opening the store removes pieces that ended sessions had only announced. An entry whose pieces
 * were removed in this way is refused.
 */
#ifndef TL_RADOS_RADOS_H
#define TL_RADOS_RADOS_H

#include "store/backend.h"

/*
 * The store in the pool named by `url`; it is created if the pool has none:
 *
 *   rados:POOL[?conf=FILE&id=NAME&namespace=NS&lease=SECONDS&index=N]
 *
 * conf: the cluster's configuration (librados' own search otherwise); id: the client's name after
 * "client." (admin); namespace: of the objects in the pool; lease: how long a server that is gone
 * keeps its leases (2, 1..600); index: how many index objects a new store gets (256, 1..4096).
 * The process ignores SIGPIPE, which librados' connections may raise. `url` is copied. TL_USAGE: it
 * makes no sense; TL_UNREACHABLE: no cluster answers; TL_NOTFOUND: there is no such pool;
 * TL_UNSUPPORTED: this build has no librados, or a newer program created it.
 */
TL_MUST_USE int tl_backend_rados(struct tl_backend **out, const char *url, struct tl_fail *fail);
/* Does `url` name a store of this kind? */
bool tl_is_rados(const char *url);

#endif
