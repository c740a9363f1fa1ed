package main

import (
	"fmt"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/zoo"
	"github.com/bitcnn/bitcnn/internal/chart"
	"github.com/bitcnn/bitcnn/internal/measure"
	"github.com/bitcnn/bitcnn/internal/text"
)

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
	if warning := b.Busy(); warning != "" {
		out.printf("%s\n", warning)
	}
	if b.Zeros > 0 {
		out.printf("%g %% of the image values are 0\n", 100*b.Zeros)
	}
	if b.Fresh && b.Transfers {
		out.printf("times include transfers, which the paper excludes; kernels alone: mean %.1f µs\n", b.Kernels)
	}
	if b.Peak > 0 {
		times := ""
		if b.PeakOfOne > 0 {
			times = fmt.Sprintf(", %.2f times that of one thread", b.Peak/b.PeakOfOne)
		}
		out.printf("arithmetic peak: %.2f GMAC/s%s\n", b.Peak/1e9, times)
	}
	if share := 100 * b.Floor / b.Min; share >= 1 {
		out.printf("lower bound with all binary products at peak: %.1f µs, %.0f %% of the shortest run\n", b.Floor, share)
	}
	printOrigin(out, b.Origin)
	if len(b.Steps) == 0 {
		return
	}
	out.printf("\n")
	rows := []row{"step\tkind\toutput\tmin µs\tshare\tGMAC/s\tof peak\tbound"}
	for _, s := range b.Steps {
		rate := ""
		if s.MACs > 0 && s.Min > 0 {
			rate = fmt.Sprintf("%.2f", float64(s.MACs)*float64(b.Batch)/s.Min/1e3)
		}
		rows = append(rows, rowf("%s\t%s\t%s\t%.1f\t%.1f %%\t%s\t%s\t%s",
			s.Name, s.Kind, s.Output, s.Min, 100*s.Share, rate, ofPeak(s.Fraction, s.Outran), s.Bound))
	}
	out.table(rows)
	printOutran(out, b.Steps, func(s measure.StepTime) bool { return s.Outran })
	printPlanes(out, b.Steps)
}

// ofPeak shows a fraction of the peak: nothing where there is none, and ? for what was quicker
// than the loops ever were.
func ofPeak(fraction float64, outran bool) string {
	switch {
	case outran:
		return "?"
	case fraction > 0:
		return fmt.Sprintf("%.0f %%", 100*fraction)
	}
	return ""
}

// printOutran says what a ? means, where there is one.
func printOutran[R any](out *output, list []R, outran func(R) bool) {
	if slices.ContainsFunc(list, outran) {
		out.printf("?: faster than the peak loops, as the machine was busy whenever they ran\n")
	}
}

// printPlanes says of which data the times of steps on levels are.
func printPlanes(out *output, steps []measure.StepTime) {
	n, least, most := 0, 1.0, 0.0
	for _, s := range steps {
		if s.PlaneRows != nil {
			n, least, most = n+1, min(least, *s.PlaneRows), max(most, *s.PlaneRows)
		}
	}
	if n == 0 {
		return
	}
	share := fmt.Sprintf("%.0f %%", 100*least)
	if most > least {
		share += fmt.Sprintf(" to %.0f %%", 100*most)
	}
	out.printf("%s read several bit planes; %s of the rows of the lower planes have a set bit here", text.Count(n, "step"), share)
	if least < 1 {
		out.printf(";\nthe others need no products, so images with more zeros may take longer (--zeros)")
	}
	out.printf("\n")
}

// printMedians puts the medians of several models side by side.
func printMedians(out *output, results []measure.ModelResult) {
	var models, places []string
	cells := map[[2]string]string{}
	for _, r := range results {
		if !slices.Contains(models, r.Model) {
			models = append(models, r.Model)
		}
		if !slices.Contains(places, r.Where()) {
			places = append(places, r.Where())
		}
		cells[[2]string{r.Model, r.Where()}] = fmt.Sprintf("%.1f", r.Median)
	}
	line := "median µs"
	for _, p := range places {
		line += "\t" + text.Escape(p)
	}
	rows := []row{row(line)}
	for _, m := range models {
		line := text.Escape(m)
		for _, p := range places {
			line += "\t" + cells[[2]string{m, p}]
		}
		rows = append(rows, row(line))
	}
	out.printf("\n")
	out.table(rows)
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
	out.printf("%s, batch of %d; minimum and median of up to %s, rates from the minimum\n\n", first.Where(), first.Batch,
		text.Count(slices.MaxFunc(results, func(a, b measure.OperatorResult) int { return a.Runs - b.Runs }).Runs, "run"))
	rows := []row{"operator\tshape\tmin ms\tmedian ms\tGMAC/s\tGB/s\tof peak\tbound"}
	noisy := 0
	for _, r := range results {
		if r.Busy() != "" {
			noisy++
		}
		rate := ""
		if r.MACs > 0 {
			rate = fmt.Sprintf("%.1f", r.MACRate/1e9)
		}
		rows = append(rows, rowf("%s\t%s\t%.4f\t%.4f\t%s\t%.1f\t%s\t%s",
			r.Op, describeOp(r.Operator), r.Min, r.Median, rate, r.ByteRate/1e9, ofPeak(r.Fraction, r.Outran), r.Bound))
	}
	out.table(rows)
	printOutran(out, results, func(r measure.OperatorResult) bool { return r.Outran })
	if first.Peak > 0 {
		out.printf("arithmetic peak: %.1f GMAC/s (median of its measurements: %.0f %%)\n", first.Peak/1e9, 100*first.Steady)
	}
	if noisy > 0 {
		out.printf("the machine was busy while %s ran\n", text.Count(noisy, "operator"))
	}
	printOrigin(out, first.Origin)
}

// printOrigin prints a line, where there is something to say.
func printOrigin(out *output, o measure.Origin) {
	if s := o.String(); s != "" {
		out.printf("%s\n", s)
	}
}
