// Command avx512 writes the kernels of the instruction set avx512.
package main

import "github.com/bitcnn/bitcnn/backend/cpu/internal/kern/_gen/gen"

func main() {
	gen.Write("avx512",
		gen.Family{Name: "conv_bits", Write: convBits},
		gen.Family{Name: "conv_bytes", Write: convBytes},
		gen.Family{Name: "conv_carries", Write: convCarries},
		gen.Family{Name: "conv_words", Write: convWords},
		gen.Family{Name: "depthwise", Write: func() {
			depthwise(1)
			depthwise(2)
		}},
		gen.Family{Name: "dot_bits", Write: dotBits},
		gen.Family{Name: "float", Write: float},
		gen.Family{Name: "elementwise", Write: elementwise},
		gen.Family{Name: "levels", Write: levelsOfFloats},
		gen.Family{Name: "look_up", Write: lookUp},
		gen.Family{Name: "pool", Write: pool},
		gen.Family{Name: "winograd", Write: winograd},
		gen.Family{Name: "peak", Write: peak},
	)
}
