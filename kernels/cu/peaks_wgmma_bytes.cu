// The loops of peaks_wgmma.cu for bytes: a file of their own, as conv_wgmma_bytes.cu is.

#define WITHOUT_ENTRIES
#include "peaks_wgmma.cu"

PEAK(peak_wgmma_u8s8, OF_BYTES, 0)
PEAK(peak_wgmma_u8s8_16, OF_BYTES, 1)
