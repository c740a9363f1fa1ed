package backend_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/bitcnn/bitcnn/backend"
	_ "github.com/bitcnn/bitcnn/backend/all"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// vote returns the plan of a network that adds up the signs of three values: +1, −1 and −1 times.
func vote() *plan.Plan {
	net := &bcnn.Network{Name: "vote", Inputs: []bcnn.Input{{DType: bcnn.Float32, Shape: bcnn.Shape{H: 1, W: 1, C: 3}}}}
	net.Append("sign", bcnn.Sign{Zero: bcnn.ZeroIsPlus})
	net.Append("dense", bcnn.Dense{Out: 1, Weights: bcnn.Weights{Bits: []uint64{0b001}}})
	program, err := lower.Compile(context.Background(), net, lower.Options{})
	if err != nil {
		log.Fatal(err)
	}
	return program.Plan
}

// Compile once, run as often as needed, from any number of goroutines.
func Example() {
	ctx := context.Background()
	dev, err := backend.Open("cpu") // or "auto", "cuda:0", "opencl:1"
	if err != nil {
		log.Fatal(err)
	}
	exe, err := dev.Compile(ctx, vote(), backend.Options{MaxBatch: 2})
	if err != nil {
		log.Fatal(err)
	}
	defer exe.Close()

	input, output := exe.Inputs()[0], exe.Outputs()[0]
	in := bcnn.NewTensor(input.DType, 2, input.Shape)
	out := bcnn.NewTensor(output.DType, 2, output.Shape)
	copy(in.F32, []float32{0.5, -1, -2, -0.5, 1, -2})
	if err := exe.Run(ctx, []bcnn.Tensor{out}, []bcnn.Tensor{in}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(input.Name, input.Shape, input.DType, "→", output.Shape, output.DType)
	fmt.Println(out.F32)
	// Output:
	// input 1×1×3 float32 → 1×1×1 float32
	// [3 -1]
}

// What every step computes.
func ExampleOptions_tap() {
	ctx := context.Background()
	dev, err := backend.Open("cpu")
	if err != nil {
		log.Fatal(err)
	}
	exe, err := dev.Compile(ctx, vote(), backend.Options{
		Tap: func(step int, name string, t bcnn.Tensor) {
			fmt.Printf("%d %s: %v %v %b %v\n", step, name, t.DType, t.Shape, t.Words, t.F32)
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer exe.Close()
	in := []bcnn.Tensor{{DType: bcnn.Float32, N: 1, Shape: bcnn.Shape{H: 1, W: 1, C: 3}, F32: []float32{0.5, -1, 2}}}
	out := []bcnn.Tensor{bcnn.NewTensor(bcnn.Float32, 1, bcnn.Shape{H: 1, W: 1, C: 1})}
	if err := exe.Run(ctx, out, in); err != nil {
		log.Fatal(err)
	}
	// Output:
	// 0 sign: bits 1×1×3 [101] []
	// 1 dense: float32 1×1×1 [] [1]
}

// A device is asked for what it has.
func ExampleDevice_Compile() {
	dev, err := backend.Open("cpu")
	if err != nil {
		log.Fatal(err)
	}
	_, err = dev.Compile(context.Background(), vote(), backend.Options{Kernels: "direct"})
	fmt.Println(err)
	fmt.Println(errors.Is(err, errors.ErrUnsupported))
	// Output:
	// cpu: compile: kernels "direct": the device offers no choice
	// true
}
