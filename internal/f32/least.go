package f32

import (
	"math"
	"sort"
)

// Least returns the least finite float32 for which f holds, which it does from there on; the
// largest one where it never does. Of the zeros it is +0.
func Least(f func(x float32) bool) float32 {
	const most = 0x7f7fffff // the bits of the largest float32
	at := func(i int) float32 {
		if i < 0 {
			return -math.Float32frombits(uint32(-i))
		}
		return math.Float32frombits(uint32(i))
	}
	if f(0) {
		return at(sort.Search(most, func(i int) bool { return f(at(i - most)) }) - most)
	}
	return at(sort.Search(most, func(i int) bool { return f(at(i)) }))
}
