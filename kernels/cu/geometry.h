// The sizes of a step, the first parameter of every kernel, passed by value.
// kernels/geometry.go mirrors it: int32_t fields only, in the same order.
#ifndef BCNN_GEOMETRY_H
#define BCNN_GEOMETRY_H

// What a step makes of its float32 values at the end, as bcnn.ActivationKind.
enum Activation {
	ACTIVATION_NONE,
	ACTIVATION_RELU,
	ACTIVATION_PRELU,
	ACTIVATION_CLIP,
	ACTIVATION_FUNCTION,
};

#define MAX_PLANES 4 // bits of a value

struct Geometry {
	// Shapes of the tensors; words are 32-bit words of a pixel, 2·ceil(C/64).
	int32_t in_h, in_w, in_c, in_words;
	int32_t out_h, out_w, out_c, out_words;
	// The window.
	int32_t kh, kw, stride_h, stride_w, dilation_h, dilation_w, pad_t, pad_l;
	int32_t pool_h, pool_w; // fused pooling, 1 for none
	int32_t conv_h, conv_w; // size before pooling, of what is pooled
	int32_t group_in, group_out; // channels of a group
	int32_t words;  // 32-bit words of a tap
	int32_t blocks; // blocks of 32 output channels, those of padding included
	int32_t taps;   // taps of a sum, with channels
	int32_t zero_point; // of bytes
	int32_t cols;       // classes of border columns
	int32_t border, scaled, flip, to_bits; // 0 or 1
	int32_t activation; // as above
	int32_t scheme;     // of binarisation
	int32_t parts;      // of the search for the smallest and largest byte
	int32_t row_words;  // 32-bit words of the row of a dense layer
	int32_t segments;   // partial sums of an output
	int32_t patch_words; // 32-bit words of a packed patch
	int32_t tile_y, tile_x;  // output pixels of a tile
	int32_t tile_h, tile_w;  // input pixels under it
	int32_t tiles_x;         // tiles in a row of them
	int32_t row_pixels, image_rows; // of a sequence: pixels from a row to the next, rows from an image to the next
	int32_t per_row, per_image;     // 2^32 divided by these, rounded up; 0 where tiles are no sequences
	int32_t images;          // of the batch
	int32_t planes;          // 256-bit planes of all taps of a window
	int32_t part_planes;     // those that a block sums up
	int32_t vector;          // words, or bytes, at once: 1, 2 or 4
	int32_t pool_log2;       // of the pixels of a pooling window
	int32_t first, end;      // channels of the output that a gather makes
	int32_t other_pixels, other_c; // of the second operand of a product
	int32_t in_planes, out_planes; // bits of a value; heights count rows of values
};

#endif
