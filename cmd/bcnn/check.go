package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"

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
	// NotCompared are arrays of the reference that no tensor of the network is. Of those,
	// Unknown are none of the model that was converted either, where that is known.
	NotCompared []string `json:"not_compared"`
	Unknown     []string `json:"unknown"`

	known []string // names that are compared
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
		Short: "Compare the outputs of a model with those of another program",
		Long: `Run a model on arrays, as 'bcnn run' does, and compare its outputs with those that
another program computed from the same inputs. The reference holds the outputs under
their names, the inputs likewise unless --input names another file. It may hold other
tensors of the converted model under their names there: the first that differs is
where to look. Tensors that became part of other layers are listed as not compared,
unknown names as unknown; it is an error if none can be compared.

The exit status is 1 if a tensor differs by more than --tolerance, as a fraction of
the largest value of the reference; 0 demands equality.

With --json, one object: model, device, images, tolerance, ok, outputs and layers
(name, difference, relative, ok, and of an output same_argmax), first, not_compared,
and of these unknown. Infinite and NaN differences are null.`,
		Example: `  bcnn check --model model.bcnn --reference torch.npz
  bcnn check --model model.bcnn --input x.npy --reference y.npy --tolerance 0`,
		Args: noArguments("use --model and --reference"),
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
						return files.Name(f.name, fmt.Errorf("no array for input %s; give it with --input X.npz", text.Quote(p.Name)))
					}
				}
			}
			in, err := findArrays(from, r.ports.Inputs, 0, false)
			if err != nil {
				return err
			}
			defer in.Close()
			result, err := r.check(ctx, in, f, tolerance, env.progress("check"))
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
	cmd.Flags().StringVarP(&reference, "reference", "r", "", ".npz or .npy file with the expected outputs; - is standard input")
	fractionFlag(cmd, &tolerance, "tolerance", "maximum difference, as a fraction of the largest value")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// check runs the model and compares what it gives with the arrays of f, batch by batch.
func (r *arrayRunner) check(ctx context.Context, in *imageArrays, f *arrayFile, tolerance float64, progress func(done, total int)) (*checkResult, error) {
	c := &checkResult{Model: r.model, Images: in.images, Tolerance: tolerance, Layers: []checkedTensor{}}
	want, err := findArrays(f, r.ports.Outputs, in.images, true)
	if err != nil {
		return nil, err
	}
	defer want.Close()
	s, err := r.open(ctx, in.images)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	c.Device = r.device
	inner, err := r.newInnerCheck(ctx, f, in.images)
	if err != nil {
		return nil, err
	}
	defer inner.close()
	outputs := make([]outputCheck, len(want.ports))
	err = r.batches(in, func(x []bcnn.Tensor, from int) error {
		values, err := r.predict(ctx, s, x)
		if err != nil {
			return err
		}
		for i, port := range want.ports {
			a, err := want.next(i, x[0].N)
			if err != nil {
				return err
			}
			if err := outputs[i].add(port, values[i], a); err != nil {
				return files.Name(f.name, err)
			}
		}
		progress(from+x[0].N, in.images)
		return inner.run(ctx, x)
	})
	if err != nil {
		return nil, err
	}
	for i, port := range want.ports {
		c.Outputs = append(c.Outputs, outputs[i].result(port, tolerance))
	}
	c.Layers, c.NotCompared = inner.result(tolerance)
	c.Unknown, c.known = inner.unknown, inner.known
	all := append(slices.Clone(c.Layers), c.Outputs...)
	differs := slices.IndexFunc(all, func(t checkedTensor) bool { return !t.OK })
	if c.OK = differs < 0; !c.OK {
		c.First = all[differs].Name
	}
	return c, nil
}

// outputCheck compares an output.
type outputCheck struct {
	difference arrays.Difference
	same       int // images with the same arg-max
}

// add compares the values of some images.
func (o *outputCheck) add(port arrays.Port, values []float32, want *npy.Array) error {
	should, err := port.Numbers(want)
	if err != nil {
		return err
	}
	o.difference.Add(values, should)
	size := port.Shape.Values()
	for i := 0; i < len(values); i += size {
		if arrays.ArgMax(values[i:i+size]) == arrays.ArgMax(should[i:i+size]) {
			o.same++
		}
	}
	return nil
}

func (o *outputCheck) result(port arrays.Port, tolerance float64) checkedTensor {
	t := newCheckedTensor(port.Name, o.difference, tolerance)
	if size := port.Shape.Values(); size == port.Shape.C && size > 1 {
		t.SameArgMax = &o.same
	}
	return t
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
	var absorbed []string
	for _, name := range c.NotCompared {
		if !slices.Contains(c.Unknown, name) {
			absorbed = append(absorbed, name)
		}
	}
	if len(absorbed) > 0 {
		out.printf("not compared: %s\n", strings.Join(absorbed, ", "))
	}
	if len(c.Unknown) > 0 {
		out.printf("unknown names: %s; the model has %s\n", strings.Join(c.Unknown, ", "), arrays.Quoted(c.known))
	}
	out.printf("%s on %s", text.Count(c.Images, "image"), c.Device)
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
