// The paper's convolution: patches are extracted and packed in one kernel, which
// binarises the image on the way where it reads one, a GEMM of xor and popcount with tiles in local memory follows, and finish
// (finish.cl) thresholds, pools and packs its sums.

// A work-group makes the patches of a block of TILE_Y × TILE_X output pixels. The
// pixels that they cover are brought to local memory in three steps: the body,
// the columns of the halo to its right, the rows of the halo below. WORD is word k of
// the pixel (iy, ix).
#define LOAD(first_y, first_x, height, width, WORD) \
	for (int i = get_local_id(0); i < (height) * (width); i += TILE_Y * TILE_X) { \
		const int y = (first_y) + i / max(width, 1), x = (first_x) + i % max(width, 1); \
		const int iy = top + y, ix = left + x; \
		const bool inside = iy >= 0 && iy < IN_H && ix >= 0 && ix < IN_W; \
		for (int k = 0; k < WORDS; k++) \
			tile[(y * TILE_W + x) * WORDS + k] = inside ? WORD : 0; \
	}
#define LOAD_TILE(WORD) \
	const int ty = get_group_id(0) / TILES_X, tx = get_group_id(0) - ty * TILES_X; \
	const int body_h = min(TILE_Y * STRIDE_H, TILE_H), body_w = min(TILE_X * STRIDE_W, TILE_W); \
	const int top = ty * TILE_Y * STRIDE_H - PAD_T, left = tx * TILE_X * STRIDE_W - PAD_L; \
	LOAD(0, 0, body_h, body_w, WORD) \
	LOAD(0, body_w, body_h, TILE_W - body_w, WORD) \
	LOAD(body_h, 0, TILE_H - body_h, TILE_W, WORD)

// Packs the patch of a work-item from the tile.
inline void pack(__local const uint *tile, __global uint *patches, __constant const int *g)
{
	const int ty = get_group_id(0) / TILES_X, tx = get_group_id(0) - ty * TILES_X;
	const int ly = get_local_id(0) / TILE_X, lx = get_local_id(0) - ly * TILE_X;
	const int y = ty * TILE_Y + ly, x = tx * TILE_X + lx;
	if (y >= CONV_H || x >= CONV_W)
		return;
	patches += (get_global_id(1) * (CONV_H * CONV_W) + y * CONV_W + x) * PATCH_WORDS;
	// The bits of the taps follow each other without gaps. count says how many
	// bits of word are filled, and saves a division per tap.
	uint word = 0;
	int count = 0;
	for (int ky = 0; ky < KH; ky++)
		for (int kx = 0; kx < KW; kx++) {
			const int at = ((ly * STRIDE_H + ky * DILATION_H) * TILE_W + lx * STRIDE_W + kx * DILATION_W) * WORDS;
			for (int k = 0; k < WORDS; k++) {
				const uint v = tile[at + k];
				const int n = min(GROUP_IN - 32 * k, 32);
				word |= v << count;
				count += n;
				if (count >= 32) {
					*patches++ = word;
					count -= 32;
					// What did not fit; a shift by 32 is undefined.
					word = count > 0 ? v >> (n - count) : 0;
				}
			}
		}
	if (count > 0)
		*patches = word;
}

// The patches of activations that are bits.
__kernel void pack_patches(__global const uint *restrict in, __global uint *restrict patches,
	__local uint *tile, __constant const int *g)
{
	in += get_global_id(1) * (IN_H * IN_W * IN_WORDS);
	LOAD_TILE(in[(iy * IN_W + ix) * IN_WORDS + k])
	barrier(CLK_LOCAL_MEM_FENCE);
	pack(tile, patches, g);
}

// The patches of an image of bytes, which is binarised on the way; arguments as those of
// binarize. IN_C are the channels of the image, GROUP_IN those that are made of them.
__kernel void pack_image(__global const uchar *restrict in, __global uint *restrict patches,
	__global const int *restrict thresholds, __global const int *restrict ranges,
	__global const uint *restrict flip, __local uint *tile, __constant const int *g)
{
	const size_t image = get_global_id(1);
	in += image * (IN_H * IN_W * IN_C);
	const int2 range = range_of(ranges, image, g);
	LOAD_TILE(binarized_word(in, thresholds, range, flip, iy, ix, k, GROUP_IN, g))
	barrier(CLK_LOCAL_MEM_FENCE);
	pack(tile, patches, g);
}

// sums[pixel][output] = Σ popcount(patch ^ weight), weights: [output][word].
__kernel __attribute__((reqd_work_group_size(GEMM_TILE * GEMM_TILE, 1, 1)))
void xor_gemm(__global const uint *restrict patches, __global const uint *restrict weights,
	__global int *restrict sums, __constant const int *g)
{
	__local uint a[GEMM_TILE][GEMM_TILE + 1], b[GEMM_TILE][GEMM_TILE + 1];
	const int ly = get_local_id(0) / GEMM_TILE, lx = get_local_id(0) % GEMM_TILE;
	const int across = (OUT_C + GEMM_TILE - 1) / GEMM_TILE;
	const int by = get_group_id(0) / across, bx = get_group_id(0) - by * across;
	const size_t image = get_global_id(1);
	const int pixel = by * GEMM_TILE + ly, o = bx * GEMM_TILE + lx;
	const int row = bx * GEMM_TILE + ly; // the output whose weights this work-item brings
	patches += image * (CONV_H * CONV_W * PATCH_WORDS);
	int sum = 0;
	for (int k = 0; k < PATCH_WORDS; k += GEMM_TILE) {
		const bool within = k + lx < PATCH_WORDS;
		a[ly][lx] = within && pixel < CONV_H * CONV_W ? patches[pixel * PATCH_WORDS + k + lx] : 0;
		b[ly][lx] = within && row < OUT_C ? weights[row * PATCH_WORDS + k + lx] : 0;
		barrier(CLK_LOCAL_MEM_FENCE);
		for (int i = 0; i < GEMM_TILE; i++)
			sum += popcount(a[ly][i] ^ b[lx][i]);
		barrier(CLK_LOCAL_MEM_FENCE);
	}
	if (pixel < CONV_H * CONV_W && o < OUT_C)
		sums[(image * (CONV_H * CONV_W) + pixel) * OUT_C + o] = sum;
}
