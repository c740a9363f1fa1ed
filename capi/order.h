#ifndef BITCNN_ORDER_H
#define BITCNN_ORDER_H

#include <stddef.h>
#include <stdint.h>

// bitcnn_reorder copies images of floats or bytes from NHWC to NCHW, or back.
void bitcnn_reorder(void *to, const void *from, int64_t images, size_t pixels, size_t channels, int floats, int to_nchw);

#endif
