// Dense layers on bits: partial sums of xor and popcount by output and segment
// of the row, then finish (finish.cl) adds them up.

// Without local memory: one work-item per output and segment.
// weights: [word][output], so that neighbours read neighbours.
__kernel void dense_segments(__global const uint *restrict in, __global const uint *restrict weights,
	__global int *restrict sums, __constant const int *g)
{
	const int item = get_global_id(0);
	const size_t image = get_global_id(1);
	if (item >= OUT_C * SEGMENTS)
		return;
	const int segment = item / OUT_C;
	const int o = item - segment * OUT_C;
	in += image * ROW_WORDS;
	int sum = 0;
	const int end = min((segment + 1) * SEGMENT_WORDS, ROW_WORDS);
	for (int k = segment * SEGMENT_WORDS; k < end; k++)
		sum += popcount(in[k] ^ weights[(size_t)k * OUT_C + o]);
	sums[image * (OUT_C * SEGMENTS) + item] = sum;
}

// The paper's: a work-group of 64 per output, each work-item one of 64 segments
// of the row, then a reduction in local memory. weights: [output][word].
__kernel __attribute__((reqd_work_group_size(64, 1, 1)))
void dense_reduce(__global const uint *restrict in, __global const uint *restrict weights,
	__global int *restrict sums, __constant const int *g)
{
	__local int partial[64];
	const int segment = get_local_id(0);
	const int o = get_group_id(0);
	const size_t image = get_global_id(1);
	in += image * ROW_WORDS;
	weights += (size_t)o * ROW_WORDS;
	int sum = 0;
	for (int k = segment; k < ROW_WORDS; k += 64)
		sum += popcount(in[k] ^ weights[k]);
	partial[segment] = sum;
	barrier(CLK_LOCAL_MEM_FENCE);
	for (int width = 32; width > 0; width >>= 1) {
		if (segment < width)
			partial[segment] += partial[segment + width];
		barrier(CLK_LOCAL_MEM_FENCE);
	}
	if (segment == 0)
		sums[image * OUT_C + o] = partial[0];
}
