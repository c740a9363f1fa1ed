package backendtest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

func (l *life) wrongTensors() error {
	r, err := l.compile(lifeNet(3), nil)
	if err != nil {
		return err
	}
	want, err := r.fresh(l.ctx)
	if err != nil {
		return err
	}
	const n = lifeBatch
	goodIn, goodOut, input, shape := r.in[0], r.out[0], r.plan.Inputs[0], r.plan.OutputShape()
	taller := func(s bcnn.Shape) bcnn.Shape { s.H++; return s }
	short := func(t bcnn.Tensor) bcnn.Tensor {
		t.U8, t.F32 = t.U8[:max(len(t.U8)-1, 0)], t.F32[:max(len(t.F32)-1, 0)]
		return t
	}
	negative := goodIn
	negative.N = -1
	one := func(t bcnn.Tensor) []bcnn.Tensor { return []bcnn.Tensor{t} }
	for what, tensors := range map[string]struct{ out, in []bcnn.Tensor }{
		"no tensors":                    {nil, nil},
		"no input":                      {one(goodOut), nil},
		"no output":                     {nil, one(goodIn)},
		"two inputs":                    {one(goodOut), []bcnn.Tensor{goodIn, goodIn}},
		"two outputs":                   {[]bcnn.Tensor{goodOut, goodOut}, one(goodIn)},
		"an empty input":                {one(goodOut), one(bcnn.Tensor{})},
		"an empty output":               {one(bcnn.Tensor{}), one(goodIn)},
		"an input of another type":      {one(goodOut), one(bcnn.NewTensor(bcnn.Float32, n, input.Shape))},
		"an input of another shape":     {one(goodOut), one(bcnn.NewTensor(input.DType, n, taller(input.Shape)))},
		"an input that is too short":    {one(goodOut), one(short(goodIn))},
		"an input without values":       {one(goodOut), one(bcnn.Tensor{DType: input.DType, N: n, Shape: input.Shape})},
		"a batch of 0":                  {one(bcnn.NewTensor(bcnn.Float32, 0, shape)), one(bcnn.NewTensor(input.DType, 0, input.Shape))},
		"a batch of −1":                 {one(goodOut), one(negative)},
		"a batch beyond MaxBatch":       {one(bcnn.NewTensor(bcnn.Float32, n+1, shape)), one(bcnn.NewTensor(input.DType, n+1, input.Shape))},
		"different batches":             {one(bcnn.NewTensor(bcnn.Float32, n-1, shape)), one(goodIn)},
		"an output of another type":     {one(bcnn.NewTensor(bcnn.Bits, n, shape)), one(goodIn)},
		"an output of another shape":    {one(bcnn.NewTensor(bcnn.Float32, n, taller(shape))), one(goodIn)},
		"an output that is too short":   {one(short(goodOut)), one(goodIn)},
		"an output without any values":  {one(bcnn.Tensor{DType: bcnn.Float32, N: n, Shape: shape}), one(goodIn)},
		"the input as output and so on": {one(goodIn), one(goodOut)},
	} {
		if err := r.Run(l.ctx, tensors.out, tensors.in); !errors.Is(err, backend.ErrShape) || !named(err) {
			return fmt.Errorf("Run with %s returned %v, want ErrShape", what, err)
		}
	}
	return r.again(l.ctx, want, "after wrong tensors")
}

// named reports whether an error names the device.
func named(err error) bool {
	var e *backend.Error
	return errors.As(err, &e) && e.Device != "" && e.Op != ""
}

// refused makes sure that Compile refuses arguments.
func (l *life) refused(what string, ctx context.Context, plan *plan.Plan, opts backend.Options) error {
	made, err := l.dev.Compile(ctx, plan, opts)
	if err == nil {
		return fmt.Errorf("Compile with %s did not fail: %w", what, made.Close())
	}
	if !named(err) {
		return fmt.Errorf("Compile with %s: %w", what, err)
	}
	return nil
}

func (l *life) arguments() error {
	p, err := l.lower(lifeNet(3))
	if err != nil {
		return err
	}
	r, err := l.compile(lifeNet(3), nil)
	if err != nil {
		return err
	}
	var none context.Context
	if err := r.run(none); !named(err) {
		return fmt.Errorf("Run without a context returned %v", err)
	}
	broken := *p
	broken.Steps = slices.Clone(p.Steps)
	broken.Steps[0].Op, broken.Steps[2].Op = nil, nil
	_, err = l.dev.Compile(l.ctx, &broken, l.opts)
	var unsupported *plan.UnsupportedError
	if !errors.As(err, &unsupported) || !errors.Is(err, errors.ErrUnsupported) || len(unsupported.Steps) != 2 ||
		unsupported.Steps[1].Step != 2 || unsupported.Steps[1].Name != p.Steps[2].Name || unsupported.Steps[1].Reason == "" {
		return fmt.Errorf("Compile of two steps without an operation returned %v", err)
	}
	return errors.Join(
		l.refused("no context", none, p, l.opts),
		l.refused("no plan", l.ctx, nil, l.opts),
		l.refused("an empty plan", l.ctx, &plan.Plan{}, l.opts),
	)
}

func (l *life) options() error {
	plan, err := l.lower(lifeNet(3))
	if err != nil {
		return err
	}
	info := l.dev.Info()
	for what, change := range map[string]func(o *backend.Options){
		"a huge batch":       func(o *backend.Options) { o.MaxBatch = math.MaxInt },
		"too large a batch":  func(o *backend.Options) { o.MaxBatch = info.MaxBatch + 1 },
		"a negative batch":   func(o *backend.Options) { o.MaxBatch = -1 },
		"a negative limit":   func(o *backend.Options) { o.Limits.ArenaBytes = -1 },
		"too many threads":   func(o *backend.Options) { o.Threads = info.MaxThreads + 1 },
		"a negative thread":  func(o *backend.Options) { o.Threads = -1 },
		"an unknown ISA":     func(o *backend.Options) { o.ISA = "8080" },
		"unknown kernels":    func(o *backend.Options) { o.Kernels = "fastest" },
		"kernels by letters": func(o *backend.Options) { o.Kernels = "a" },
	} {
		opts := l.opts
		change(&opts)
		if err := l.refused(what, l.ctx, plan, opts); err != nil {
			return err
		}
	}
	for what, none := range map[string]struct {
		opts  backend.Options
		there bool
	}{
		"an instruction set": {backend.Options{ISA: "avx2"}, info.ISAs != nil},
		"kernels":            {backend.Options{Kernels: "direct"}, info.Kernels != nil},
		"threads":            {backend.Options{Threads: 1}, info.MaxThreads > 0},
	} {
		if none.there {
			continue
		}
		if _, err := l.dev.Compile(l.ctx, plan, none.opts); !errors.Is(err, errors.ErrUnsupported) || !named(err) {
			return fmt.Errorf("Compile with %s, of which the device has no choice, returned %v", what, err)
		}
	}
	for _, isa := range info.ISAs {
		if _, err := l.compile(lifeNet(3), func(o *backend.Options) { o.ISA = isa }); err != nil {
			return fmt.Errorf("instruction set %s: %w", isa, err)
		}
	}
	return nil
}

// memoryLimit finds the memory that an executable needs, by what the refusals of less
// say, and makes sure that it grows with the batch.
func (l *life) memoryLimit() error {
	plan, err := l.lower(lifeNet(3))
	if err != nil {
		return err
	}
	need := func(batch int) (limit int64, err error) {
		limit = 1
		for {
			opts := l.opts
			opts.MaxBatch, opts.Limits = batch, bcnn.Limits{ArenaBytes: limit}
			exe, err := l.dev.Compile(l.ctx, plan, opts)
			if err == nil {
				return limit, exe.Close()
			}
			if !errors.Is(err, backend.ErrTooLarge) || !named(err) {
				return 0, err
			}
			message := err.Error()
			at := max(strings.Index(message, "need at least "), 0)
			var bytes, had int64
			if _, err := fmt.Sscanf(message[at:], "need at least %d bytes of memory, and the limit is %d", &bytes, &had); err != nil {
				return 0, fmt.Errorf("%q: %w", message, err)
			}
			if had != limit || bytes <= limit {
				return 0, fmt.Errorf("with a limit of %d: %q", limit, message)
			}
			limit = bytes
		}
	}
	one, err := need(1)
	if err != nil {
		return err
	}
	four, err := need(4)
	if err != nil {
		return err
	}
	image := plan.Tensors[1].Shape.Bytes(plan.Tensors[1].DType)
	if one < image || four < one+3*image {
		return fmt.Errorf("%d bytes for an image and %d for four, of which the first tensor takes %d each", one, four, image)
	}
	return nil
}
