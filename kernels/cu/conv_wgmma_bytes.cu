// The kernels of conv_wgmma.cu for bytes: a file of their own, since products of unsigned by
// signed bytes are part of the PTX language from 8.4 on, those of bits from 8.0 on.

#define WITHOUT_ENTRIES
#include "conv_wgmma.cu"

// As many warpgroups as registers suffice for, or fewer where pixels take too much shared
// memory beside the weights.
CONV(conv_wgmma_bytes_bits, OF_BYTES, 4, true)
CONV(conv_wgmma_bytes_bits_w2, OF_BYTES, 2, true)
CONV(conv_wgmma_bytes_floats, OF_BYTES, 3, false)
CONV(conv_wgmma_bytes_floats_w2, OF_BYTES, 2, false)
