// Command driver runs one convolution, or a network of the zoo, a number of times, for
// armmodel to count what it executes.
package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"strconv"

	"github.com/bitcnn/bitcnn/backend"
	_ "github.com/bitcnn/bitcnn/backend/all"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/zoo"
)

func main() {
	debug.SetGCPercent(-1)
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "driver:", err)
		os.Exit(1)
	}
}

// network returns what the arguments tell of: a network's name, or the size of the
// input, its channels, those of the output, the size of the window, its stride, and what
// it multiplies: "bits", "image" for bytes and weights of ±1, "int8" for bytes and
// weights of 8 bits.
func network(args []string) (*bcnn.Network, error) {
	if len(args) == 1 {
		return zoo.New(args[0], 1)
	}
	var size, in, out, kernel, stride int
	if len(args) != 6 {
		return nil, fmt.Errorf("want ISA SIZE IN OUT KERNEL STRIDE VALUES RUNS, or ISA NETWORK RUNS")
	}
	for i, n := range []*int{&size, &in, &out, &kernel, &stride} {
		if _, err := fmt.Sscan(args[i], n); err != nil {
			return nil, fmt.Errorf("argument %d: %w", 2+i, err)
		}
	}
	pad := kernel / 2
	shape := bcnn.Shape{H: size, W: size, C: in}
	op := bcnn.Conv2D{
		Window: bcnn.Window{
			KH: kernel, KW: kernel, StrideH: stride, StrideW: stride,
			Pad: bcnn.Padding{Top: pad, Left: pad, Bottom: pad, Right: pad},
		},
		Out: out, Groups: 1,
	}
	r := rand.New(rand.NewPCG(3, 4))
	switch rows := out * kernel * kernel; args[5] {
	case "bits":
		return zoo.Operator{Name: "conv", Group: "model", In: shape, Op: op}.Network(1), nil
	case "image":
		op.Weights.Bits = make([]uint64, rows*bits.Words(in))
		for i := range op.Weights.Bits {
			op.Weights.Bits[i] = r.Uint64() & bits.TailMask(in)
		}
		n := &bcnn.Network{Name: "conv", Inputs: []bcnn.Input{{Shape: shape, DType: bcnn.Uint8}}}
		n.Append("conv", op)
		n.Append("sign", bcnn.Sign{Zero: bcnn.ZeroIsPlus})
		return n, nil
	case "int8":
		op.Weights.Int8 = make([]int8, rows*in)
		for i := range op.Weights.Int8 {
			op.Weights.Int8[i] = int8(r.IntN(256) - 128)
		}
		n := &bcnn.Network{Name: "conv", Inputs: []bcnn.Input{{Shape: shape, DType: bcnn.Float32}}}
		q := bcnn.Quantize{Levels: 256}
		for i := range 255 {
			q.Thresholds = append(q.Thresholds, float32(i)/256-0.5)
		}
		n.Append("quantize", q)
		n.Append("conv", op)
		return n, nil
	}
	return nil, fmt.Errorf("want bits, image or int8, not %q", args[5])
}

// run takes an instruction set, a network, and the number of runs. It prints the kernel
// that every step got, and why.
func run() error {
	if len(os.Args) < 4 {
		return fmt.Errorf("want an instruction set, a network and the number of runs")
	}
	last := len(os.Args) - 1
	runs, err := strconv.Atoi(os.Args[last])
	if err != nil {
		return err
	}
	net, err := network(os.Args[2:last])
	if err != nil {
		return err
	}
	plan, err := lower.Network(context.Background(), net, lower.Options{})
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
