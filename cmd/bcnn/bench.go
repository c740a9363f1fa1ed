package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/bitcnn/bitcnn"
	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/bcnn/zoo"
	"github.com/bitcnn/bitcnn/internal/chart"
	"github.com/bitcnn/bitcnn/internal/measure"
	"github.com/bitcnn/bitcnn/internal/text"
)

// Formats of bench.
const (
	formatTable     = "table"
	formatJSON      = "json"
	formatBenchstat = "benchstat"
	formatSVG       = "svg"
	formatPNG       = "png"
)

// allOps is the value of --ops alone.
const allOps = "all"

// benchFlags are the flags of bench: what to measure, for each device, number of
// threads and batch.
type benchFlags struct {
	measure.Options
	device string
	// threads are the numbers of threads; nil is one where there is a choice.
	threads, batches []int
	format           string
}

// each calls f for every device, number of threads and batch, and counts.
func (b benchFlags) each(devices []*backend.Device, f func(i int, dev *backend.Device, opts measure.Options) error) error {
	i := 0
	for _, dev := range devices {
		numbers := b.threads
		if numbers == nil {
			numbers = []int{min(1, dev.Info().MaxThreads)}
		}
		if optionsFor(b.device, dev, backend.Options{Threads: 1}).Threads == 0 {
			numbers = []int{0} // once, whatever the numbers
		}
		for _, threads := range numbers {
			for _, batch := range b.batches {
				opts := b.Options
				opts.Threads, opts.MaxBatch = threads, batch
				opts.Options = optionsFor(b.device, dev, opts.Options)
				if err := f(i, dev, opts); err != nil {
					return err
				}
				i++
			}
		}
	}
	return nil
}

// benchCommand is a run of bench.
type benchCommand struct {
	env *environment
	benchFlags
	model, ops, compare string
	asJSON              bool
}

var benchFormats = []string{formatTable, formatJSON, formatBenchstat, formatSVG, formatPNG}

func newBench(env *environment) *cobra.Command {
	b := &benchCommand{
		env: env, benchFlags: benchFlags{Options: measure.Options{Runs: 200}, threads: []int{0}, batches: []int{1}},
	}
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure how fast a model runs",
		Long: `Time a model on random images (always the same ones): median, minimum, 90th
percentile and mean of whole runs, then the shortest time of every step and its share.
A run is a call of Run with the images in memory; on the CPU nothing is
transferred, on other devices the transfers of image and result are part of the
run. Steps are timed in separate runs, in which each one is waited for; the CPU
computes some of them together otherwise, so that a whole run takes less time.

MAC/s counts multiply-accumulates, padded taps included; one of ±1 values is one
bit of xor and popcount. On the CPU a loop that does nothing but the arithmetic
of the kernels, on the same instruction set and as many threads, is timed before
and after, and one that reads as many bytes as a step. "Of peak" compares a step
on ±1 values with them: the longer of the times that its arithmetic and its bytes
take there at best, as a fraction of the shortest time that it took. The floor is
the sum of these times and of the shortest of the other steps.

--paper follows the protocol of Khan, Huttunen and Boutellier: ` + fmt.Sprint(measure.PaperImages) + ` random
images, one at a time, each a new one; making the images is not counted. The
mean is the paper's figure. On devices other than the CPU it counts the transfers
of image and result, which the paper leaves out: there the images are computed
once more, and the mean time that the kernels took on the device is the figure.
With --kernels patches they are the paper's.

--ops times single binary operators instead: those that BitFlow and daBNN publish
times of, and a sweep over shapes, each in turn with the two loops. It takes
groups (` + strings.Join(zoo.OperatorGroups(), ", ") + `) or names of operators, as in
--ops=bitflow,c64. One thread is used unless --threads says otherwise; at most
--runs runs are made of each.

--format benchstat prints lines like those of go test -bench, ten per model and
five per operator; --format svg and png draw the results of all devices on one
scale: whole runs and their steps, or operators. --batch and --threads take
several numbers, such as --threads 1,2,4; each pair of them is measured. With
--device all, each device takes those of --threads, --isa and --kernels that it
has a choice of.

--compare A.json B.json measures nothing: it reads two files of --json and puts the
results of the same model or operator, device, threads and batch side by side,
steps as well. A / B is how many times as fast B is, by the shortest times.

With --json, one object per result: model (and model_bytes, the name in base64,
where that of a file is not UTF-8), device, detail, threads (0 for all), batch,
runs, median_us, min_us, p90_us, mean_us, transfers (whether the times count
those of images and results), kernels_us (with --paper where they do), macs, binary_macs (for one image), macs_per_s,
peak_macs_per_s and floor_us (CPU), steps (name, kind, output, median_us, min_us, share, macs,
binary, peak_fraction, bound; not with --paper), processor, version, date.
With --ops, one per operator: op, group, device, isa, threads, batch, runs, ms
(the median), min_ms, macs, bytes, mac_per_s, byte_per_s, peak_mac_per_s,
peak_byte_per_s, peak_fraction, bound (arithmetic or memory), processor, version,
date. With --compare, one per pair: model or op, device, threads, batch, a and b
(min_us, median_us), ratio, steps (name, a_min_us, b_min_us, ratio).`,
		Example: `  bcnn bench --model vehiclenet
  bcnn bench --model vehiclenet --device all --paper --json
  bcnn bench --model model.onnx --batch 16 --threads 2
  bcnn bench --ops
  bcnn bench --model vgg16 --threads 1,2,4 --format svg > vgg16.svg
  bcnn bench --ops=bitflow --isa avx2 --json
  bcnn bench --compare before.json after.json`,
		Args: b.args,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := b.check(cmd, args); err != nil {
				return err
			}
			switch {
			case b.compare != "":
				return compareBench(env, [2]string{b.compare, args[0]}, cmd.InOrStdin(), b.format)
			case b.ops != "":
				if !cmd.Flags().Changed("threads") {
					b.threads = nil
				}
				return b.runOps(cmd.Context())
			}
			return b.runModel(cmd.Context())
		},
	}
	modelFlag(cmd, &b.model, defaultModel, "built-in model, .bcnn, .onnx or .tflite file")
	deviceFlag(cmd, &b.device, "all")
	intsVar(cmd, &b.batches, "batch", 1, maxBatch, "images per run, or several numbers separated by commas")
	intVar(cmd, &b.Runs, "runs", 1, maxRuns, "number of timed runs")
	intsVar(cmd, &b.threads, "threads", 0, maxThreads, "CPU threads, or several numbers separated by commas; "+allThreads)
	cmd.Flags().StringVar(&b.ISA, "isa", "", "CPU instruction set (default the best)")
	kernelsFlag(cmd, &b.Kernels, "GPU kernels")
	cmd.Flags().StringVar(&b.ops, "ops", "", "time binary operators instead of a model: groups or names, by default all")
	cmd.Flags().Lookup("ops").NoOptDefVal = allOps
	cmd.Flags().BoolVar(&b.Fresh, "paper", false, "follow the paper's protocol")
	cmd.Flags().StringVar(&b.compare, "compare", "", "put two files of --json side by side: --compare A.json B.json; - is standard input")
	cmd.Flags().StringVar(&b.format, "format", formatTable, "table, json, benchstat (text that benchstat reads), svg or png (charts)")
	cmd.Flags().BoolVar(&b.asJSON, "json", false, "short for --format json")
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(benchFormats, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("ops", cobra.FixedCompletions(zoo.OperatorGroups(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (b *benchCommand) args(cmd *cobra.Command, args []string) error {
	if b.compare == "" {
		return noArguments("--model names what is measured")(cmd, args)
	}
	if len(args) != 1 {
		return usagef("--compare needs two files: --compare A.json B.json")
	}
	return nil
}

// check looks for flags that contradict each other, and makes --json a format.
func (b *benchCommand) check(cmd *cobra.Command, args []string) error {
	switch {
	case b.Fresh && (cmd.Flags().Changed("batch") || cmd.Flags().Changed("runs")):
		return usagef("--paper sets --batch and --runs itself")
	case b.Fresh && b.ops != "":
		return usagef("--paper is for models, not for --ops")
	case b.compare != "" && changedBut(cmd, "compare", "format", "json"):
		return usagef("--compare measures nothing: it takes two files, and --format or --json")
	case b.compare != "" && b.format == formatBenchstat:
		return usagef("--compare has no benchstat format")
	case b.compare == standardInput && args[0] == standardInput:
		return usagef("standard input (-) can be read only once")
	case b.ops != "" && cmd.Flags().Changed("model"):
		return usagef("--ops takes no --model")
	case !slices.Contains(benchFormats, b.format):
		return usagef("--format %q: want one of %s", b.format, strings.Join(benchFormats, ", "))
	case b.asJSON && cmd.Flags().Changed("format") && b.format != formatJSON:
		return usagef("--json and --format %s contradict each other", b.format)
	case b.format == formatPNG && isTerminal(b.env.out.w):
		return usagef("--format png is not for a terminal: write it to a file with > FILE")
	}
	if b.asJSON {
		b.format = formatJSON
	}
	return nil
}

func (b *benchCommand) runOps(ctx context.Context) error {
	chosen, err := selectOps(b.ops)
	if err != nil {
		return err
	}
	devices, err := openDevices(b.device)
	if err != nil {
		return err
	}
	return benchOps(ctx, b.env, devices, chosen, b.benchFlags)
}

func (b *benchCommand) runModel(ctx context.Context) error {
	if b.Fresh {
		b.Runs = measure.PaperImages
	}
	net, err := loadModel(ctx, b.model)
	if err != nil {
		return err
	}
	plan, err := lower.Network(ctx, net, lower.Options{})
	if err != nil {
		return err
	}
	devices, err := openDevices(b.device)
	if err != nil {
		return err
	}
	return benchModel(ctx, b.env, devices, b.model, plan, b.benchFlags)
}

// benchModel times a model on the devices and prints the results.
func benchModel(ctx context.Context, env *environment, devices []*backend.Device, model string, plan *plan.Plan, flags benchFlags) error {
	if flags.format == formatBenchstat {
		_ = measure.WriteBenchstatHeader(env.out) // which keeps the error
	}
	var results []measure.ModelResult
	err := flags.each(devices, func(i int, dev *backend.Device, opts measure.Options) error {
		result, err := benchOne(ctx, env, dev, model, plan, opts)
		if err != nil {
			return err
		}
		results = append(results, result)
		switch flags.format {
		case formatJSON:
			return env.out.json(result)
		case formatBenchstat:
			return result.WriteBenchstat(env.out)
		case formatTable:
			if i > 0 {
				env.out.printf("\n")
			}
			printBench(env.out, result)
		}
		return env.out.err
	})
	if err != nil {
		return err
	}
	return writeCharts(env.out, flags.format, measure.ModelCharts(results))
}

// benchOne times a model on a device.
func benchOne(ctx context.Context, env *environment, dev *backend.Device, model string, plan *plan.Plan, opts measure.Options) (measure.ModelResult, error) {
	info := dev.Info()
	result, err := measure.Model(ctx, dev, plan, opts, env.progress(info.ID))
	result.Model, result.ModelBytes, result.Detail = model, nameBytes(model), detail(info, opts.Options)
	result.Version, result.Date = bitcnn.Version(), time.Now().UTC().Truncate(time.Second)
	return result, err
}

// benchOps times operators on the devices and prints the results.
func benchOps(ctx context.Context, env *environment, devices []*backend.Device, ops []zoo.Operator, flags benchFlags) error {
	if flags.format == formatBenchstat {
		_ = measure.WriteBenchstatHeader(env.out) // which keeps the error
	}
	var all []measure.OperatorResult
	err := flags.each(devices, func(i int, dev *backend.Device, opts measure.Options) error {
		progress := env.progress(dev.Info().ID)
		roof := measure.NewRoofline(dev, opts.Options)
		var results []measure.OperatorResult
		for j, o := range ops {
			r, err := measure.Operator(ctx, dev, o, opts, roof)
			if err != nil {
				return err
			}
			progress(j+1, len(ops))
			r.Version, r.Date = bitcnn.Version(), time.Now().UTC().Truncate(time.Second)
			results = append(results, r)
			switch flags.format {
			case formatJSON:
				err = env.out.json(r)
			case formatBenchstat:
				err = r.WriteBenchstat(env.out)
			}
			if err != nil {
				return err
			}
		}
		all = append(all, results...)
		if flags.format == formatTable {
			if i > 0 {
				env.out.printf("\n")
			}
			printOps(env.out, results)
		}
		return env.out.err
	})
	if err != nil {
		return err
	}
	return writeCharts(env.out, flags.format, measure.OperatorCharts(all))
}

// writeCharts draws charts, where the format is one of a picture.
func writeCharts(out *output, format string, charts []chart.Chart) error {
	switch format {
	case formatSVG:
		return chart.WriteSVG(out, charts)
	case formatPNG:
		return chart.WritePNG(out, charts)
	}
	return nil
}

func printBench(out *output, b measure.ModelResult) {
	out.printf("%s on %s (%s), %s of %s\n", b.Model, b.Device, b.Detail,
		text.Count(b.Runs, "run"), text.Count(b.Batch, "image"))
	out.printf("median %.1f µs, min %.1f µs, p90 %.1f µs, mean %.1f µs; %.1f images/s; %.2f GMAC/s\n",
		b.Median, b.Min, b.P90, b.Mean, float64(b.Batch)/b.Median*1e6, b.Rate/1e9)
	if warning := measure.Busy(b.Median, b.Min); warning != "" {
		out.printf("%s\n", warning)
	}
	if b.Fresh && b.Transfers {
		out.printf("these times count the transfers of image and result, which the paper leaves out; kernels alone: mean %.1f µs\n", b.Kernels)
	}
	if b.Peak > 0 {
		out.printf("peak of the arithmetic alone: %.2f GMAC/s\n", b.Peak/1e9)
	}
	if b.Floor > 0 && slices.ContainsFunc(b.Steps, func(s measure.StepTime) bool { return s.Fraction > 0 }) {
		out.printf("with the steps on ±1 values at their peak: %.1f µs; the shortest run is %.2f times that\n", b.Floor, b.Min/b.Floor)
	}
	printOrigin(out, b.Origin)
	if len(b.Steps) == 0 {
		return
	}
	out.printf("\n")
	rows := []row{"step\tkind\toutput\tmin µs\tshare\tGMAC/s\tof peak\tbound"}
	for _, s := range b.Steps {
		rate, fraction := "", ""
		if s.MACs > 0 && s.Min > 0 {
			rate = fmt.Sprintf("%.2f", float64(s.MACs)*float64(b.Batch)/s.Min/1e3)
		}
		if s.Fraction > 0 {
			fraction = fmt.Sprintf("%.0f %%", 100*s.Fraction)
		}
		rows = append(rows, rowf("%s\t%s\t%s\t%.1f\t%.1f %%\t%s\t%s\t%s",
			s.Name, s.Kind, s.Output, s.Min, 100*s.Share, rate, fraction, s.Bound))
	}
	out.table(rows)
}

// selectOps returns the operators that a list of groups and names, separated by
// commas, means.
func selectOps(list string) ([]zoo.Operator, error) {
	all := zoo.Operators()
	if list == allOps {
		return all, nil
	}
	var chosen []zoo.Operator
	for _, want := range strings.Split(list, ",") {
		found := false
		for _, o := range all {
			if o.Name == want || o.Group == want {
				chosen, found = append(chosen, o), true
			}
		}
		if !found {
			return nil, usagef("--ops %q: want %s, or names of operators, separated by commas; without a value, all",
				want, strings.Join(zoo.OperatorGroups(), ", "))
		}
	}
	return chosen, nil
}

// describeOp says in a few words what an operator does.
func describeOp(o zoo.Operator) string {
	switch op := o.Op.(type) {
	case bcnn.Conv2D:
		d := fmt.Sprintf("%v → %d, %s", o.In, op.Out, window(op.Window))
		if op.Groups > 1 {
			d += fmt.Sprintf(", %d groups", op.Groups)
		}
		return d
	case bcnn.Dense:
		return fmt.Sprintf("%d → %d", o.In.Values(), op.Out)
	case bcnn.MaxPool:
		return fmt.Sprintf("%v, max-pool %s", o.In, window(op.Window))
	}
	return o.In.String()
}

func printOps(out *output, results []measure.OperatorResult) {
	first := results[0]
	out.printf("%s, batch of %d; minimum and median of up to %s, rates of the minimum\n\n", first.Where(), first.Batch,
		text.Count(slices.MaxFunc(results, func(a, b measure.OperatorResult) int { return a.Runs - b.Runs }).Runs, "run"))
	rows := []row{"operator\tshape\tmin ms\tmedian ms\tGMAC/s\tGB/s\tof peak\tbound"}
	noisy := 0
	for _, r := range results {
		if measure.Busy(r.Median, r.Min) != "" {
			noisy++
		}
		rate, fraction := "", ""
		if r.MACs > 0 {
			rate = fmt.Sprintf("%.1f", r.MACRate/1e9)
		}
		if r.Fraction > 0 {
			fraction = fmt.Sprintf("%.0f %%", 100*r.Fraction)
		}
		rows = append(rows, rowf("%s\t%s\t%.4f\t%.4f\t%s\t%.1f\t%s\t%s",
			r.Op, describeOp(r.Operator), r.Min, r.Median, rate, r.ByteRate/1e9, fraction, r.Bound))
	}
	out.table(rows)
	peak := 0.0
	for _, r := range results {
		peak = max(peak, r.Peak)
	}
	if peak > 0 {
		out.printf("peak of the arithmetic alone: %.1f GMAC/s\n", peak/1e9)
	}
	if noisy > 0 {
		out.printf("the machine was busy: of %s the median is more than %g times the minimum\n", text.Count(noisy, "operator"), measure.MostUndisturbed)
	}
	printOrigin(out, first.Origin)
}

// printOrigin prints a line, where there is something to say.
func printOrigin(out *output, o measure.Origin) {
	if s := o.String(); s != "" {
		out.printf("%s\n", s)
	}
}
