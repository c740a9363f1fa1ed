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

// Inside returns which of the numbers start, start + step, …, n of them, are indices of
// size values: number from is the first and number to the first after them, from ≤ to.
// start may be negative; step must be positive.
func Inside(start, n, step, size int) (from, to int) {
	from = min(CeilDiv(max(-start, 0), step), n)
	return from, max(from, min(CeilDiv(max(size-start, 0), step), n))
}
