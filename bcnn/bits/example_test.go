package bits_test

import (
	"fmt"
	mathbits "math/bits"

	"github.com/bitcnn/bitcnn/bcnn/bits"
)

// The dot product of two rows of ±1 values, by their bits.
func Example() {
	x := []int8{+1, -1, +1, +1, -1}
	w := []int8{+1, +1, +1, -1, -1}
	px, pw := make([]uint64, bits.Words(len(x))), make([]uint64, bits.Words(len(w)))
	bits.Pack(px, x, len(x))
	bits.Pack(pw, w, len(w))

	differing := 0
	for i := range px {
		differing += mathbits.OnesCount64(px[i] ^ pw[i])
	}
	fmt.Printf("%05b %05b\n", px[0], pw[0]) // channel 0 is the rightmost bit
	fmt.Println(len(x) - 2*differing)
	// Output:
	// 01101 00111
	// 1
}

// Unpack is the inverse of Pack.
func ExampleUnpack() {
	values := make([]int8, 4)
	bits.Unpack(values, []uint64{0b0110}, len(values))
	fmt.Println(values)
	// Output: [-1 1 1 -1]
}
