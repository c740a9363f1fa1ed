package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/bcnn"
)

// paperImages is the number of images of the paper's protocol.
const paperImages = 1000

// benchResult is a line of bench --json.
type benchResult struct {
	Model  string  `json:"model"`
	Device string  `json:"device"`
	Detail string  `json:"detail"`
	Batch  int     `json:"batch"`
	Runs   int     `json:"runs"`
	Median float64 `json:"median_us"`
	Min    float64 `json:"min_us"`
	P90    float64 `json:"p90_us"`
	Mean   float64 `json:"mean_us"`
	// MACs is the number of multiply-accumulates for one image; Binary those
	// over ±1 inputs and weights.
	MACs       int64   `json:"macs"`
	BinaryMACs int64   `json:"binary_macs"`
	Rate       float64 `json:"macs_per_s"`
	// Peak is the rate of a loop of xor, popcount and add; CPU only.
	Peak  float64    `json:"peak_macs_per_s,omitempty"`
	Steps []stepTime `json:"steps,omitempty"`
}

type benchFlags struct {
	backend.Options
	runs  int
	paper bool
}

func newBench(env *environment) *cobra.Command {
	var model, device string
	var asJSON bool
	var flags benchFlags
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
and after, and the binary steps are compared with the better of the two.

--paper follows the protocol of Khan, Huttunen and Boutellier: ` + fmt.Sprint(paperImages) + ` random
images, one at a time, each a new one; making the images is not counted. The
mean is the paper's figure.

With --json, one object per device: model, device, detail, batch, runs,
median_us, min_us, p90_us, mean_us, macs, binary_macs (for one image),
macs_per_s, peak_macs_per_s (CPU), steps (name, kind, output, median_us, share,
macs, binary; not with --paper).`,
		Example: `  bcnn bench --model vehiclenet
  bcnn bench --model vehiclenet --device all --paper --json
  bcnn bench --model model.onnx --batch 16 --threads 2`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case flags.MaxBatch < 1:
				return usagef("--batch %d: want at least 1", flags.MaxBatch)
			case flags.runs < 1:
				return usagef("--runs %d: want at least 1", flags.runs)
			case flags.Threads < 0:
				return usagef("--threads %d: want at least 1, or 0 for all", flags.Threads)
			case flags.paper && (cmd.Flags().Changed("batch") || cmd.Flags().Changed("runs")):
				return usagef("--paper sets --batch and --runs itself")
			}
			if flags.paper {
				flags.MaxBatch, flags.runs = 1, paperImages
			}
			net, err := loadModel(model)
			if err != nil {
				return err
			}
			plan, err := bcnn.Lower(net)
			if err != nil {
				return err
			}
			devices, err := openDevices(device)
			if err != nil {
				return err
			}
			for i, dev := range devices {
				result, err := bench(cmd.Context(), dev, plan, flags, env.progress(dev.Info().ID))
				if err != nil {
					return err
				}
				result.Model = model
				if asJSON {
					err = env.out.json(result)
				} else {
					if i > 0 {
						env.out.printf("\n")
					}
					printBench(env.out, result)
					err = env.out.err
				}
				if err != nil {
					return err
				}
			}
			return nil
		},
	}
	modelFlag(cmd, &model, defaultModel, "embedded model, .bcnn or .onnx file")
	deviceFlag(cmd, &device, "all")
	cmd.Flags().IntVar(&flags.MaxBatch, "batch", 1, "images per run")
	cmd.Flags().IntVar(&flags.runs, "runs", 200, "number of timed runs")
	cmd.Flags().IntVar(&flags.Threads, "threads", 0, "CPU threads; 0 means all that the process may use")
	cmd.Flags().StringVar(&flags.ISA, "isa", "", "CPU instruction set (default the best)")
	cmd.Flags().StringVar(&flags.Variant, "variant", "", "GPU kernels: a (the paper's), b (direct), on CUDA c (tensor cores) or f (one launch); default the fastest")
	cmd.Flags().BoolVar(&flags.paper, "paper", false, "follow the paper's protocol")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per device")
	return cmd
}

func bench(ctx context.Context, dev backend.Device, plan *bcnn.Plan, flags benchFlags, progress func(done, total int)) (benchResult, error) {
	info := dev.Info()
	result := benchResult{Device: info.ID, Detail: info.Detail, Batch: flags.MaxBatch, Runs: flags.runs}
	if flags.ISA != "" {
		result.Detail += ", --isa " + flags.ISA
	}
	if flags.Threads != 0 {
		result.Detail += fmt.Sprintf(", --threads %d", flags.Threads)
	}
	measurePeak := func() error {
		meter, ok := dev.(backend.PeakMeter)
		if !ok {
			return nil
		}
		peak, err := meter.Peak(flags.Options)
		result.Peak = max(result.Peak, peak)
		return err
	}
	if err := measurePeak(); err != nil {
		return result, err
	}
	r, err := newRunner(ctx, dev, plan, flags.Options)
	if err != nil {
		return result, err
	}
	defer r.Close()
	took, err := timeRuns(ctx, r, flags.MaxBatch, flags.runs, flags.paper, progress)
	if err != nil {
		return result, err
	}
	if !flags.paper {
		if result.Steps, err = timeSteps(ctx, dev, plan, flags.Options, flags.runs); err != nil {
			return result, err
		}
	}
	if err := measurePeak(); err != nil {
		return result, err
	}

	for _, s := range plan.Steps {
		n := macs(plan, s)
		result.MACs += n
		if isBinary(plan, s) {
			result.BinaryMACs += n
		}
	}
	result.Median, result.Min = micros(took.quantile(0.5)), micros(took.quantile(0))
	result.P90, result.Mean = micros(took.quantile(0.9)), micros(took.mean())
	result.Rate = float64(result.MACs) * float64(result.Batch) / result.Median * 1e6
	return result, nil
}

func printBench(out *output, b benchResult) {
	out.printf("%s on %s (%s), %s of %s\n", b.Model, b.Device, b.Detail,
		quantity(b.Runs, "run", "runs"), quantity(b.Batch, "image", "images"))
	out.printf("median %.1f µs, min %.1f µs, p90 %.1f µs, mean %.1f µs; %.1f images/s; %.2f GMAC/s\n",
		b.Median, b.Min, b.P90, b.Mean, float64(b.Batch)/b.Median*1e6, b.Rate/1e9)
	if b.Peak > 0 {
		out.printf("peak of the arithmetic alone: %.2f GMAC/s\n", b.Peak/1e9)
	}
	if len(b.Steps) == 0 {
		return
	}
	out.printf("\n")
	rows := []string{"step\tkind\toutput\tmedian µs\tshare\tGMAC/s\tof peak"}
	for _, s := range b.Steps {
		rate, fraction := "", ""
		if s.MACs > 0 && s.Median > 0 {
			r := float64(s.MACs) * float64(b.Batch) / s.Median * 1e6
			rate = fmt.Sprintf("%.2f", r/1e9)
			if s.Binary && b.Peak > 0 {
				fraction = fmt.Sprintf("%.0f %%", 100*r/b.Peak)
			}
		}
		rows = append(rows, fmt.Sprintf("%s\t%s\t%s\t%.1f\t%.1f %%\t%s\t%s",
			s.Name, s.Kind, s.Output, s.Median, 100*s.Share, rate, fraction))
	}
	out.table(rows)
}
