package measure

import (
	"fmt"
	"slices"

	"github.com/bitcnn/bitcnn/internal/chart"
	"github.com/bitcnn/bitcnn/internal/text"
)

// scaled is a unit of time, and how many of it a microsecond is.
type scaled struct {
	name   string
	factor float64
}

// unitOf returns the unit for times up to so many microseconds.
func unitOf(micros float64) scaled {
	switch {
	case micros < 1e4:
		return scaled{"µs", 1}
	case micros < 1e7:
		return scaled{"ms", 1e-3}
	}
	return scaled{"s", 1e-6}
}

// kindOf names the kind of a step, and what it sums.
func (s StepTime) kindOf() string {
	switch {
	case s.Binary:
		return s.Kind + " of ±1"
	case s.MACs > 0:
		return s.Kind + " of bytes or floats"
	}
	return s.Kind
}

// ModelCharts draws the times of a model on devices, with numbers of threads and
// batches: the whole runs, then their steps. Where any run has more than one image
// the times are those for one.
func ModelCharts(results []ModelResult) []chart.Chart {
	if len(results) == 0 {
		return nil
	}
	longest, perImage, threads := 0.0, "", false
	for _, r := range results {
		longest = max(longest, max(r.Median, r.Mean, r.sum())/float64(r.Batch))
		threads = threads || r.Threads != results[0].Threads
		if r.Batch > 1 {
			perImage = " per image"
		}
	}
	unit := unitOf(longest)
	whole := chart.Chart{Title: results[0].Model + ": whole runs and their steps", Axis: unit.name + perImage, Mark: "median of the whole runs"}
	steps := chart.Chart{Title: results[0].Model + ": each step, median", Axis: unit.name + perImage}
	for _, r := range results {
		name, full := r.Device, fmt.Sprintf("%s (%s)", r.Device, r.Detail)
		if threads {
			name += ", " + threadCount(r.Threads)
		}
		if perImage != "" {
			name += fmt.Sprintf(", batch of %d", r.Batch)
			full += fmt.Sprintf(", batch of %d", r.Batch)
		}
		value := func(micros float64) float64 { return micros / float64(r.Batch) * unit.factor }
		total := chart.Bar{
			Label: name, Mark: value(r.Median),
			Note: fmt.Sprintf("total %.4g %s, least %.4g; %.1f images/s", value(r.Median), unit.name, value(r.Min), float64(r.Batch)/r.Median*1e6),
		}
		panel := chart.Panel{Title: full}
		for _, s := range r.Steps {
			part := chart.Part{Length: value(s.Median), Kind: s.kindOf()}
			note := fmt.Sprintf("%.4g %s, %.1f %%", value(s.Median), unit.name, 100*s.Share)
			if s.Fraction > 0 {
				note += fmt.Sprintf(", %.0f %% of peak (%s)", 100*s.Fraction, s.Bound)
			}
			total.Parts = append(total.Parts, part)
			panel.Bars = append(panel.Bars, chart.Bar{Label: s.Name, Note: note, Parts: []chart.Part{part}})
		}
		if len(r.Steps) == 0 { // the paper's protocol, whose figure is the mean
			total.Parts = []chart.Part{{Length: value(r.Mean), Kind: "mean of the whole runs"}}
			total.Note += fmt.Sprintf("; mean %.4g %s", value(r.Mean), unit.name)
			if r.Transfers {
				total.Note += fmt.Sprintf(" with transfers, kernels alone %.4g", value(r.Kernels))
			}
		} else {
			panel.Title += fmt.Sprintf(": steps %.4g %s together", value(r.sum()), unit.name)
			steps.Panels = append(steps.Panels, panel)
		}
		if len(whole.Panels) == 0 {
			whole.Panels = []chart.Panel{{}}
		}
		whole.Panels[0].Bars = append(whole.Panels[0].Bars, total)
	}
	if len(steps.Panels) == 0 {
		whole.Title = results[0].Model + ": whole runs"
		return []chart.Chart{whole}
	}
	return []chart.Chart{whole, steps}
}

// sum is the sum of the medians of the steps.
func (m ModelResult) sum() float64 {
	sum := 0.0
	for _, s := range m.Steps {
		sum += s.Median
	}
	return sum
}

// OperatorCharts draws the times of operators, and which fraction of its peak each
// device reached, where that is known.
func OperatorCharts(results []OperatorResult) []chart.Chart {
	if len(results) == 0 {
		return nil
	}
	longest, known := 0.0, true
	for _, r := range results {
		longest = max(longest, r.Min*1e3)
		known = known && r.Fraction > 0
	}
	unit := unitOf(longest)
	fraction := chart.Chart{Title: "Operators: the shortest run beside the least time possible", Axis: "% of peak", Least: 100}
	took := chart.Chart{Title: "Operators: the shortest run", Axis: unit.name}
	panelOf := func(r OperatorResult) string {
		return fmt.Sprintf("%s, batch of %d", r.Where(), r.Batch)
	}
	for len(results) > 0 {
		title := panelOf(results[0])
		n := slices.IndexFunc(results, func(r OperatorResult) bool { return panelOf(r) != title })
		if n < 0 {
			n = len(results)
		}
		var fractions, times []chart.Bar
		for _, r := range results[:n] {
			kind := r.Operator.Op.Kind()
			fractions = append(fractions, chart.Bar{
				Label: r.Op, Note: fmt.Sprintf("%.0f %% (%s)", 100*r.Fraction, r.Bound),
				Parts: []chart.Part{{Length: 100 * r.Fraction, Kind: kind}},
			})
			micros := r.Min * 1e3
			times = append(times, chart.Bar{
				Label: r.Op, Note: fmt.Sprintf("%.4g %s", micros*unit.factor, unit.name),
				Parts: []chart.Part{{Length: micros * unit.factor, Kind: kind}},
			})
		}
		fraction.Panels = append(fraction.Panels, chart.Panel{Title: title, Bars: fractions})
		took.Panels = append(took.Panels, chart.Panel{Title: title, Bars: times})
		results = results[n:]
	}
	if !known {
		return []chart.Chart{took}
	}
	return []chart.Chart{fraction, took}
}

func threadCount(n int) string {
	if n == 0 {
		return "all threads"
	}
	return text.Count(n, "thread")
}
