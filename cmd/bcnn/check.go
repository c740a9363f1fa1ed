package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/internal/arrays"
	"github.com/bitcnn/bitcnn/internal/files"
	"github.com/bitcnn/bitcnn/internal/npy"
	"github.com/bitcnn/bitcnn/internal/text"
)

// checkResult is the object of check --json.
type checkResult struct {
	Model     string          `json:"model"`
	Device    string          `json:"device"`
	Images    int             `json:"images"`
	Tolerance float64         `json:"tolerance"`
	OK        bool            `json:"ok"`
	Outputs   []checkedTensor `json:"outputs"`
	Layers    []checkedTensor `json:"layers"` // in the order of execution
	// First is the first tensor that differs; empty if none does.
	First string `json:"first,omitempty"`
	// NotCompared are arrays of the reference that no tensor of the network is.
	NotCompared []string `json:"not_compared"`
}

type checkedTensor struct {
	Name string `json:"name"`
	// Nil where a value is infinite or no number.
	Difference *float64 `json:"difference"`
	Relative   *float64 `json:"relative"` // as a fraction of the largest value
	OK         bool     `json:"ok"`
	// SameArgMax is the number of images whose largest value is at the same place; of
	// an output that is a vector.
	SameArgMax *int `json:"same_argmax,omitempty"`
}

func newCheck(env *environment) *cobra.Command {
	var r arrayRunner
	var input, reference string
	tolerance := 1e-4
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "check --model MODEL --reference R.npz [--input X.npz]",
		Short: "Compare the outputs of a model with stored ones",
		Long: `Run a model on arrays, as 'bcnn run' does, and compare its outputs with what
another program has computed from the same inputs. The reference holds the outputs
under their names, the inputs likewise unless --input names another file, and may hold
other tensors of the model that was converted, under the names that they have
there: the first of them that differs is where to look. Tensors that the
network does not have, such as sums whose bias became part of a threshold, are
listed as not compared.

The exit code is 1 if an output, or one of the other tensors, differs by more
than --tolerance, as a fraction of the largest value of the reference.

With --json, one object: model, device, images, tolerance, ok, outputs and layers
(name, difference, relative, ok, and of an output same_argmax), first,
not_compared.`,
		Example: `  bcnn check --model model.bcnn --reference torch.npz
  bcnn check --model model.bcnn --input x.npy --reference y.npy --tolerance 0`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case reference == "":
				return usagef("check needs --reference R.npz")
			case input == standardInput && reference == standardInput:
				return usagef("standard input (-) can be read only once")
			}
			ctx := cmd.Context()
			if err := r.load(ctx); err != nil {
				return err
			}
			f, err := openArrays(ctx, reference, cmd.InOrStdin())
			if err != nil {
				return err
			}
			defer f.Close()
			from := f
			if input != "" {
				if from, err = openArrays(ctx, input, cmd.InOrStdin()); err != nil {
					return err
				}
				defer from.Close()
			} else {
				for _, p := range r.ports.Inputs {
					if !slices.Contains(f.Names(), p.Name) {
						return files.Name(f.name, fmt.Errorf("no array %s, which is an input; --input X.npz gives it", text.Quote(p.Name)))
					}
				}
			}
			in, n, err := r.inputs(from)
			if err != nil {
				return err
			}
			result, err := r.check(ctx, env, in, n, from.name, f, tolerance)
			if err != nil {
				return err
			}
			if asJSON {
				err = env.out.json(result)
			} else {
				result.print(env.out)
			}
			if err == nil && !result.OK {
				err = files.Name(f.name, fmt.Errorf("the model differs by more than %g of the largest value, first in %s", tolerance, text.Quote(result.First)))
			}
			return err
		},
	}
	r.flags(cmd)
	cmd.Flags().StringVarP(&input, "input", "i", "", ".npz or .npy file with the input (default the reference); - is standard input")
	cmd.Flags().StringVarP(&reference, "reference", "r", "", ".npz or .npy file with what should come out; - is standard input")
	fractionFlag(cmd, &tolerance, "tolerance", "how far values may differ, as a fraction of the largest")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// check runs the model on n images and compares what it gives with the arrays of f.
func (r *arrayRunner) check(ctx context.Context, env *environment, in []*npy.Array, n int, inName string, f *arrayFile, tolerance float64) (*checkResult, error) {
	c := &checkResult{Model: r.model, Images: n, Tolerance: tolerance, Layers: []checkedTensor{}, NotCompared: []string{}}
	var want []*npy.Array
	for _, port := range r.ports.Outputs {
		a, err := port.Find(f.File, len(r.ports.Outputs) == 1)
		if err == nil && !port.Flat(a, n) {
			err = sameImages(port, a, n)
		}
		if err != nil {
			return nil, files.Name(f.name, err)
		}
		want = append(want, a)
	}
	values, err := r.run(ctx, in, n, env.progress("check"))
	if err != nil {
		return nil, files.Name(inName, err)
	}
	c.Device = r.device
	for i, port := range r.ports.Outputs {
		t, err := checkOutput(port, values[i], want[i], n, tolerance)
		if err != nil {
			return nil, files.Name(f.name, err)
		}
		c.Outputs = append(c.Outputs, t)
	}
	if err := r.checkLayers(ctx, in, f, c); err != nil {
		return nil, err
	}
	all := append(slices.Clone(c.Layers), c.Outputs...)
	differs := slices.IndexFunc(all, func(t checkedTensor) bool { return !t.OK })
	if c.OK = differs < 0; !c.OK {
		c.First = all[differs].Name
	}
	return c, nil
}

// checkOutput compares an output of n images with an array.
func checkOutput(port arrays.Port, values []float32, want *npy.Array, n int, tolerance float64) (checkedTensor, error) {
	should, err := port.Numbers(want, 0, n)
	if err != nil {
		return checkedTensor{}, err
	}
	var d arrays.Difference
	d.Add(values, should)
	t := newCheckedTensor(port.Name, d, tolerance)
	if size := port.Shape.Values(); size == port.Shape.C && size > 1 {
		same := 0
		for i := 0; i < len(values); i += size {
			if arrays.ArgMax(values[i:i+size]) == arrays.ArgMax(should[i:i+size]) {
				same++
			}
		}
		t.SameArgMax = &same
	}
	return t, nil
}

// checkLayers compares the tensors between input and output that the reference has. The
// plan is lowered without fusing, so that there are as many as possible; its outputs
// are the same bits.
func (r *arrayRunner) checkLayers(ctx context.Context, in []*npy.Array, f *arrayFile, c *checkResult) error {
	byName := map[string]int{}
	for i := range r.net.Layers {
		if p, ok := r.ports.Layers[i]; ok {
			byName[p.Name] = i
		}
	}
	wanted := map[int]*npy.Array{}
	var ends []string
	for _, p := range slices.Concat(r.ports.Inputs, r.ports.Outputs) {
		ends = append(ends, p.Name)
	}
	for _, name := range f.Names() {
		if slices.Contains(ends, name) || len(f.Names()) == 1 {
			continue
		}
		i, ok := byName[name]
		if !ok {
			c.NotCompared = append(c.NotCompared, name)
			continue
		}
		a, err := f.Read(name)
		if err == nil {
			err = sameImages(r.ports.Layers[i], a, c.Images)
		}
		if err != nil {
			return files.Name(f.name, err)
		}
		wanted[i] = a
	}
	if len(wanted) == 0 {
		return nil
	}
	plan, err := bcnn.Lower(ctx, r.net, bcnn.LowerOptions{Unfused: true})
	if err != nil {
		return files.Name(r.model, err)
	}
	results := bcnn.Results(r.net, plan)
	differences := map[int]*arrays.Difference{}
	for _, layer := range results {
		if wanted[layer] != nil {
			differences[layer] = &arrays.Difference{}
		}
	}
	from := 0 // the first image of the batch in hand
	var failed error
	tap := func(step int, _ string, t bcnn.Tensor) {
		layer := results[step]
		if wanted[layer] == nil || failed != nil {
			return
		}
		port := r.ports.Layers[layer]
		size := port.Shape.Values()
		var should []float64
		if should, failed = port.Numbers(wanted[layer], from, t.N); failed != nil {
			return
		}
		got := make([]float32, t.N*size)
		port.Values(got, t)
		port.Results(got)
		differences[layer].Add(got, should)
	}
	dev, err := backend.Open(r.opts.Device)
	if err != nil {
		return err
	}
	batch := min(r.opts.MaxBatch, c.Images)
	exe, err := dev.Compile(ctx, plan, backend.Options{
		MaxBatch: batch, Threads: r.opts.Threads, ISA: r.opts.ISA, Kernels: r.opts.Kernels, Tap: tap,
	})
	if err != nil {
		return err
	}
	defer exe.Close()
	out := make([]bcnn.Tensor, len(exe.Outputs()))
	err = r.batches(in, c.Images, batch, func(x []bcnn.Tensor, first int) error {
		from = first
		for i, t := range exe.Outputs() {
			out[i] = bcnn.NewTensor(t.DType, x[0].N, t.Shape)
		}
		return cmp.Or(exe.Run(ctx, out, x), failed)
	})
	if err != nil {
		return files.Name(f.name, err)
	}
	for i, p := range r.ports.Layers {
		if wanted[i] != nil && differences[i] == nil {
			c.NotCompared = append(c.NotCompared, p.Name)
		}
	}
	slices.Sort(c.NotCompared)
	seen := map[int]bool{}
	for _, layer := range results {
		if d := differences[layer]; d != nil && !seen[layer] {
			seen[layer] = true
			c.Layers = append(c.Layers, newCheckedTensor(r.ports.Layers[layer].Name, *d, c.Tolerance))
		}
	}
	return nil
}

func newCheckedTensor(name string, d arrays.Difference, tolerance float64) checkedTensor {
	t := checkedTensor{Name: name, OK: d.Relative() <= tolerance}
	for to, v := range map[**float64]float64{&t.Difference: d.Largest, &t.Relative: d.Relative()} {
		if !math.IsInf(v, 0) {
			*to = &v
		}
	}
	return t
}

func (c *checkResult) print(out *output) {
	rows := []row{"tensor\tlargest difference\tof the largest value\t"}
	number := func(v *float64) string {
		if v == nil {
			return "not finite"
		}
		return fmt.Sprintf("%.3g", *v)
	}
	for _, t := range append(slices.Clone(c.Layers), c.Outputs...) {
		verdict := "ok"
		if !t.OK {
			verdict = "DIFFERS"
		}
		rows = append(rows, rowf("%s\t%s\t%s\t%s", t.Name, number(t.Difference), number(t.Relative), verdict))
	}
	out.table(rows)
	if len(c.NotCompared) > 0 {
		out.printf("not compared: %s\n", strings.Join(c.NotCompared, ", "))
	}
	out.printf("%s on %s", quantity(c.Images, "image", "images"), c.Device)
	for _, t := range c.Outputs {
		if t.SameArgMax != nil {
			out.printf(", %d with the same arg-max", *t.SameArgMax)
			if len(c.Outputs) > 1 {
				out.printf(" of %s", t.Name)
			}
		}
	}
	out.printf("\n")
}
