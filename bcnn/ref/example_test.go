package ref_test

import (
	"context"
	"fmt"
	"log"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/ref"
)

// What every device must compute, step by step.
func ExampleRun() {
	net := &bcnn.Network{
		Name:   "light",
		Inputs: []bcnn.Input{{Shape: bcnn.Shape{H: 2, W: 2, C: 1}, DType: bcnn.Uint8}},
	}
	net.Append("grey", bcnn.Binarize{Scheme: bcnn.SchemeGrey, Thresholds: []int32{128}})
	net.Append("count", bcnn.Dense{Out: 2, Weights: bcnn.Weights{Bits: []uint64{0b1111, 0b0000}}})
	ctx := context.Background()
	plan, err := lower.Network(ctx, net, lower.Options{})
	if err != nil {
		log.Fatal(err)
	}

	in := bcnn.NewTensor(bcnn.Uint8, 1, plan.Inputs[0].Shape)
	copy(in.U8, []byte{200, 127, 128, 255})
	out, err := ref.Run(ctx, plan, in, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(out.F32)
	// Output: [2 -2]
}
