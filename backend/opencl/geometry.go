//go:build opencl && cgo && linux && (amd64 || arm64)

package opencl

import (
	"fmt"
	"strings"
)

// geometry holds the numbers that the kernels name in capital letters. A kernel
// that is specialised has them as constants; the general programs read them from
// a table, their last argument. Unset numbers are 0.
type geometry map[string]int

// geometryNames fixes the places in the table.
var geometryNames = []string{
	"IN_H", "IN_W", "IN_C", "IN_WORDS", // shape; 32-bit words of a pixel
	"OUT_H", "OUT_W", "OUT_C", "OUT_WORDS",
	"KH", "KW", "STRIDE_H", "STRIDE_W", "DILATION_H", "DILATION_W", "PAD_T", "PAD_L",
	"POOL_H", "POOL_W", "CONV_H", "CONV_W", // fused pooling, and the size before it
	"GROUP_IN", "GROUP_OUT", // channels of a group
	"WORDS",        // 32-bit words of a tap
	"BLOCKS",       // blocks of LANES output channels
	"TAPS",         // taps of a sum, with channels
	"ZERO_POINT",   // of bytes
	"COLS",         // classes of border columns
	"BORDER",       // border correction
	"SCALED",       // scale and shift
	"RELU", "FLIP", //
	"SCHEME",                                          // of binarisation
	"PARTS",                                           // of the search for the smallest and largest byte
	"ROW_WORDS",                                       // 32-bit words of the row of a dense layer
	"SEGMENTS",                                        // partial sums of an output
	"SEGMENT_WORDS",                                   // 32-bit words of each
	"PATCH_WORDS",                                     // 32-bit words of a packed patch
	"TILE_Y", "TILE_X", "TILE_H", "TILE_W", "TILES_X", // output pixels of a tile, input pixels under it
}

// table is the general program's argument.
func (g geometry) table() []int32 {
	t := make([]int32, len(geometryNames))
	for i, name := range geometryNames {
		t[i] = int32(g[name])
	}
	return t
}

// options define the names for the compiler.
func (g geometry) options(specialised bool) string {
	var b strings.Builder
	for i, name := range geometryNames {
		if specialised {
			fmt.Fprintf(&b, " -D%s=%d", name, g[name])
		} else {
			fmt.Fprintf(&b, " -D%s=g[%d]", name, i)
		}
	}
	return b.String()
}

// form holds what a general program must know when it is built, too.
type form struct {
	lanes    int  // output channels of a work-item
	bits     bool // the output is bits
	mixed    bool // the lanes of a work-item belong to different groups
	bytes    bool // the input is bytes
	source   int  // of affine: 1 bytes, 2 bits, 3 floats
	gemmTile int
}

func (f form) options() string {
	flag := func(b bool) int {
		if b {
			return 1
		}
		return 0
	}
	return fmt.Sprintf("-DLANES=%d -DTO_BITS=%d -DMIXED=%d -DBYTES=%d -DSOURCE=%d -DGEMM_TILE=%d",
		max(f.lanes, 1), flag(f.bits), flag(f.mixed), flag(f.bytes), f.source, max(f.gemmTile, 1))
}
