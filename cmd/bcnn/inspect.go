package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/internal/arrays"
	"github.com/bitcnn/bitcnn/internal/measure"
	"github.com/bitcnn/bitcnn/internal/pages"
	"github.com/bitcnn/bitcnn/internal/summary"
	"github.com/bitcnn/bitcnn/internal/text"
)

// inspection is the object of inspect --json.
type inspection struct {
	Name   string      `json:"name"`
	Input  inputInfo   `json:"input"`
	Labels []string    `json:"labels"`
	Boxes  string      `json:"boxes,omitempty"` // how a detector makes them
	Layers []layerInfo `json:"layers"`
	// Arrays are what 'bcnn run' reads and writes.
	Arrays arraysInfo      `json:"arrays"`
	Report *summary.Report `json:"report"`
	Plan   *planInfo       `json:"plan,omitempty"`
	Passes []passInfo      `json:"passes,omitempty"`
}

type arraysInfo struct {
	Inputs  []arrayInfo `json:"inputs"`
	Outputs []arrayInfo `json:"outputs"`
}

type arrayInfo struct {
	Name string `json:"name"`
	Dims []int  `json:"dims"` // behind the batch
}

type inputInfo struct {
	Height   int    `json:"height"`
	Width    int    `json:"width"`
	Channels int    `json:"channels"`
	Type     string `json:"type"`
	Resize   int    `json:"resize,omitempty"`
}

type layerInfo struct {
	Name    string         `json:"name"`
	Kind    string         `json:"kind"`
	Inputs  []int          `json:"inputs"`
	Output  string         `json:"output"`
	Details string         `json:"details,omitempty"`
	Weights *summary.Layer `json:"weights,omitempty"`
}

type planInfo struct {
	// TensorBytes is the memory for the tensors of an image.
	TensorBytes int64      `json:"tensor_bytes"`
	Device      string     `json:"device,omitempty"` // that picked
	Detail      string     `json:"detail,omitempty"`
	Steps       []planStep `json:"steps"`
}

type planStep struct {
	Name   string   `json:"name"`
	Kind   string   `json:"kind"`
	Layers []string `json:"layers"`
	Inputs []string `json:"inputs"`
	Output string   `json:"output"`
	// What the device picked.
	Kernel string `json:"kernel,omitempty"`
	Tile   string `json:"tile,omitempty"`
	Why    string `json:"why,omitempty"`
	With   string `json:"with,omitempty"` // the step whose kernel or tiles compute it
}

func newInspect(env *environment) *cobra.Command {
	var asJSON, withPlan, withPasses bool
	var device, page string
	opts := backend.Options{MaxBatch: 1}
	cmd := &cobra.Command{
		Use:   "inspect MODEL",
		Short: "Show the layers of a model",
		Long: `Show the input, labels and layers of a model: output shapes, parameters, precision,
bytes, and why a layer is float32. The names, dimensions and types of its arrays are
those that 'bcnn run' reads and writes.

--plan adds the steps that devices execute, named after the layers fused in them, the
bytes of their tensors, and which kernel and tile the device picks for each, and why.
A tile is what one thread computes at a time. "wide" kernels keep output channels
side by side in registers; "joined rows" put several taps of few channels into one
word; "dense runs" are window rows without gaps; "sums of planes" add bit planes in
memory; "in that of X" is computed together with step X.

--passes shows what happens between the file and the kernels: the rules that found
binary layers, the steps that layers become, and the steps computed together. --html
FILE draws the steps with their shapes and shares of the time. --device, --isa,
--threads, --kernels and --batch are for these three.

With --json, one object: name, input, labels, boxes (of a detector), layers, arrays,
report (as of convert), with --plan plan (tensor_bytes, device, detail, steps with
kernel, tile, why and with), with --passes passes.`,
		Example: `  bcnn inspect vehiclenet
  bcnn inspect model.onnx --plan
  bcnn inspect vehiclenet --plan --isa avx2 --threads 1
  bcnn inspect model.onnx --passes
  bcnn inspect model.bcnn --html model.html
  bcnn inspect model.bcnn --json`,
		Args: oneArgument("a model: a name or a file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, name := range []string{"device", "isa", "threads", "batch", "kernels"} {
				if cmd.Flags().Changed(name) && !withPlan && !withPasses && page == "" {
					return usagef("--%s needs --plan, --passes or --html", name)
				}
			}
			read, err := readFor(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			program, err := lower.Compile(cmd.Context(), read.net, lower.Options{})
			if err != nil {
				return err
			}
			info, err := inspect(program, withPlan || withPasses)
			if err != nil {
				return err
			}
			if withPlan || withPasses {
				choices, err := explain(cmd.Context(), info.Plan, program.Plan, device, opts)
				if err != nil {
					return err
				}
				if withPasses {
					info.Passes = listPasses(info, append(read.findings, program.Findings...), program, choices)
				}
				if !withPlan {
					info.Plan = nil
				}
			}
			if page != "" {
				drawing, err := drawNetwork(cmd.Context(), program, device, opts)
				if err == nil {
					err = drawing.Write(page)
				}
				if err != nil {
					return err
				}
			}
			if asJSON {
				return env.out.json(info)
			}
			printInspection(env.out, info)
			return nil
		},
	}
	cmd.Flags().BoolVar(&withPlan, "plan", false, "also show the fused steps and their kernels")
	cmd.Flags().BoolVar(&withPasses, "passes", false, "also show what each pass from the file to the kernels did")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	cmd.Flags().StringVar(&device, "device", "cpu", "device that --plan, --passes and --html use")
	cmd.Flags().StringVar(&opts.ISA, "isa", "", "CPU instruction set (default the best)")
	threadsFlag(cmd, &opts.Threads, "CPU threads")
	kernelsFlag(cmd, &opts.Kernels, "GPU kernels")
	htmlFlag(cmd, &page)
	intVar(cmd, &opts.MaxBatch, "batch", 1, maxBatch, "images per run")
	return cmd
}

// explain adds to the steps what a device picks for them, and returns that.
func explain(ctx context.Context, info *planInfo, plan *plan.Plan, device string, opts backend.Options) ([]backend.Choice, error) {
	dev, err := backend.Open(device)
	if err != nil {
		return nil, err
	}
	exe, err := dev.Compile(ctx, plan, opts)
	if err != nil {
		return nil, err
	}
	defer exe.Close()
	info.Device, info.Detail = dev.Info().ID, detail(dev.Info(), opts)
	choices := exe.Explain()
	for i, c := range choices {
		s := &info.Steps[i]
		s.Kernel, s.Tile, s.Why, s.With = c.Kernel, c.Tile, c.Why, c.With
	}
	return choices, nil
}

// drawnRuns are the runs that the times of a drawing come from.
const drawnRuns = 30

// drawNetwork runs a network on a device, and makes a drawing of its steps.
func drawNetwork(ctx context.Context, program *lower.Program, device string, opts backend.Options) (*pages.Network, error) {
	net, plan := program.Network, program.Plan
	dev, err := backend.Open(device)
	if err != nil {
		return nil, err
	}
	result, err := measure.Model(ctx, dev, net, plan, measure.Options{Options: opts, Runs: drawnRuns, NoPeak: true}, func(int, int) {})
	if err != nil {
		return nil, err
	}
	info := planInfo{Steps: make([]planStep, len(plan.Steps))}
	if _, err := explain(ctx, &info, plan, device, opts); err != nil {
		return nil, err
	}
	in := net.Inputs[0]
	n := &pages.Network{Title: net.Name, About: []string{
		fmt.Sprintf("Input %v %v; %s.", in.Shape, in.DType, text.Count(len(plan.Steps), "step")),
		fmt.Sprintf("Multiplications: %v.", result.ByBits),
		fmt.Sprintf("%s: %s (%s); a run of %s takes %.4g µs, the shortest of %d.", info.Device, dev.Info().Name, info.Detail,
			text.Count(opts.MaxBatch, "image"), result.Min, drawnRuns),
	}}
	maker, tensors := map[int]int{}, plan.Describe() // the maker of each tensor
	for i, s := range plan.Steps {
		step := pages.Step{
			Name: s.Name, Kind: s.Kind(), Output: tensors[s.Out],
			Kernel: info.Steps[i].Kernel, Values: plan.Tensors[s.Out].Shape.Values(),
			Precision: result.Steps[i].Precision, Work: result.Steps[i].MACs,
			Micros: result.Steps[i].Min, Share: result.Steps[i].Share,
		}
		for _, t := range s.In {
			if from, ok := maker[t]; ok {
				step.From = append(step.From, from)
			}
		}
		maker[s.Out] = i
		n.Steps = append(n.Steps, step)
	}
	return n, nil
}

// detail describes a device and the options that change how it works.
func detail(info backend.Info, opts backend.Options) string {
	d, threads := measure.Chosen(info, opts)
	if threads > 0 {
		d += ", " + text.Count(threads, "thread")
	}
	if opts.Kernels != "" {
		d += ", --kernels " + opts.Kernels
	}
	return d
}

func inspect(program *lower.Program, withPlan bool) (*inspection, error) {
	net, plan := program.Network, program.Plan
	shapes, err := net.Shapes()
	if err != nil {
		return nil, err
	}
	report := summary.New(net, plan)
	in := net.Inputs[0]
	info := &inspection{
		Name:   net.Name,
		Labels: append([]string{}, net.Labels...),
		Boxes:  describeBoxes(net),
		Report: report,
		Input: inputInfo{
			Height: in.Shape.H, Width: in.Shape.W, Channels: in.Shape.C,
			Type: in.DType.String(), Resize: in.Resize,
		},
	}
	ports, err := arrays.PortsOf(net)
	if err != nil {
		return nil, err
	}
	info.Arrays = arraysInfo{arrayInfos(ports.Inputs), arrayInfos(ports.Outputs)}
	weights := map[string]*summary.Layer{}
	for i, w := range info.Report.Layers {
		weights[w.Name] = &info.Report.Layers[i]
	}
	for i, l := range net.Layers {
		info.Layers = append(info.Layers, layerInfo{
			Name: l.Name, Kind: l.Op.Kind(), Inputs: l.Inputs, Output: shapes[i].String(),
			Details: details(l.Op), Weights: weights[l.Name],
		})
	}
	if withPlan {
		info.Plan = inspectPlan(net, plan)
	}
	return info, nil
}

func arrayInfos(ports []arrays.Port) []arrayInfo {
	var list []arrayInfo
	for _, p := range ports {
		list = append(list, arrayInfo{p.Name, p.Dims})
	}
	return list
}

func describeArrays(list []arrayInfo) string {
	var words []string
	for _, a := range list {
		words = append(words, a.Name+" "+arrays.Batches(a.Dims))
	}
	return strings.Join(words, ", ")
}

func inspectPlan(net *bcnn.Network, plan *plan.Plan) *planInfo {
	p := &planInfo{TensorBytes: plan.Place(1, plan.Uses()).Bytes}
	tensors := plan.Describe()
	for _, s := range plan.Steps {
		step := planStep{Name: s.Name, Kind: s.Kind(), Output: tensors[s.Out]}
		for _, t := range s.In {
			step.Inputs = append(step.Inputs, tensors[t])
		}
		for _, l := range s.Layers {
			step.Layers = append(step.Layers, net.Layers[l].Name)
		}
		p.Steps = append(p.Steps, step)
	}
	return p
}

// details describes the parameters of a layer in a few words.
func details(op bcnn.Op) string {
	switch op := op.(type) {
	case bcnn.Binarize:
		if len(op.Thresholds) > 0 {
			return fmt.Sprintf("%s, x ≥ %v", op.Scheme, op.Thresholds)
		}
		return string(op.Scheme)
	case bcnn.Conv2D:
		d := window(op.Window)
		if op.Pad != (bcnn.Padding{}) {
			d += " of " + []string{"−1", "0", "+1"}[op.PadValue+1]
		}
		if op.Groups > 1 {
			d += fmt.Sprintf(", %d groups", op.Groups)
		}
		return d
	case bcnn.MaxPool:
		return window(op.Window)
	case bcnn.AvgPool:
		if op.CountPadding {
			return window(op.Window) + ", which counts"
		}
		return window(op.Window)
	case bcnn.Clip:
		return fmt.Sprintf("%v to %v", op.Min, op.Max)
	case bcnn.PReLU:
		if len(op.Slope) == 1 {
			return fmt.Sprintf("slope %v", op.Slope[0])
		}
	case bcnn.Quantize:
		return fmt.Sprintf("%d to %d", op.Low, op.Low+op.Levels-1)
	case bcnn.Sign:
		return "+1 where " + op.Zero.String()
	}
	return ""
}

func window(w bcnn.Window) string {
	d := fmt.Sprintf("%d×%d", w.KH, w.KW)
	if h, v := max(1, w.StrideH), max(1, w.StrideW); h > 1 || v > 1 {
		d += fmt.Sprintf(", stride %d×%d", h, v)
	}
	if h, v := max(1, w.DilationH), max(1, w.DilationW); h > 1 || v > 1 {
		d += fmt.Sprintf(", dilation %d×%d", h, v)
	}
	if p := w.Pad; p != (bcnn.Padding{}) {
		if p.Top == p.Bottom && p.Left == p.Right && p.Top == p.Left {
			return d + fmt.Sprintf(", padding %d", p.Top)
		}
		return d + fmt.Sprintf(", padding %d,%d,%d,%d", p.Top, p.Left, p.Bottom, p.Right)
	}
	return d
}

func printInspection(out *output, info *inspection) {
	in := info.Input
	out.printf("%s: input %d×%d×%d %s", info.Name, in.Height, in.Width, in.Channels, in.Type)
	if in.Resize > 0 {
		out.printf(", photos resized to %d", in.Resize)
	}
	out.printf("\n")
	if len(info.Labels) > 0 {
		out.printf("labels: %s\n", strings.Join(info.Labels, ", "))
	}
	if info.Boxes != "" {
		out.printf("boxes: %s\n", info.Boxes)
	}
	out.printf("arrays: %s -> %s\n\n", describeArrays(info.Arrays.Inputs), describeArrays(info.Arrays.Outputs))

	rows := []row{"layer\tkind\toutput\tprecision\tdetails"}
	for _, l := range info.Layers {
		precision := ""
		if l.Weights != nil {
			precision = l.Weights.Words
		}
		rows = append(rows, rowf("%s\t%s\t%s\t%s\t%s", l.Name, l.Kind, l.Output, precision, l.Details))
	}
	out.table(rows)
	printPlan(out, info.Plan)
	printPasses(out, info.Passes)
	out.printf("\n")
	printReport(out, info.Report)
	printWarning(out, info.Report)
}

func printPlan(out *output, plan *planInfo) {
	if plan == nil {
		return
	}
	out.printf("\nplan: %s, %d bytes of tensors per image\n",
		text.Count(len(plan.Steps), "step"), plan.TensorBytes)
	rows := []row{"step\tkind\tinput\toutput"}
	for _, s := range plan.Steps {
		rows = append(rows, rowf("%s\t%s\t%s\t%s", s.Name, s.Kind, strings.Join(s.Inputs, " and "), s.Output))
	}
	out.table(rows)
	if plan.Device == "" {
		return
	}
	out.printf("\nkernels on %s (%s)\n", plan.Device, plan.Detail)
	rows = []row{"step\tkernel\ttile\twhy"}
	for _, s := range plan.Steps {
		rows = append(rows, rowf("%s\t%s\t%s\t%s", s.Name, s.Kernel, s.Tile, s.Why))
	}
	out.table(rows)
}
