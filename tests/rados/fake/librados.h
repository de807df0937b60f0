/* SPDX-License-Identifier: MIT */
/* librados on top of model.h, in place of the library and below interposer.h: a store in RADOS
 * without a cluster. An operation is executed when it is submitted. */
#ifndef TL_TESTS_RADOS_LIBRADOS_H
#define TL_TESTS_RADOS_LIBRADOS_H

/* From now on stores are opened in the model, which is emptied. `url` can name any store. */
void fake_librados(void);

#endif
