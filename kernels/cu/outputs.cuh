// What products in tensor cores end in: of the sums of a warp, thresholds, pooling and
// packed words, or floats.
#ifndef BCNN_OUTPUTS_CUH
#define BCNN_OUTPUTS_CUH

#include "common.cuh"

// The parameters that finish needs. base and thresholds, which are negative here, are what is
// added to sums: those of bits are set that are then not negative.
struct Outputs {
	void *out;
	const int32_t *base, *thresholds;
	const float *scale, *shift, *slope;
	const uint32_t *flip;
	const int32_t *correction;
};

static __device__ __forceinline__ constexpr int log2_of(int n) { return n <= 1 ? 0 : 1 + log2_of(n / 2); }

// The sums of a warp of 8·SLOTS rows, which are pixels, and 8·COLS columns, which are
// output channels: [s / 2][j][s % 2 * 2 + e] of a lane is that of row 8s + lane / 4 and
// column 8j + 2(lane % 4) + e, as tensor cores have it. Column 8j + 2t + e of a block of 32
// is channel 8t + 2j + e, so a lane holds a byte of the packed word. Pixels of a pooling
// window are rows 8 apart, and of windows that are larger than those of a lane, neighbours.
// The sums of ±1 are, but for a constant, FACTOR times those.
template <int SLOTS, int COLS, int FACTOR = -2> struct LaneOutputs {
	typedef int32_t Sums[SLOTS / 2][COLS][4];

	DEVICE void load8(int v[8], const int *p)
	{
		const int4 low = *(const int4 *)p, high = *(const int4 *)(p + 4);
		v[0] = low.x, v[1] = low.y, v[2] = low.z, v[3] = low.w;
		v[4] = high.x, v[5] = high.y, v[6] = high.z, v[7] = high.w;
	}

	DEVICE void load8(float v[8], const float *p)
	{
		const float4 low = *(const float4 *)p, high = *(const float4 *)(p + 4);
		v[0] = low.x, v[1] = low.y, v[2] = low.z, v[3] = low.w;
		v[4] = high.x, v[5] = high.y, v[6] = high.z, v[7] = high.w;
	}

	// Makes the outputs of columns first to end. PIXELS has, of row 8s + lane / 4, border(s),
	// where its corrections begin, and pixel(s), the output pixel of the batch or −1.
	template <class PIXELS> DEVICE void finish(const Geometry &g, const Sums &acc, const Outputs &to, const PIXELS &pixels, int first, int end)
	{
		if (g.to_bits)
			finish_bits(g, acc, to, pixels, first, end);
		else
			finish_floats(g, acc, to, pixels, first, end);
	}

	// The sums of row 8s + lane / 4 and the 8 channels of a lane in block n of 32, but
	// for the constant that base and thresholds hold.
	DEVICE void values(int v[8], const Sums &acc, int s, int n, const int32_t *correction, int border, int o)
	{
#pragma unroll
		for (int k = 0; k < 8; k++)
			v[k] = FACTOR * acc[s / 2][4 * n + k / 2][s % 2 * 2 + k % 2];
		if (border != 0) {
			int c[8];
			load8(c, correction + border + o);
#pragma unroll
			for (int k = 0; k < 8; k++)
				v[k] += c[k];
		}
	}

	template <class PIXELS> DEVICE void finish_bits(const Geometry &g, const Sums &acc, const Outputs &to, const PIXELS &pixels, int first, int end)
	{
		const int lane = threadIdx.x % 32, at = lane / 4, t = lane % 4;
		const int slot_log2 = min(g.pool_log2, log2_of(SLOTS)), lane_log2 = g.pool_log2 - slot_log2;
		const int slot_mask = (1 << slot_log2) - 1, lane_mask = (1 << lane_log2) - 1;
#pragma unroll
		for (int n = 0; n < COLS / 4; n++) {
			const int channel = first + 32 * n, word = channel / 32, o = channel + 8 * t;
			if (channel >= end)
				break;
			int limit[8];
			load8(limit, to.thresholds + o);
			const uint32_t flip = ~(g.flip ? to.flip[word] >> (8 * t) : 0);
			uint32_t clear = ~0u; // the sign bits of all pixels of a window
#pragma unroll
			for (int s = 0; s < SLOTS; s++) {
				int v[8];
				values(v, acc, s, n, to.correction, pixels.border(s), o);
				uint32_t signs = 0;
#pragma unroll
				for (int k = 7; k >= 0; k--)
					signs = __funnelshift_l(v[k] + limit[k], signs, 1);
				clear &= signs;
				if ((s & slot_mask) != slot_mask)
					continue;
				for (int lanes = 1; lanes <= lane_mask; lanes *= 2)
					clear &= __shfl_xor_sync(FULL_WARP, clear, 4 * lanes);
				const int q = pixels.pixel(s);
				if (q >= 0 && (at & lane_mask) == 0) {
					uint8_t *pixel = (uint8_t *)to.out + (size_t)q * g.out_words * 4;
					pixel[word * 4 + t] = (uint8_t)(clear ^ flip);
					// The upper half of the last 64-bit word may have no channels.
					if (word + 2 == g.out_words && 32 * (word + 1) >= g.out_c)
						pixel[word * 4 + 4 + t] = 0;
				}
				clear = ~0u;
			}
		}
	}

	// scale and shift are 1 and 0 where there are none: that changes no value.
	template <class PIXELS> DEVICE void finish_floats(const Geometry &g, const Sums &acc, const Outputs &to, const PIXELS &pixels, int first, int end)
	{
		const int lane = threadIdx.x % 32, t = lane % 4;
		const bool whole = g.out_c % 4 == 0; // 16-byte stores are aligned
#pragma unroll
		for (int n = 0; n < COLS / 4; n++) {
			const int channel = first + 32 * n, o = channel + 8 * t;
			if (channel >= end)
				break;
			int base[8];
			float scale[8], shift[8];
			load8(base, to.base + o);
			load8(scale, to.scale + o);
			load8(shift, to.shift + o);
#pragma unroll
			for (int s = 0; s < SLOTS; s++) {
				int v[8];
				values(v, acc, s, n, to.correction, pixels.border(s), o);
				float f[8];
#pragma unroll
				for (int k = 0; k < 8; k++)
					f[k] = __fmaf_rn((float)(v[k] + base[k]), scale[k], shift[k]);
				activate_all<1>(g.activation, f, to.slope, o);
				const int q = pixels.pixel(s);
				if (q < 0)
					continue;
				float *pixel = (float *)to.out + (size_t)q * g.out_c + o;
				if (whole && o + 8 <= end) {
					((float4 *)pixel)[0] = make_float4(f[0], f[1], f[2], f[3]);
					((float4 *)pixel)[1] = make_float4(f[4], f[5], f[6], f[7]);
				} else {
#pragma unroll
					for (int k = 0; k < 8; k++)
						if (o + k < end)
							pixel[k] = f[k];
				}
			}
		}
	}
};

#endif
