// Command driver runs one binary convolution a number of times, for armmodel to
// count what it executes.
package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime/debug"

	"github.com/bitcnn/bitcnn/backend"
	_ "github.com/bitcnn/bitcnn/backend/all"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/zoo"
)

func main() {
	debug.SetGCPercent(-1)
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "driver:", err)
		os.Exit(1)
	}
}

// run takes an instruction set, the size of the input, its channels, those of the
// output, the size of the window, its stride, and the number of runs. It prints
// the kernel that the convolution got, and why.
func run() error {
	var size, in, out, kernel, stride, runs int
	if len(os.Args) != 8 {
		return fmt.Errorf("want ISA SIZE IN OUT KERNEL STRIDE RUNS")
	}
	for i, n := range []*int{&size, &in, &out, &kernel, &stride, &runs} {
		if _, err := fmt.Sscan(os.Args[2+i], n); err != nil {
			return fmt.Errorf("argument %d: %w", 2+i, err)
		}
	}
	pad := kernel / 2
	o := zoo.Operator{Name: "conv", Group: "model", In: bcnn.Shape{H: size, W: size, C: in}, Op: bcnn.Conv2D{
		Window: bcnn.Window{
			KH: kernel, KW: kernel, StrideH: stride, StrideW: stride,
			Pad: bcnn.Padding{Top: pad, Left: pad, Bottom: pad, Right: pad},
		},
		Out: out, Groups: 1,
	}}
	plan, err := bcnn.Lower(context.Background(), o.Network(1), bcnn.LowerOptions{})
	if err != nil {
		return err
	}
	device, err := backend.Open("cpu")
	if err != nil {
		return err
	}
	exe, err := device.Compile(context.Background(), plan, backend.Options{Threads: 1, ISA: os.Args[1]})
	if err != nil {
		return err
	}
	x, y := bcnn.NewTensor(plan.Inputs[0].DType, 1, plan.Inputs[0].Shape), bcnn.NewTensor(bcnn.Float32, 1, plan.OutputShape())
	r := rand.New(rand.NewPCG(1, 2))
	for i := range x.U8 {
		x.U8[i] = uint8(r.IntN(256))
	}
	for i := range x.F32 {
		x.F32[i] = r.Float32() - 0.5
	}
	for range runs {
		if err := exe.Run(context.Background(), []bcnn.Tensor{y}, []bcnn.Tensor{x}); err != nil {
			return err
		}
	}
	for i, c := range exe.Explain() {
		if c.Kernel != "" {
			fmt.Printf("%d\t%s\t%s\t%s\n", i, c.Kernel, c.Tile, c.Why)
		}
	}
	return nil
}
