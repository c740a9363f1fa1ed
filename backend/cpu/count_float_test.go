package cpu

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/sets"
	"github.com/bitcnn/bitcnn/backend/driver"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// BenchmarkCount runs each of floatSteps alone, without those before it, on values drawn
// at random, for a tracer to count the instructions. It reports what no kernel of
// vectors of 16 bytes does without, see leastOf.
func BenchmarkCount(b *testing.B) {
	for _, isa := range sets.Names() {
		for _, c := range floatSteps {
			b.Run(isa+"/"+strings.ReplaceAll(c.name, "/", ", "), func(b *testing.B) { countStep(b, c.plan().done(), isa) })
		}
	}
}

func countStep(b *testing.B, plan *plan.Plan, isa string) {
	last := inQuestion(plan)
	engine, err := device{}.Compile(b.Context(), plan, driver.Config{MaxBatch: 1, Threads: 1, ISA: isa, ArenaBytes: 1 << 30, Stepwise: true})
	require.NoError(b, err)
	e := engine.(*executable)
	defer e.Close()
	p := planner{rng: newPlanner(1, plan.Inputs[0]).rng, plan: *plan}
	in, out := p.input(1), bcnn.NewTensor(bcnn.Float32, 1, plan.OutputShape())
	err = e.RunSteps(context.Background(), []bcnn.Tensor{out}, []bcnn.Tensor{in}, func(i int, _ time.Duration) error {
		if i != last {
			return nil
		}
		for b.Loop() {
			if err := e.workers.Do(e.steps[last], e.steps[last].Tiles(1)); err != nil {
				return err
			}
		}
		return nil
	})
	require.NoError(b, err)
	least := leastOf(plan, last)
	b.ReportMetric(least.values, "values")
	b.ReportMetric(least.products, "products")
	b.ReportMetric(least.operations, "operations")
	b.ReportMetric(least.loads, "loads")
	b.ReportMetric(least.stores, "stores")
}

// inQuestion is the last step of a plan of floatSteps.
func inQuestion(plan *plan.Plan) int {
	last := len(plan.Steps) - 1
	if plan.Steps[last].Name == "values" { // of planner.done
		last--
	}
	return last
}

// leastWork is what a step needs at the least: values of the output; fused products, sums,
// products and comparisons of four float32 values; other operations on vectors of 16 bytes; and loads
// and stores of these, where everything is read and written once.
type leastWork struct{ values, products, operations, loads, stores float64 }

// functionOperations are the instructions on vectors of NEON's kernel of functions, for
// four values, without those that load and store values.
const functionOperations = 69

func leastOf(p *plan.Plan, i int) leastWork {
	step := p.Steps[i]
	in, out := p.Tensors[step.In[0]], p.Tensors[step.Out]
	var w leastWork
	w.values = float64(out.Shape.Values())
	for _, t := range step.In {
		w.loads += float64(p.Tensors[t].Bytes(1)) / 16
	}
	w.stores = float64(out.Bytes(1)) / 16
	vectors := w.values / 4
	end := func(a plan.Activation) {
		switch a.Kind {
		case plan.ActivationPReLU:
			w.products += vectors
			w.operations += 2 * vectors // a comparison and a choice
		case plan.ActivationReLU:
			w.operations += vectors
		case plan.ActivationClip:
			w.operations += 2 * vectors
		case plan.ActivationFunction:
			w.operations += functionOperations * vectors
		}
	}
	switch op := step.Op.(type) {
	case *plan.Conv:
		w.loads += float64(4*len(op.F32)+8*len(op.Bits)) / 16
		if in.DType == bcnn.Bits {
			w.operations += 3 * float64(p.Products(i)) / 128 // EOR, CNT and a sum
		} else {
			w.products += float64(p.Products(i)) / 4
		}
		end(op.Activation)
	case *plan.AvgPool:
		if in.DType == bcnn.Float32 {
			w.products += float64(op.KH*op.KW+3) * vectors
		} else {
			w.operations += float64(op.KH*op.KW) * w.values / 16 // counts are bytes
			w.products += 3 * vectors
		}
	case *plan.MaxPool:
		// A comparison and a choice for every tap but the first, in their order, which tells
		// zeros and NaNs apart.
		w.products += float64(op.KH*op.KW-1) * vectors
		w.operations += float64(op.KH*op.KW-1) * vectors
	case *plan.Affine:
		if in.DType == bcnn.Bits {
			w.operations += vectors // a choice
		} else if op.Scale != nil {
			w.products += vectors
		}
		end(op.Activation)
	case *plan.Add:
		w.products += vectors
		end(op.Activation)
	case *plan.Pair:
		if op.Kind == plan.PairMul {
			w.products += vectors
		} else {
			w.operations += 2 * vectors
		}
	case *plan.Sign, *plan.Binarize, *plan.Quantize:
		w.operations += float64(in.Shape.Values()) / 4 * (1 + float64(15+5)/16) // a comparison, and 64 bits of 16 vectors
	case *plan.MatMul:
		if in.DType == bcnn.Bits {
			w.operations += 3 * float64(p.Products(i)) / 128 // EOR, CNT and a sum
		} else {
			w.products += float64(p.Products(i)) / 4
		}
	case *plan.TopK:
		w.operations += float64(in.Shape.Values()) / 4
	case *plan.Resample:
		w.products += float64(op.Rows.N*op.Cols.N) * vectors
	}
	return w
}
