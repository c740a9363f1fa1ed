package cpu

import "math"

const (
	// maxDim bounds every size that a plan names, so that sums of a few cannot
	// overflow.
	maxDim = 1 << 24
	// maxBytes bounds the memory for tensors and workers together, if the
	// machine does not have less: no address space is larger.
	maxBytes = min(1<<42, math.MaxInt/2)
)

// product multiplies sizes that are not negative. What overflows is MaxInt,
// which no length equals.
func product(sizes ...int) int {
	p := 1
	for _, n := range sizes {
		if n != 0 && p > math.MaxInt/n {
			return math.MaxInt
		}
		p *= n
	}
	return p
}

// sum adds sizes that are not negative. What overflows is MaxInt.
func sum(a, b int) int {
	if a > math.MaxInt-b {
		return math.MaxInt
	}
	return a + b
}
