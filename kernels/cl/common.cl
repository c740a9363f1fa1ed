// Shared by every program. All geometry is named by macros: in a program that
// is specialised for a step they are numbers, in the general one they read the
// table g (see Geometry in backend/internal/gpu). The numeric contract forbids
// contraction, so every fused multiply-add is written as fma().
#pragma OPENCL FP_CONTRACT OFF

// ACTIVATION, what a step ends in.
#define ACTIVATION_RELU 1
#define ACTIVATION_PRELU 2
#define ACTIVATION_CLIP 3

// The function at the end of a step, of a value of channel c. slope has the slopes
// of the channels, or the two bounds of a clip.
inline float activate(float v, __global const float *slope, int c, __constant const int *g)
{
	if (ACTIVATION == ACTIVATION_RELU)
		return v > 0.0f ? v : 0.0f;
	if (ACTIVATION == ACTIVATION_PRELU)
		return v < 0.0f ? v * slope[c] : v;
	if (ACTIVATION == ACTIVATION_CLIP) {
		v = v > slope[0] ? v : slope[0];
		return v < slope[1] ? v : slope[1];
	}
	return v;
}

// The channels of a 32-bit word that are not padding.
#define WORD_MASK(word, channels) \
	((channels) - 32 * (word) >= 32 ? 0xffffffffu : (1u << ((channels) - 32 * (word))) - 1u)
