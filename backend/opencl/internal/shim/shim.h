#include <CL/cl.h>
#include <stdlib.h>

// Returns what went wrong, or 0.
const char *bitcnn_cl_load(void);

void bitcnn_cl_lose(int yes);
