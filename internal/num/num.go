// Package num is arithmetic with sizes: integers that are not negative. Sums and
// products that overflow are math.MaxInt, which no length equals, so that a check
// against a limit needs no other one before it.
package num

import "math"

// Product multiplies sizes. A size of 0 makes it 0.
func Product(sizes ...int) int {
	p := 1
	for _, n := range sizes {
		if n == 0 {
			return 0
		}
		if p > math.MaxInt/n {
			p = math.MaxInt
			continue
		}
		p *= n
	}
	return p
}

// Sum adds sizes.
func Sum(sizes ...int) int {
	s := 0
	for _, n := range sizes {
		if s > math.MaxInt-n {
			return math.MaxInt
		}
		s += n
	}
	return s
}

// CeilDiv returns a/b, rounded up; b must be positive.
func CeilDiv(a, b int) int { return (a + b - 1) / b }

// RoundUp returns the least multiple of to that is at least n.
func RoundUp(n, to int) int { return CeilDiv(n, to) * to }
