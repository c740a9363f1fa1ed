package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/bcnn/lower"
)

// lines runs a program and decodes its output, one JSON object per line.
func lines[T any](ctx context.Context, stdin []byte, name string, args ...string) ([]T, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdin = bytes.NewReader(stdin)
	cmd.Env = append(os.Environ(), "OMP_NUM_THREADS=1")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	var list []T
	for decoder := json.NewDecoder(bytes.NewReader(out)); decoder.More(); {
		var v T
		if err := decoder.Decode(&v); err != nil {
			return nil, fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
		}
		list = append(list, v)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s %s: no output", name, strings.Join(args, " "))
	}
	return list, nil
}

// checked is a line of peers check.
type checked struct {
	Peer  string  `json:"peer"`
	Error string  `json:"error"` // why the peer cannot compute the operator
	Pad   int     `json:"pad"`   // the value of its padded taps
	Sums  []int32 `json:"sums"`
}

// check compares the sums of all peers with those of the device, on random
// values.
func check(ctx context.Context, dev *backend.Device, peers string, op operator) error {
	rng := rand.New(rand.NewPCG(1, 2))
	signs := func(n int) []int8 {
		v := make([]int8, n)
		for i := range v {
			v[i] = int8(2*rng.IntN(2) - 1)
		}
		return v
	}
	x := signs(op.in.Values())
	var weights []int8
	if op.kind != "pool" {
		weights = signs(op.out * op.size * op.size * op.in.C)
	}
	var stdin []byte
	for _, v := range append(append([]int8{}, x...), weights...) {
		stdin = append(stdin, byte(v))
	}
	got, err := lines[checked](ctx, stdin, peers, append([]string{"check"}, op.args()...)...)
	if err != nil {
		return err
	}
	computed := 0
	for _, g := range got {
		if g.Error != "" {
			continue
		}
		computed++
		want, err := ours(ctx, dev, op, x, weights, g.Pad)
		if err != nil {
			return err
		}
		if len(g.Sums) != len(want) {
			return fmt.Errorf("%s gives %d values, want %d", g.Peer, len(g.Sums), len(want))
		}
		for i, v := range want {
			if float32(g.Sums[i]) != v {
				return fmt.Errorf("%s gives %d for value %d, want %v", g.Peer, g.Sums[i], i, v)
			}
		}
	}
	if computed == 0 {
		return errors.New("no peer computes it")
	}
	return nil
}

// ours computes the operator on the device: its sums, or ±1 for a pool.
func ours(ctx context.Context, dev *backend.Device, op operator, x, weights []int8, pad int) ([]float32, error) {
	net := &bcnn.Network{Name: op.name, Inputs: []bcnn.Input{{Shape: op.in, DType: bcnn.Float32}}}
	net.Append("sign", bcnn.Sign{Zero: bcnn.ZeroIsPlus})
	switch op.kind {
	case "conv", "dense":
		packed := make([]uint64, len(weights)/op.in.C*bits.Words(op.in.C))
		bits.Pack(packed, weights, op.in.C)
		w := bcnn.Weights{Bits: packed}
		if op.kind == "conv" {
			net.Append("op", bcnn.Conv2D{Window: op.window(), Out: op.out, PadValue: pad, Weights: w})
		} else {
			net.Append("op", bcnn.Dense{Out: op.out, Weights: w})
		}
	case "pool":
		net.Append("op", bcnn.MaxPool{Window: op.window()})
	}
	program, err := lower.Compile(ctx, net, lower.Options{})
	if err != nil {
		return nil, err
	}
	exe, err := dev.Compile(ctx, program.Plan, backend.Options{Threads: 1})
	if err != nil {
		return nil, err
	}
	defer exe.Close()
	in, out := bcnn.NewTensor(bcnn.Float32, 1, op.in), bcnn.NewTensor(bcnn.Float32, 1, exe.Outputs()[0].Shape)
	for i, v := range x {
		in.F32[i] = float32(v)
	}
	err = exe.Run(ctx, []bcnn.Tensor{out}, []bcnn.Tensor{in})
	return out.F32, err
}
