package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/zoo"
)

const (
	// allOps is the value of --ops alone.
	allOps = "all"
	// opRounds is the number of times that the loops of limits take turns with
	// an operator, so that both see the same clock and the same load.
	opRounds = 5
	// opTime is about how long an operator is timed in all its rounds.
	opTime = time.Second
)

// opResult is a line of bench --ops --json.
type opResult struct {
	Op      string  `json:"op"`
	Group   string  `json:"group"`
	Device  string  `json:"device"`
	ISA     string  `json:"isa"`
	Threads int     `json:"threads"`
	Batch   int     `json:"batch"`
	Runs    int     `json:"runs"`
	Median  float64 `json:"ms"`
	Min     float64 `json:"min_ms"`
	MACs    int64   `json:"macs"` // of the batch
	Bytes   int64   `json:"bytes"`
	// Rates of the median.
	MACRate  float64 `json:"mac_per_s"`
	ByteRate float64 `json:"byte_per_s"`
	// What the device reaches at best, and which fraction of it the shortest
	// run reached; CPU only.
	Peak      float64 `json:"peak_mac_per_s,omitempty"`
	Bandwidth float64 `json:"peak_byte_per_s,omitempty"`
	Fraction  float64 `json:"peak_fraction,omitempty"`
	Bound     string  `json:"bound,omitempty"`

	shape      string
	threadless bool // the device offers no choice of threads
	samples    []sample
}

// where names the device and what it was told to use.
func (r opResult) where() string {
	if r.threadless {
		return fmt.Sprintf("%s (%s)", r.Device, r.ISA)
	}
	return fmt.Sprintf("%s (%s), %s", r.Device, r.ISA, threadCount(r.Threads))
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

// benchOps times operators on the devices and prints the results.
func benchOps(ctx context.Context, env *environment, devices []*backend.Device, ops []zoo.Operator, flags benchFlags) error {
	if flags.format == formatBenchstat {
		printBenchstatHeader(env.out)
	}
	var charts []chart
	for i, dev := range devices {
		if flags.oneThread {
			flags.Threads = min(1, dev.Info().MaxThreads)
		}
		progress := env.progress(dev.Info().ID)
		lim := newLimits(dev, flags.Options)
		var results []opResult
		for j, o := range ops {
			r, err := benchOp(ctx, dev, o, flags, lim)
			if err != nil {
				return err
			}
			progress(j+1, len(ops))
			switch flags.format {
			case formatJSON:
				if err := env.out.json(r); err != nil {
					return err
				}
			case formatBenchstat:
				r.printSamples(env.out)
			}
			if env.out.err != nil {
				return env.out.err
			}
			results = append(results, r)
		}
		switch flags.format {
		case formatSVG:
			charts = append(charts, opChart(results))
		case formatTable:
			if i > 0 {
				env.out.printf("\n")
			}
			printOps(env.out, results)
		}
	}
	if flags.format == formatSVG {
		printSVG(env.out, charts)
	}
	return env.out.err
}

// benchOp times one operator: its step alone, in turn with the peak loops, of
// which the best counts.
func benchOp(ctx context.Context, dev *backend.Device, o zoo.Operator, flags benchFlags, lim *limits) (opResult, error) {
	info := dev.Info()
	result := opResult{
		Op: o.Name, Group: o.Group, Device: info.ID, ISA: isaOf(info, flags.Options), Threads: flags.Threads, Batch: flags.MaxBatch,
		shape: describeOp(o), threadless: info.MaxThreads == 0,
	}
	net := o.Network(seed)
	plan, err := bcnn.Lower(ctx, net, bcnn.LowerOptions{})
	if err != nil {
		return result, err
	}
	timed := slices.IndexFunc(plan.Steps, func(s bcnn.Step) bool {
		return slices.ContainsFunc(s.Layers, func(l int) bool { return net.Layers[l].Name == zoo.OperatorLayer })
	})
	var took times
	opts := flags.Options
	opts.Timed = func(step int, _ string, d time.Duration) {
		if step == timed {
			took = append(took, d)
		}
	}
	r, err := newRunner(ctx, dev, plan, opts)
	if err != nil {
		return result, err
	}
	defer r.Close()
	randomImages(r.in, newRand(seed))
	took = took[:0] // the first run is for warming up

	work := workOf(plan, timed, flags.MaxBatch)
	for round := range opRounds {
		if err := lim.update(); err != nil {
			return result, err
		}
		bandwidth, err := lim.bandwidth(work.bytes)
		if err != nil {
			return result, err
		}
		result.Peak, result.Bandwidth = lim.peak, max(result.Bandwidth, bandwidth)
		end := time.Now().Add(opTime / opRounds)
		for n := 0; len(took) < flags.runs*(round+1)/opRounds && (n < 1 || time.Now().Before(end)); n++ {
			if _, err := r.run(ctx); err != nil {
				return result, err
			}
		}
	}

	result.Runs, result.samples = len(took), took.samples(opRounds)
	seconds, shortest := took.quantile(0.5).Seconds(), took.quantile(0).Seconds()
	result.Median, result.Min = seconds*1e3, shortest*1e3
	result.MACs, result.Bytes = work.macs, work.bytes
	if shortest > 0 {
		result.MACRate, result.ByteRate = float64(work.macs)/seconds, float64(work.bytes)/seconds
		least, by := work.bound(result.Peak, result.Bandwidth)
		result.Fraction, result.Bound = least/shortest, by
	}
	return result, nil
}

// isaOf returns the instruction set that the options choose, or what comes next
// to one on a device that has no choice.
func isaOf(info backend.Info, opts backend.Options) string {
	if opts.ISA != "" {
		return opts.ISA
	}
	if len(info.ISAs) > 0 {
		return info.ISAs[0]
	}
	return info.Detail
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

func printOps(out *output, results []opResult) {
	first := results[0]
	out.printf("%s, batch of %d; median and minimum of up to %s\n\n", first.where(), first.Batch,
		quantity(slices.MaxFunc(results, func(a, b opResult) int { return a.Runs - b.Runs }).Runs, "run", "runs"))
	rows := []row{"operator\tshape\tmedian ms\tmin ms\tGMAC/s\tGB/s\tof peak\tbound"}
	for _, r := range results {
		rate, fraction := "", ""
		if r.MACs > 0 {
			rate = fmt.Sprintf("%.1f", r.MACRate/1e9)
		}
		if r.Fraction > 0 {
			fraction = fmt.Sprintf("%.0f %%", 100*r.Fraction)
		}
		rows = append(rows, rowf("%s\t%s\t%.4f\t%.4f\t%s\t%.1f\t%s\t%s",
			r.Op, r.shape, r.Median, r.Min, rate, r.ByteRate/1e9, fraction, r.Bound))
	}
	out.table(rows)
	peak := 0.0
	for _, r := range results {
		peak = max(peak, r.Peak)
	}
	if peak > 0 {
		out.printf("peak of the arithmetic alone: %.1f GMAC/s\n", peak/1e9)
	}
}

func threadCount(n int) string {
	if n == 0 {
		return "all threads"
	}
	return quantity(n, "thread", "threads")
}
