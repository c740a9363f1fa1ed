//go:build arm64 && !purego

package neon

import (
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/generic"
)

func lookUp(dst []float32, src []uint8, t *kern.FloatTables) {
	const period = 24
	if groups := len(dst) / period; groups > 0 && 3%t.Tables == 0 {
		table := func(i int) *float32 { return &t.Values[i%t.Tables*kern.TableBytes] }
		lookUpNEON(&dst[0], &src[:len(dst)][0], table(0), table(1), table(2), groups)
		dst, src = dst[period*groups:], src[period*groups:]
	}
	generic.LookUp(dst, src, t)
}
