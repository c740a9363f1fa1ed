// Command ssse3 writes the kernels of the instruction set ssse3.
package main

import "github.com/bitcnn/bitcnn/backend/cpu/internal/kern/_gen/gen"

func main() {
	gen.Write("ssse3",
		gen.Family{Name: "conv_bits", Write: convBits},
		gen.Family{Name: "conv_bytes", Write: convBytes},
		gen.Family{Name: "conv_words", Write: convWords},
		gen.Family{Name: "dot_bits", Write: dotBits},
		gen.Family{Name: "float", Write: float},
		gen.Family{Name: "elementwise", Write: elementwise},
		gen.Family{Name: "levels", Write: levels},
		gen.Family{Name: "pool", Write: pools},
		gen.Family{Name: "repack", Write: repack},
		gen.Family{Name: "image", Write: image},
		gen.Family{Name: "peak", Write: peak},
	)
}
