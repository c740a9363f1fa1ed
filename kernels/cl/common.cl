// Shared by every program. All geometry is named by macros: in a program that
// is specialised for a step they are numbers, in the general one they read the
// table g (see Geometry in backend/internal/gpu). The numeric contract forbids
// contraction, so every fused multiply-add is written as fma().
#pragma OPENCL FP_CONTRACT OFF

#define RECTIFY(v) (!RELU || (v) > 0.0f ? (v) : 0.0f)

// The channels of a 32-bit word that are not padding.
#define WORD_MASK(word, channels) \
	((channels) - 32 * (word) >= 32 ? 0xffffffffu : (1u << ((channels) - 32 * (word))) - 1u)
