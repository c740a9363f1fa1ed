package measure

import (
	"fmt"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
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

// kindOf names the kind of a step, and the precision of what it multiplies.
func (s StepTime) kindOf() string {
	if s.Precision == 0 {
		return s.Kind
	}
	return fmt.Sprintf("%s, %v", s.Kind, s.Precision)
}

// kindOf names the kind of the operator as those of steps are, which are binary.
func (o OperatorResult) kindOf() string {
	switch o.Operator.Op.(type) {
	case bcnn.Conv2D:
		return StepTime{Kind: "conv", Precision: plan.Binary}.kindOf()
	case bcnn.Dense:
		return StepTime{Kind: "dense", Precision: plan.Binary}.kindOf()
	case bcnn.MaxPool:
		return "maxpool"
	}
	return "operator" // of another version
}

// ModelCharts draws the times of a model on devices, with numbers of threads and
// batches: the whole runs, then their steps. All are the shortest times but for marks of
// the steps, which are medians. Where any run has more than one image the times are those for one.
func ModelCharts(results []ModelResult) []chart.Chart {
	if len(results) == 0 {
		return nil
	}
	longest, perImage, threads, models := 0.0, "", false, false
	for _, r := range results {
		longest = max(longest, max(r.Median, r.Mean, r.sum())/float64(r.Batch))
		threads = threads || r.Threads != results[0].Threads
		models = models || r.Model != results[0].Model
		if r.Batch > 1 {
			perImage = " per image"
		}
	}
	unit, title := unitOf(longest), results[0].Model
	if models {
		title = "Models"
	}
	whole := chart.Chart{Title: title + ": the shortest whole run, and its steps", Axis: unit.name + perImage, Mark: "whole run"}
	steps := chart.Chart{Title: title + ": each step, the shortest of its runs", Axis: unit.name + perImage, Mark: "median", Ticks: true}
	for _, r := range results {
		name, full := r.labels(models, threads, perImage != "")
		value := func(micros float64) float64 { return micros / float64(r.Batch) * unit.factor }
		total := chart.Bar{
			Label: name, Mark: value(r.Min),
			Note: fmt.Sprintf("%.4g %s, median %.4g", value(r.Min), unit.name, value(r.Median)),
		}
		for _, s := range r.Steps {
			total.Parts = append(total.Parts, part(value(s.Min), s.kindOf()))
		}
		if len(r.Steps) == 0 { // the paper's protocol, whose figure is the mean
			total.Parts = []chart.Part{part(value(r.Mean), wholeRuns)}
			total.Note += fmt.Sprintf(", mean %.4g", value(r.Mean))
			if r.Transfers {
				total.Note += fmt.Sprintf(" with transfers, kernels alone %.4g", value(r.Kernels))
			}
		}
		if warning := r.Busy(); warning != "" {
			total.Note += "; " + warning
		}
		if len(whole.Panels) == 0 {
			whole.Panels = []chart.Panel{{}}
		}
		whole.Panels[0].Bars = append(whole.Panels[0].Bars, total)
		if len(r.Steps) == 0 {
			continue
		}
		panel := chart.Panel{Title: fmt.Sprintf("%s: steps %.4g %s together", full, value(r.sum()), unit.name)}
		for _, s := range r.Steps {
			note := fmt.Sprintf("%.4g %s, %.1f %%", value(s.Min), unit.name, 100*s.Share)
			if s.Fraction > 0 {
				note += fmt.Sprintf(", %.0f %% of peak (%s)", 100*s.Fraction, s.Bound)
			}
			panel.Bars = append(panel.Bars, chart.Bar{
				Label: s.Name, Note: note, Mark: value(s.Median), Parts: []chart.Part{part(value(s.Min), s.kindOf())},
			})
		}
		steps.Panels = append(steps.Panels, panel)
	}
	charts := []chart.Chart{whole, steps}
	if len(steps.Panels) == 0 {
		charts = charts[:1]
		charts[0].Title = title + ": whole runs"
	}
	charts[len(charts)-1].Footer = origins(results, func(r ModelResult) (string, Origin) { return r.Device, r.Origin })
	return charts
}

// labels returns the name of a bar and the title of a panel, which tell models, numbers of threads and
// batches apart if there are several.
func (m ModelResult) labels(models, threads, batches bool) (name, full string) {
	name, full = m.Device, fmt.Sprintf("%s (%s)", m.Device, m.Detail)
	if models {
		name, full = m.Model+" on "+name, m.Model+" on "+full
	}
	if threads && m.Threads > 0 {
		name += ", " + threadCount(m.Threads)
	}
	if batches {
		name += fmt.Sprintf(", batch of %d", m.Batch)
		full += fmt.Sprintf(", batch of %d", m.Batch)
	}
	return name, full
}

// sum is the sum of the shortest times of the steps.
func (m ModelResult) sum() float64 {
	sum := 0.0
	for _, s := range m.Steps {
		sum += s.Min
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
		longest = max(longest, r.Median*1e3)
		known = known && (r.Fraction > 0 || r.Outran)
	}
	unit := unitOf(longest)
	fraction := chart.Chart{Title: "Operators: the shortest run compared with the least possible time", Axis: "% of peak", Least: 100}
	took := chart.Chart{
		Title: "Operators: the shortest run", Axis: unit.name, Mark: "median", Ticks: true,
		Footer: origins(results, func(r OperatorResult) (string, Origin) { return r.Device, r.Origin }),
	}
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
			kind := r.kindOf()
			note := fmt.Sprintf("%.0f %% (%s)", 100*r.Fraction, r.Bound)
			if r.Outran {
				note = "unknown: faster than the peak loops"
			}
			fractions = append(fractions, chart.Bar{
				Label: r.Op, Note: note,
				Parts: []chart.Part{part(100*r.Fraction, kind)},
			})
			value := func(millis float64) float64 { return millis * 1e3 * unit.factor }
			note = fmt.Sprintf("%.4g %s", value(r.Min), unit.name)
			if warning := r.Busy(); warning != "" {
				note += "; " + warning
			}
			times = append(times, chart.Bar{
				Label: r.Op, Note: note, Mark: value(r.Median), Parts: []chart.Part{part(value(r.Min), kind)},
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

// threadCount is empty where a device has no choice of threads.
func threadCount(n int) string {
	if n == 0 {
		return ""
	}
	return text.Count(n, "thread")
}
