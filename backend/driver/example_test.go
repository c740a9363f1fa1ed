package driver_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/backend/driver"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/bcnn/ref"
)

// plain is a backend with one device: the reference, which executes any plan.
type plain struct{}

func (plain) Name() string { return "plain" }

func (plain) Devices() ([]driver.Device, error) { return []driver.Device{device{}}, nil }

type device struct{}

func (device) Info() driver.Info {
	return driver.Info{ID: "plain:0", Name: "reference", Kind: driver.Emulated, MaxBatch: 1 << 10}
}

func (device) Compile(_ context.Context, plan *plan.Plan, c driver.Config) (driver.Engine, error) {
	bytes, err := ref.Memory(plan, c.MaxBatch)
	if err != nil {
		return nil, err
	}
	if err := c.CheckMemory(bytes); err != nil {
		return nil, err
	}
	return &engine{plan: plan}, nil
}

type engine struct {
	plan *plan.Plan
	last bcnn.Tensor // what the step in hand has written
}

func (e *engine) Run(ctx context.Context, out, in []bcnn.Tensor) error {
	result, err := ref.Run(ctx, e.plan, in[0], nil)
	if err == nil {
		copyTensor(out[0], result)
	}
	return err
}

func (e *engine) RunSteps(ctx context.Context, out, in []bcnn.Tensor, after func(step int, took time.Duration) error) error {
	type written struct {
		t    bcnn.Tensor
		took time.Duration
	}
	var steps []written
	start := time.Now()
	result, err := ref.Run(ctx, e.plan, in[0], func(_ int, _ string, t bcnn.Tensor) {
		steps = append(steps, written{t, time.Since(start)})
		start = time.Now()
	})
	if err != nil {
		return err
	}
	for i, s := range steps {
		e.last = s.t
		if err := after(i, s.took); err != nil {
			return err
		}
	}
	copyTensor(out[0], result)
	return nil
}

func (e *engine) Read(_ int, t bcnn.Tensor) error { copyTensor(t, e.last); return nil }

func (e *engine) Explain() []driver.Choice {
	return make([]driver.Choice, len(e.plan.Steps)) // there is nothing to choose
}

func (e *engine) Close() error { return nil }

// copyTensor copies the values of a tensor to another of its type and shape.
func copyTensor(to, from bcnn.Tensor) {
	copy(to.Words, from.Words)
	copy(to.U8, from.U8)
	copy(to.F32, from.F32)
}

// A backend is three types. Registered, its devices are opened by their names, as all
// others are. Package backendtest tests them; of this one it finds that Run allocates.
func Example() {
	backend.Register(plain{})
	dev, err := backend.Open("plain:0")
	if err != nil {
		log.Fatal(err)
	}
	net := &bcnn.Network{Name: "sign", Inputs: []bcnn.Input{{DType: bcnn.Float32, Shape: bcnn.Shape{H: 1, W: 1, C: 3}}}}
	net.Append("dense", bcnn.Dense{Out: 1, Weights: bcnn.Weights{F32: []float32{1, -2, 4}}})
	program, err := lower.Compile(context.Background(), net, lower.Options{})
	if err != nil {
		log.Fatal(err)
	}
	exe, err := dev.Compile(context.Background(), program.Plan, backend.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer exe.Close()
	out := []bcnn.Tensor{bcnn.NewTensor(bcnn.Float32, 1, bcnn.Shape{H: 1, W: 1, C: 1})}
	in := []bcnn.Tensor{{DType: bcnn.Float32, N: 1, Shape: net.Inputs[0].Shape, F32: []float32{3, 2, 1}}}
	if err := exe.Run(context.Background(), out, in); err != nil {
		log.Fatal(err)
	}
	fmt.Println(out[0].F32)
	// Output: [3]
}
