//go:build amd64 && !purego

package avx512

import (
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/generic"
)

func lookUp(dst []float32, src []uint8, t *kern.FloatTables) {
	kernel := lookUp1AVX512
	switch t.Tables {
	case 1:
	case 3:
		kernel = lookUp3AVX512
	default:
		generic.LookUp(dst, src, t)
		return
	}
	bytes := 64 * t.Tables
	blocks := len(dst) / bytes
	if blocks > 0 {
		kernel(&dst[0], &src[0], &t.Bytes[0], blocks)
	}
	generic.LookUp(dst[blocks*bytes:], src[blocks*bytes:], t)
}
