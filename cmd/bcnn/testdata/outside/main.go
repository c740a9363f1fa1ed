// Command outside is a program of another module: it runs a network on every device
// of its build and compares the outputs with the reference implementation.
package main

import (
	"context"
	"fmt"
	"log"
	"slices"

	"github.com/bitcnn/bitcnn/backend"
	_ "github.com/bitcnn/bitcnn/backend/all"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/ref"
	"github.com/bitcnn/bitcnn/models"
)

func main() {
	ctx := context.Background()
	net, err := models.Load(ctx, "digits")
	check(err)
	program, err := lower.Compile(ctx, net, lower.Options{})
	check(err)
	plan := program.Plan
	in := bcnn.NewTensor(bcnn.Uint8, 2, plan.Inputs[0].Shape)
	for i := range in.U8 {
		in.U8[i] = byte(i * i >> 3)
	}
	want, err := ref.Run(ctx, plan, in, nil)
	check(err)
	for _, b := range backend.Backends() {
		devices, err := b.Devices()
		if len(devices) == 0 {
			fmt.Printf("%s: %v\n", b.Name(), err)
		}
		for _, dev := range devices {
			exe, err := dev.Compile(ctx, plan, backend.Options{MaxBatch: 2})
			check(err)
			got := bcnn.NewTensor(bcnn.Float32, 2, plan.OutputShape())
			check(exe.Run(ctx, []bcnn.Tensor{got}, []bcnn.Tensor{in}))
			check(exe.Close())
			if !slices.Equal(got.F32, want.F32) {
				log.Fatalf("%s: %v, want %v", dev.Info().ID, got.F32, want.F32)
			}
			fmt.Printf("%s: the same bits\n", dev.Info().ID)
		}
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
