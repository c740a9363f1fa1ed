package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/zoo"
)

// paperImages is the number of images of the paper's protocol.
const paperImages = 1000

// benchResult is a line of bench --json.
type benchResult struct {
	Model string `json:"model"`
	// ModelBytes is the name of a file that is not UTF-8.
	ModelBytes []byte  `json:"model_bytes,omitempty"`
	Device     string  `json:"device"`
	Detail     string  `json:"detail"`
	Batch      int     `json:"batch"`
	Runs       int     `json:"runs"`
	Median     float64 `json:"median_us"`
	Min        float64 `json:"min_us"`
	P90        float64 `json:"p90_us"`
	Mean       float64 `json:"mean_us"`
	// Transfers says whether the times count the transfers of images and results: on
	// all devices but "cpu", which has none.
	Transfers bool `json:"transfers"`
	// MACs is the number of multiply-accumulates for one image; Binary those
	// over ±1 inputs and weights.
	MACs       int64   `json:"macs"`
	BinaryMACs int64   `json:"binary_macs"`
	Rate       float64 `json:"macs_per_s"`
	// Peak is the rate of a loop of xor, popcount and add; CPU only.
	Peak float64 `json:"peak_macs_per_s,omitempty"`
	// Floor is what a run takes if the steps on ±1 values take no longer than
	// their arithmetic or memory do, and the others their shortest; CPU only.
	Floor float64    `json:"floor_us,omitempty"`
	Steps []stepTime `json:"steps,omitempty"`

	isa     string
	paper   bool
	samples []sample
}

// benchSamples is the number of lines that benchstat gets of one measurement.
const benchSamples = 10

type benchFlags struct {
	backend.Options
	runs   int
	paper  bool
	format string
	// oneThread asks for one thread where there is a choice.
	oneThread bool
}

func newBench(env *environment) *cobra.Command {
	var model, device, ops string
	var asJSON bool
	flags := benchFlags{Options: backend.Options{MaxBatch: 1}, runs: 200}
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure how fast a model runs",
		Long: `Time a model on random images (always the same ones): median, minimum, 90th
percentile and mean of whole runs, then the median of every step and its share.
A run is a call of Run with the images in memory; on the CPU nothing is
transferred, on other devices the transfers of image and result are part of the
run. Steps are timed in separate runs, in which each one is waited for.

MAC/s counts multiply-accumulates, padded taps included; one of ±1 values is one
bit of xor and popcount. On the CPU a loop that does nothing but the arithmetic
of the kernels, on the same instruction set and as many threads, is timed before
and after, and one that reads as many bytes as a step. "Of peak" compares a step
on ±1 values with them: the longer of the times that its arithmetic and its bytes
take there at best, as a fraction of the shortest time that it took. The floor is
the sum of these times and of the shortest of the other steps.

--paper follows the protocol of Khan, Huttunen and Boutellier: ` + fmt.Sprint(paperImages) + ` random
images, one at a time, each a new one; making the images is not counted. The
mean is the paper's figure, but on devices other than the CPU it counts the
transfers of image and result, which the paper leaves out.

--ops times single binary operators instead: those that BitFlow and daBNN publish
times of, and a sweep over shapes, each in turn with the two loops. It takes
groups (` + strings.Join(zoo.OperatorGroups(), ", ") + `) or names of operators, as in
--ops=bitflow,c64. One thread is used unless --threads says otherwise; at most
--runs runs are made of each.

--format benchstat prints lines like those of go test -bench, ten per model and
five per operator; --format svg draws steps or operators as bars.

With --json, one object per device: model (and model_bytes, the name in base64,
where that of a file is not UTF-8), device, detail, batch, runs, median_us,
min_us, p90_us, mean_us, transfers (whether the times count those of images and
results), macs, binary_macs (for one image), macs_per_s, peak_macs_per_s and
floor_us (CPU), steps (name, kind, output, median_us, min_us, share, macs,
binary, peak_fraction, bound; not with --paper).
With --ops, one per operator: op, group, device, isa, threads, batch, runs, ms
(the median), min_ms, macs, bytes, mac_per_s, byte_per_s, peak_mac_per_s,
peak_byte_per_s, peak_fraction, bound (arithmetic or memory).`,
		Example: `  bcnn bench --model vehiclenet
  bcnn bench --model vehiclenet --device all --paper --json
  bcnn bench --model model.onnx --batch 16 --threads 2
  bcnn bench --ops
  bcnn bench --ops=bitflow --isa avx2 --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case flags.paper && (cmd.Flags().Changed("batch") || cmd.Flags().Changed("runs")):
				return usagef("--paper sets --batch and --runs itself")
			case flags.paper && ops != "":
				return usagef("--paper is for models, not for --ops")
			case ops != "" && cmd.Flags().Changed("model"):
				return usagef("--ops takes no --model")
			case !slices.Contains(benchFormats(), flags.format):
				return usagef("--format %q: want one of %s", flags.format, strings.Join(benchFormats(), ", "))
			case asJSON && cmd.Flags().Changed("format") && flags.format != formatJSON:
				return usagef("--json and --format %s contradict each other", flags.format)
			}
			if asJSON {
				flags.format = formatJSON
			}
			if ops != "" {
				chosen, err := selectOps(ops)
				if err != nil {
					return err
				}
				devices, err := openDevices(device)
				if err != nil {
					return err
				}
				flags.oneThread = !cmd.Flags().Changed("threads")
				return benchOps(cmd.Context(), env, devices, chosen, flags)
			}
			if flags.paper {
				flags.MaxBatch, flags.runs = 1, paperImages
			}
			net, err := loadModel(cmd.Context(), model)
			if err != nil {
				return err
			}
			plan, err := bcnn.Lower(cmd.Context(), net, bcnn.LowerOptions{})
			if err != nil {
				return err
			}
			devices, err := openDevices(device)
			if err != nil {
				return err
			}
			return benchModel(cmd.Context(), env, devices, model, plan, flags)
		},
	}
	modelFlag(cmd, &model, defaultModel, "built-in model, .bcnn or .onnx file")
	deviceFlag(cmd, &device, "all")
	wholeFlag(cmd, &flags.MaxBatch, "batch", 1, maxBatch, "images per run")
	wholeFlag(cmd, &flags.runs, "runs", 1, maxRuns, "number of timed runs")
	threadsFlag(cmd, &flags.Threads, "CPU threads")
	cmd.Flags().StringVar(&flags.ISA, "isa", "", "CPU instruction set (default the best)")
	kernelsFlag(cmd, &flags.Kernels, "GPU kernels")
	cmd.Flags().StringVar(&ops, "ops", "", "time binary operators instead of a model: groups or names, by default all")
	cmd.Flags().Lookup("ops").NoOptDefVal = allOps
	cmd.Flags().BoolVar(&flags.paper, "paper", false, "follow the paper's protocol")
	cmd.Flags().StringVar(&flags.format, "format", formatTable, "table, json, benchstat (text that benchstat reads) or svg (a chart)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "short for --format json")
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(benchFormats(), cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("ops", cobra.FixedCompletions(zoo.OperatorGroups(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// benchModel times a model on the devices and prints the results.
func benchModel(ctx context.Context, env *environment, devices []*backend.Device, model string, plan *bcnn.Plan, flags benchFlags) error {
	if flags.format == formatBenchstat {
		printBenchstatHeader(env.out)
	}
	var charts []chart
	for i, dev := range devices {
		result, err := bench(ctx, dev, plan, flags, env.progress(dev.Info().ID))
		if err != nil {
			return err
		}
		result.Model, result.ModelBytes = model, nameBytes(model)
		switch flags.format {
		case formatJSON:
			if err := env.out.json(result); err != nil {
				return err
			}
		case formatBenchstat:
			result.printSamples(env.out)
		case formatSVG:
			charts = append(charts, result.chart())
		default:
			if i > 0 {
				env.out.printf("\n")
			}
			printBench(env.out, result)
		}
		if env.out.err != nil {
			return env.out.err
		}
	}
	if flags.format == formatSVG {
		printSVG(env.out, charts)
	}
	return env.out.err
}

func bench(ctx context.Context, dev *backend.Device, plan *bcnn.Plan, flags benchFlags, progress func(done, total int)) (benchResult, error) {
	info := dev.Info()
	result := benchResult{Device: info.ID, Detail: detail(info, flags.Options), Batch: flags.MaxBatch, Runs: flags.runs,
		Transfers: info.ID != "cpu", isa: isaOf(info, flags.Options), paper: flags.paper}
	lim := newLimits(dev, flags.Options)
	if err := lim.update(); err != nil {
		return result, err
	}
	r, err := newRunner(ctx, dev, plan, flags.Options)
	if err != nil {
		return result, err
	}
	defer r.Close()
	took, err := timeRuns(ctx, r, flags.runs, flags.paper, progress)
	if err != nil {
		return result, err
	}
	if !flags.paper {
		if result.Steps, err = timeSteps(ctx, dev, plan, flags.Options, flags.runs); err != nil {
			return result, err
		}
	}
	if err := lim.update(); err != nil {
		return result, err
	}
	result.Peak = lim.peak
	if result.Floor, err = lim.compare(ctx, result.Steps, plan, flags.MaxBatch); err != nil {
		return result, err
	}

	for i, s := range plan.Steps {
		n := plan.MACs(i)
		result.MACs += n
		if isBinary(plan, s) {
			result.BinaryMACs += n
		}
	}
	result.Median, result.Min = micros(took.quantile(0.5)), micros(took.quantile(0))
	result.P90, result.Mean = micros(took.quantile(0.9)), micros(took.mean())
	result.samples = took.samples(benchSamples)
	result.Rate = float64(result.MACs) * float64(result.Batch) / result.Median * 1e6
	return result, nil
}

func printBench(out *output, b benchResult) {
	out.printf("%s on %s (%s), %s of %s\n", b.Model, b.Device, b.Detail,
		quantity(b.Runs, "run", "runs"), quantity(b.Batch, "image", "images"))
	out.printf("median %.1f µs, min %.1f µs, p90 %.1f µs, mean %.1f µs; %.1f images/s; %.2f GMAC/s\n",
		b.Median, b.Min, b.P90, b.Mean, float64(b.Batch)/b.Median*1e6, b.Rate/1e9)
	if b.paper && b.Transfers {
		out.printf("these times count the transfers of image and result, which the paper leaves out\n")
	}
	if b.Peak > 0 {
		out.printf("peak of the arithmetic alone: %.2f GMAC/s\n", b.Peak/1e9)
	}
	if b.Floor > 0 {
		out.printf("with the steps on ±1 values at their peak: %.1f µs; the median is %.2f times that, the minimum %.2f times\n",
			b.Floor, b.Median/b.Floor, b.Min/b.Floor)
	}
	if len(b.Steps) == 0 {
		return
	}
	out.printf("\n")
	rows := []row{"step\tkind\toutput\tmedian µs\tshare\tGMAC/s\tof peak\tbound"}
	for _, s := range b.Steps {
		rate, fraction := "", ""
		if s.MACs > 0 && s.Median > 0 {
			rate = fmt.Sprintf("%.2f", float64(s.MACs)*float64(b.Batch)/s.Median/1e3)
		}
		if s.Fraction > 0 {
			fraction = fmt.Sprintf("%.0f %%", 100*s.Fraction)
		}
		rows = append(rows, rowf("%s\t%s\t%s\t%.1f\t%.1f %%\t%s\t%s\t%s",
			s.Name, s.Kind, s.Output, s.Median, 100*s.Share, rate, fraction, s.Bound))
	}
	out.table(rows)
}
