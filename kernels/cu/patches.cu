// The convolution of the paper (Khan, Huttunen, Boutellier: Binarized convolutional
// neural networks for efficient inference on GPUs, 2018): patches are extracted and
// packed in one kernel, which binarises the image on the way where it reads one, a GEMM of xor and popcount with 32×32 tiles in shared
// memory follows, and finish thresholds, pools and packs its sums. Its dense layer
// is dense_block of dense.cu.

#include "binarize.cuh"

// Brings the pixels of a part of the tile. Steps of blockDim.x pixels are split into
// rows and columns once, not per pixel. word tells word k of a pixel.
template <class Word>
DEVICE void load_part(const Geometry &g, const Word &word, uint32_t *tile, int top, int left, int first_y, int first_x, int height, int width)
{
	if (height <= 0 || width <= 0)
		return;
	const int step = blockDim.x, step_y = step / width, step_x = step - step_y * width;
	int y = threadIdx.x / width, x = threadIdx.x - y * width;
	while (y < height) {
		const int iy = top + first_y + y, ix = left + first_x + x;
		// The tile is 0 already, which is what the bits outside the image are.
		if (iy >= 0 && iy < g.in_h && ix >= 0 && ix < g.in_w)
			for (int k = 0; k < g.words; k++)
				tile[((first_y + y) * g.tile_w + first_x + x) * g.words + k] = word(iy, ix, k);
		y += step_y;
		x += step_x;
		if (x >= width) {
			x -= width;
			y++;
		}
	}
}

// A block of S×W threads makes the patches of S×W = tile_y × tile_x output pixels.
// The pixels under them, at stride 1 (S+2R)×(W+2R) of them for windows of radius R,
// come to zero-initialised shared memory, tile_h × tile_w × words, in three steps: the
// body, the columns of the halo to its right, the rows of the halo below. grid: tiles,
// 1, images.
template <class Word>
DEVICE void pack(const Geometry &g, const Word &word_of, uint32_t *tile, uint32_t *patches)
{
	const int ty = blockIdx.x / g.tiles_x, tx = blockIdx.x - ty * g.tiles_x;
	const size_t image = blockIdx.z;
	const int top = ty * g.tile_y * g.stride_h - g.pad_t, left = tx * g.tile_x * g.stride_w - g.pad_l;

	for (int i = threadIdx.x; i < g.tile_h * g.tile_w * g.words; i += blockDim.x)
		tile[i] = 0;
	__syncthreads();
	const int body_h = min(g.tile_y * g.stride_h, g.tile_h), body_w = min(g.tile_x * g.stride_w, g.tile_w);
	load_part(g, word_of, tile, top, left, 0, 0, body_h, body_w);
	load_part(g, word_of, tile, top, left, 0, body_w, body_h, g.tile_w - body_w);
	load_part(g, word_of, tile, top, left, body_h, 0, g.tile_h - body_h, g.tile_w);
	__syncthreads();

	const int ly = threadIdx.x / g.tile_x, lx = threadIdx.x - ly * g.tile_x;
	const int y = ty * g.tile_y + ly, x = tx * g.tile_x + lx;
	if (y >= g.conv_h || x >= g.conv_w)
		return;
	patches += (image * g.conv_h * g.conv_w + y * g.conv_w + x) * g.patch_words;
	// Algorithm 1 of the paper: the bits of the taps follow each other without
	// gaps, and count says how many bits of word are filled, which saves a division
	// per tap.
	uint32_t word = 0;
	int count = 0;
	for (int ky = 0; ky < g.kh; ky++) {
		const uint32_t *row = &tile[((ly * g.stride_h + ky * g.dilation_h) * g.tile_w + lx * g.stride_w) * g.words];
		for (int kx = 0; kx < g.kw; kx++, row += g.dilation_w * g.words)
			for (int k = 0; k < g.words; k++) {
				const uint32_t v = row[k];
				const int n = min(g.group_in - 32 * k, 32);
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
extern "C" __global__ void __launch_bounds__(256)
pack_patches(const Geometry g, const uint32_t *__restrict__ in, uint32_t *__restrict__ patches)
{
	after_previous(in);
	DYNAMIC_SHARED(uint32_t, tile);
	const uint32_t *image = in + (size_t)blockIdx.z * (g.in_h * g.in_w * g.in_words);
	pack(g, [&](int y, int x, int k) { return image[(y * g.in_w + x) * g.in_words + k]; }, tile, patches);
}

// The patches of an image of bytes, which is compared with thresholds, its luma's
// neighbours or the middle of its range on the way; arguments as those of binarize.
// in_c are the channels of the image, group_in those that are made of them.
extern "C" __global__ void __launch_bounds__(256)
pack_image(const Geometry g, const uint8_t *__restrict__ in, uint32_t *__restrict__ patches,
	const int *__restrict__ thresholds, const int *__restrict__ ranges, const uint32_t *__restrict__ flip)
{
	after_previous(in, ranges);
	DYNAMIC_SHARED(uint32_t, tile);
	const size_t number = blockIdx.z;
	const uint8_t *image = in + number * (g.in_h * g.in_w * g.in_c);
	int lo = 255, hi = 0;
	if (g.scheme == SCHEME_MINMAX)
		for (int part = 0; part < g.parts; part++) {
			lo = min(lo, ranges[(number * g.parts + part) * 2]);
			hi = max(hi, ranges[(number * g.parts + part) * 2 + 1]);
		}
	pack(g, [&](int y, int x, int k) {
		uint32_t word = 0;
		const int channels = min(g.group_in - 32 * k, 32);
		for (int l = 0; l < channels; l++) {
			const int c = 32 * k + l;
			const bool plus = g.scheme == SCHEME_MINMAX ? 2 * ((int)image[(y * g.in_w + x) * g.in_c + c] - lo) > hi - lo :
				binarized(g, g.scheme, image, thresholds, y, x, c);
			word |= (uint32_t)plus << l;
		}
		return g.flip ? word ^ flip[k] : word;
	}, tile, patches);
}

#define GEMM_TILE 32

// sums[pixel][output] = Σ popcount(patch ^ weight), weights: [output][word], over
// the pixels of all images. grid: tiles of pixels, tiles of outputs.
extern "C" __global__ void __launch_bounds__(GEMM_TILE * GEMM_TILE)
xor_gemm(const Geometry g, const uint32_t *__restrict__ patches, const uint32_t *__restrict__ weights, int *__restrict__ sums)
{
	after_previous(patches);
	__shared__ uint32_t a[GEMM_TILE][GEMM_TILE + 1], b[GEMM_TILE][GEMM_TILE + 1];
	const int lx = threadIdx.x % GEMM_TILE, ly = threadIdx.x / GEMM_TILE;
	const int pixels = g.images * g.conv_h * g.conv_w;
	const int pixel = blockIdx.x * GEMM_TILE + ly, o = blockIdx.y * GEMM_TILE + lx;
	const int row = blockIdx.y * GEMM_TILE + ly; // the output whose weights this thread brings
	int sum = 0;
	for (int k = 0; k < g.patch_words; k += GEMM_TILE) {
		const bool within = k + lx < g.patch_words;
		a[ly][lx] = within && pixel < pixels ? patches[(size_t)pixel * g.patch_words + k + lx] : 0;
		b[ly][lx] = within && row < g.out_c ? weights[(size_t)row * g.patch_words + k + lx] : 0;
		__syncthreads();
		const int rest = min(g.patch_words - k, GEMM_TILE);
		if (rest == GEMM_TILE) {
#pragma unroll
			for (int i = 0; i < GEMM_TILE; i++)
				sum += __popc(a[ly][i] ^ b[lx][i]);
		} else {
#pragma unroll 4
			for (int i = 0; i < rest; i++)
				sum += __popc(a[ly][i] ^ b[lx][i]);
		}
		__syncthreads();
	}
	if (pixel < pixels && o < g.out_c)
		sums[(size_t)pixel * g.out_c + o] = sum;
}

// Makes the result of a convolution of the popcounts sums[image][pixel][output]:
// threshold, pooling and packing, or scale and shift. A warp makes 32 channels of
// an output pixel, a lane each. grid: warps of an image, 1, images.
extern "C" __global__ void __launch_bounds__(256)
finish(const Geometry g, const int *__restrict__ sums, void *__restrict__ out, const int *__restrict__ thresholds,
	const float *__restrict__ scale, const float *__restrict__ shift, const float *__restrict__ slope,
	const uint32_t *__restrict__ flip, const int *__restrict__ rows, const int *__restrict__ cols, const int *__restrict__ correction)
{
	after_previous(sums);
	const int item = (blockIdx.x * blockDim.x + threadIdx.x) / LANES, lane = threadIdx.x % LANES;
	const size_t image = blockIdx.z;
	if (item >= g.out_h * g.out_w * g.blocks)
		return;
	const int pixel = item / g.blocks, block = item - pixel * g.blocks;
	const int oy = pixel / g.out_w, ox = pixel - oy * g.out_w, o = block * LANES + lane;
	sums += image * g.conv_h * g.conv_w * g.out_c;
	bool plus = false;
	for (int py = 0; py < g.pool_h; py++)
		for (int px = 0; px < g.pool_w; px++) {
			const int y = oy * g.pool_h + py, x = ox * g.pool_w + px;
			if (o >= g.out_c)
				continue;
			int acc = g.taps - 2 * sums[(y * g.conv_w + x) * g.out_c + o];
			if (g.border)
				acc += correction[(rows[y] * g.cols + cols[x]) * (g.blocks * LANES) + o];
			if (g.to_bits)
				plus = plus || acc >= thresholds[o];
			else
				((float *)out)[(image * g.out_h * g.out_w + pixel) * g.out_c + o] = scaled(g, (float)acc, scale, shift, slope, o);
		}
	if (!g.to_bits)
		return;
	const uint32_t word = __ballot_sync(FULL_WARP, plus);
	if (lane == 0)
		((uint32_t *)out)[(image * g.out_h * g.out_w + pixel) * g.out_words + block] = g.flip ? word ^ flip[block] : word;
}
