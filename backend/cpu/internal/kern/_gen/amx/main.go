// Command amx writes the kernels of the instruction set amx.
package main

import "github.com/bitcnn/bitcnn/backend/cpu/internal/kern/_gen/gen"

func main() {
	gen.Write("amx",
		gen.Family{Name: "conv", Write: convs},
		gen.Family{Name: "lines", Write: lines},
		gen.Family{Name: "peak", Write: peak},
	)
}
