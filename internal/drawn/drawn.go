// Package drawn draws what tests make networks and files of.
package drawn

import "math/rand/v2"

// Bytes returns 1 to most bytes drawn from a seed, the same ones each time.
func Bytes(seed, most int) []byte {
	random := rand.New(rand.NewPCG(uint64(seed), 0))
	b := make([]byte, 1+random.IntN(most))
	for i := range b {
		b[i] = byte(random.Uint32())
	}
	return b
}
