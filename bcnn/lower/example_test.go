package lower_test

import (
	"context"
	"fmt"
	"log"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
)

// A small network built in Go, and what becomes of it.
func ExampleNetwork() {
	n := &bcnn.Network{
		Name:   "small",
		Inputs: []bcnn.Input{{Shape: bcnn.Shape{H: 8, W: 8, C: 1}, DType: bcnn.Uint8}},
	}
	// 16 filters of 3×3 on bytes, all weights −1.
	n.Append("conv", bcnn.Conv2D{
		Window:  bcnn.Window{KH: 3, KW: 3, Pad: bcnn.Padding{Top: 1, Left: 1, Bottom: 1, Right: 1}},
		Out:     16,
		Weights: bcnn.Weights{Bits: make([]uint64, 16*3*3)},
	})
	n.Append("pool", bcnn.MaxPool{Window: bcnn.Window{KH: 2, KW: 2, StrideH: 2, StrideW: 2}})
	n.Append("sign", bcnn.Sign{Zero: bcnn.ZeroIsPlus})
	n.Append("dense", bcnn.Dense{Out: 10, Weights: bcnn.Weights{Bits: make([]uint64, 10*4)}})

	plan, err := lower.Network(context.Background(), n, lower.Options{})
	if err != nil {
		log.Fatal(err)
	}
	for _, s := range plan.Steps {
		out := plan.Tensors[s.Out]
		fmt.Println(s.Kind(), s.Name, "→", out.Shape, out.DType)
	}
	// Output:
	// conv conv+pool+sign → 4×4×16 bits
	// dense dense → 1×1×10 float32
}
