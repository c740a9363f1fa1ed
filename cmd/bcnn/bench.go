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
	"github.com/bitcnn/bitcnn/internal/files"
	"github.com/bitcnn/bitcnn/internal/measure"
)

// Formats of bench.
const (
	formatTable     = "table"
	formatJSON      = "json"
	formatCSV       = "csv"
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

// each calls f for every device, number of threads and batch.
func (b benchFlags) each(devices []*backend.Device, f func(dev *backend.Device, opts measure.Options) error) error {
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
				if err := f(dev, opts); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// benchCommand is a run of bench.
type benchCommand struct {
	env *environment
	benchFlags
	models       []string
	ops, compare string
	asJSON       bool
}

var benchFormats = []string{formatTable, formatJSON, formatCSV, formatBenchstat, formatSVG, formatPNG}

func newBench(env *environment) *cobra.Command {
	b := &benchCommand{
		env: env, benchFlags: benchFlags{Options: measure.Options{Runs: 200}, threads: []int{0}, batches: []int{1}},
	}
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Time models and their steps",
		Long: `Time models on random images (always the same): median, minimum, 90th percentile and
mean of whole runs, then the shortest time of every step and its share. On devices
other than the CPU, runs include the transfers of images and results. Steps are timed
in separate runs; the CPU computes some of them together in a whole run, which is
therefore shorter than their sum.

MAC/s counts the multiplications of the network, padded taps included. "Of peak" is
the time of loops that do only the arithmetic of a binary step, or only read its bytes
(the longer of both), as a fraction of the step's shortest time. Loops and steps
alternate; a step that is faster than ` + fmt.Sprint(measure.Patience) + ` repetitions of them has "?". Outputs dropped by
pooling, and rows of lower bit planes without set bits, are no work: --zeros 0.3 makes
30 % of the values 0. The machine was busy if the median exceeds 1.5 times the
minimum, or the mean 1.5 times the median.

--paper follows the protocol of Khan, Huttunen and Boutellier: ` + fmt.Sprint(measure.PaperImages) + ` random images,
one at a time, each a new one; the mean is the paper's figure. On GPUs that is the
mean time of the kernels, without transfers. --kernels patches are the paper's.

--ops times single binary operators: groups (` + strings.Join(zoo.OperatorGroups(), ", ") + `) or names, as in
--ops=bitflow,c64, each alternating with the two loops, on one thread by default, at
most --runs times.

--model, --batch and --threads take several values, separated by commas (a comma in a
name needs a backslash); a table of the medians follows. --format csv prints a line
per run (its column "step" is empty) and per step, benchstat lines like those of go
test -bench, svg and png charts. With --device all, each device takes those of
--threads, --isa and --kernels that it supports.

--compare A.json B.json compares two --json files: results that agree in model or
operator, device, threads and batch, ignoring what is the same throughout a file. A / B
is how many times as fast B is, by the shortest times.

With --json, one object per result: model, model_bytes (base64, if not UTF-8),
device, detail, threads (0 if there is no choice), batch, runs, median_us, min_us,
p90_us, mean_us, transfers (whether included), kernels_us (--paper), macs,
binary_macs, macs_by_bits (per image), macs_per_s, zeros, peak_macs_per_s,
peak_macs_per_s_of_one_thread, peak_steady (median of the peak as a fraction of it),
floor_us (binary products at the peak), steps (name, kind, output, median_us, min_us,
share, macs, bits, planes, plane_rows, peak_fraction, bound, outran_peak), processor,
version, date. With --ops: op, group, device, isa, threads, batch, runs, ms (the
median), min_ms, macs, bytes, mac_per_s, byte_per_s, peak_mac_per_s, peak_byte_per_s,
peak_steady, peak_fraction, bound, outran_peak, processor, version, date. With
--compare: a and b (model or op, device, threads, batch, min_us, median_us), ratio,
steps (name, a_min_us, b_min_us, ratio).`,
		Example: `  bcnn bench --model vehiclenet
  bcnn bench --model vehiclenet,digits --device all --format csv > times.csv
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
	modelsFlag(cmd, &b.models, "built-in models, .bcnn, .onnx, .tflite, .cfg or .xml files, separated by commas")
	deviceFlag(cmd, &b.device, "all")
	intsVar(cmd, &b.batches, "batch", 1, maxBatch, "images per run; several numbers are separated by commas")
	intVar(cmd, &b.Runs, "runs", 1, maxRuns, "number of timed runs")
	intsVar(cmd, &b.threads, "threads", 0, maxThreads, "CPU threads; several numbers are separated by commas; "+allThreads)
	cmd.Flags().StringVar(&b.ISA, "isa", "", "CPU instruction set (default the best)")
	kernelsFlag(cmd, &b.Kernels, "GPU kernels")
	cmd.Flags().StringVar(&b.ops, "ops", "", "time binary operators instead of a model: groups or names, by default all")
	cmd.Flags().Lookup("ops").NoOptDefVal = allOps
	cmd.Flags().BoolVar(&b.Fresh, "paper", false, "follow the paper's protocol")
	fractionFlag(cmd, &b.Zeros, "zeros", "fraction of the image values that are 0")
	cmd.Flags().StringVar(&b.compare, "compare", "", "compare two --json files: --compare A.json B.json; - is standard input")
	cmd.Flags().StringVar(&b.format, "format", formatTable, "table, json, csv, benchstat, svg or png")
	cmd.Flags().BoolVar(&b.asJSON, "json", false, "short for --format json")
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(benchFormats, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("ops", cobra.FixedCompletions(zoo.OperatorGroups(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (b *benchCommand) args(cmd *cobra.Command, args []string) error {
	if b.compare == "" {
		return noArguments("use --model")(cmd, args)
	}
	if len(args) != 1 {
		return usagef("--compare needs two files: --compare A.json B.json")
	}
	return nil
}

// check looks for flags that contradict each other, and makes --json a format.
func (b *benchCommand) check(cmd *cobra.Command, args []string) error {
	given := func(name string) bool {
		f := cmd.Flags().Lookup(name)
		return f.Changed && f.Value.String() != "false"
	}
	for _, p := range []struct{ flag, other, why string }{
		{"paper", "batch", ": the protocol sets it"},
		{"paper", "runs", ": the protocol sets it"},
		{"paper", "ops", ": it is for models"},
		{"ops", "model", ""},
		{"ops", "zeros", ": its values are ±1"},
	} {
		if given(p.flag) && given(p.other) {
			return usagef("--%s takes no --%s%s", p.flag, p.other, p.why)
		}
	}
	switch {
	case b.compare != "" && changedBut(cmd, "compare", "format", "json"):
		return usagef("--compare takes two files, and only --format or --json")
	case b.compare != "" && b.format == formatBenchstat:
		return usagef("--compare has no benchstat format")
	case b.compare == standardInput && args[0] == standardInput:
		return usagef("standard input (-) can be read only once")
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
	var models []namedPlan
	for _, name := range b.models {
		net, err := loadModel(ctx, name)
		if err != nil {
			return err
		}
		program, err := lower.Compile(ctx, net, lower.Options{})
		if err != nil {
			return files.Name(name, err)
		}
		models = append(models, namedPlan{name, program.Network, program.Plan})
	}
	devices, err := openDevices(b.device)
	if err != nil {
		return err
	}
	return benchModels(ctx, b.env, devices, models, b.benchFlags)
}

// namedPlan is a model as the user has named it, and its plan.
type namedPlan struct {
	name string
	net  *bcnn.Network
	*plan.Plan
}

// benchModels times models on the devices and prints the results.
func benchModels(ctx context.Context, env *environment, devices []*backend.Device, models []namedPlan, flags benchFlags) error {
	if flags.format == formatBenchstat {
		_ = measure.WriteBenchstatHeader(env.out) // which keeps the error
	}
	var results []measure.ModelResult
	for _, m := range models {
		err := flags.each(devices, func(dev *backend.Device, opts measure.Options) error {
			result, err := benchOne(ctx, env, dev, m.name, m.net, m.Plan, opts)
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
				if len(results) > 1 {
					env.out.printf("\n")
				}
				printBench(env.out, result)
			}
			return env.out.err
		})
		if err != nil {
			return err
		}
	}
	switch flags.format {
	case formatCSV:
		return measure.WriteModelsCSV(env.out, results)
	case formatTable:
		if len(models) > 1 {
			printMedians(env.out, results)
		}
		return env.out.err
	}
	return writeCharts(env.out, flags.format, measure.ModelCharts(results))
}

// benchOne times a model on a device.
func benchOne(ctx context.Context, env *environment, dev *backend.Device, model string, net *bcnn.Network, plan *plan.Plan, opts measure.Options) (measure.ModelResult, error) {
	info := dev.Info()
	result, err := measure.Model(ctx, dev, net, plan, opts, env.progress(info.ID))
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
	err := flags.each(devices, func(dev *backend.Device, opts measure.Options) error {
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
		}
		// All are compared with the best that the loops reach in all the time.
		if err := roof.Settle(ctx, results); err != nil {
			return err
		}
		for _, r := range results {
			var err error
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
		if flags.format == formatTable {
			if len(all) > 0 {
				env.out.printf("\n")
			}
			printOps(env.out, results)
		}
		all = append(all, results...)
		return env.out.err
	})
	if err != nil {
		return err
	}
	if flags.format == formatCSV {
		return measure.WriteOperatorsCSV(env.out, all)
	}
	return writeCharts(env.out, flags.format, measure.OperatorCharts(all))
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
