#include <cuda.h>

// Returns what went wrong, or 0.
const char *bitcnn_cuda_load(void);
