package main

import (
	"encoding/xml"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/bitcnn/bitcnn/internal/text"
)

// Formats of bench.
const (
	formatTable     = "table"
	formatJSON      = "json"
	formatBenchstat = "benchstat"
	formatSVG       = "svg"
)

func benchFormats() []string {
	return []string{formatTable, formatJSON, formatBenchstat, formatSVG}
}

// sample is the mean of a number of runs, a line of benchstat's format.
type sample struct {
	runs int
	mean time.Duration
}

// samples cuts times into at most n parts of equal length.
func (t times) samples(n int) []sample {
	var list []sample
	for n = min(n, len(t)); n > 0; n-- {
		part := t[:len(t)/n]
		t = t[len(part):]
		list = append(list, sample{len(part), part.mean()})
	}
	return list
}

// printBenchstatHeader prints what go test -bench prints first.
func printBenchstatHeader(out *output) {
	out.printf("goos: %s\ngoarch: %s\npkg: github.com/bitcnn/bitcnn/cmd/bcnn\n", runtime.GOOS, runtime.GOARCH)
}

// printSamples prints lines as go test -bench does, for benchstat. The keys are
// pairs of a name and a value.
func printSamples(out *output, name string, keys []any, list []sample, macs int64) {
	for i := 0; i+1 < len(keys); i += 2 {
		value := strings.NewReplacer("/", "_", " ", "_").Replace(fmt.Sprint(keys[i+1]))
		name += fmt.Sprintf("/%v=%s", keys[i], value)
	}
	for _, s := range list {
		out.printf("Benchmark%s\t%d\t%d ns/op", name, s.runs, s.mean.Nanoseconds())
		if macs > 0 && s.mean > 0 {
			out.printf("\t%.2f GMAC/s", float64(macs)/float64(s.mean.Nanoseconds()))
		}
		out.printf("\n")
	}
}

func (b benchResult) printSamples(out *output) {
	printSamples(out, "Model", []any{
		"model", filepath.Base(b.Model), "device", b.Device, "isa", b.isa, "batch", b.Batch,
	}, b.samples, b.MACs*int64(b.Batch))
}

func (r opResult) printSamples(out *output) {
	printSamples(out, "Op", []any{
		"op", r.Op, "device", r.Device, "isa", r.ISA, "threads", r.Threads, "batch", r.Batch,
	}, r.samples, r.MACs)
}

// chart is a list of horizontal bars.
type chart struct {
	title string
	bars  []bar
}

type bar struct {
	label, note string
	length      float64 // of 1
}

func (b benchResult) chart() chart {
	c := chart{title: fmt.Sprintf("%s on %s (%s): median %.1f µs, share of each step", b.Model, b.Device, b.Detail, b.Median)}
	longest := 0.0
	for _, s := range b.Steps {
		longest = max(longest, s.Median)
	}
	for _, s := range b.Steps {
		note := fmt.Sprintf("%.1f µs, %.1f %%", s.Median, 100*s.Share)
		if s.Fraction > 0 {
			note += fmt.Sprintf("; %.0f %% of peak (%s)", 100*s.Fraction, s.Bound)
		}
		c.bars = append(c.bars, bar{s.Name, note, s.Median / max(longest, 1e-9)})
	}
	return c
}

func opChart(results []opResult) chart {
	first := results[0]
	c := chart{title: fmt.Sprintf("operators on %s: fraction of peak", first.where())}
	for _, r := range results {
		c.bars = append(c.bars, bar{r.Op, fmt.Sprintf("%.0f %% (%s), %.4f ms", 100*r.Fraction, r.Bound, r.Median), min(r.Fraction, 1)})
	}
	return c
}

// printSVG draws the charts one below the other.
func printSVG(out *output, charts []chart) {
	const row, font, labels, width, notes = 20, 12, 300, 400, 280
	rows := 0
	for _, c := range charts {
		rows += len(c.bars) + 2
	}
	total, height := labels+width+notes, rows*row
	out.printf(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="%d">`+"\n",
		total, height, total, height, font)
	out.printf(`<rect width="%d" height="%d" fill="white"/>`+"\n", total, height)
	y := 0
	put := func(x int, anchor, style, s string) {
		out.printf(`<text x="%d" y="%d" text-anchor="%s"%s>`, x, y+row*7/10, anchor, style)
		// The only error is the output's, which it keeps.
		_ = xml.EscapeText(out, []byte(text.Escape(s)))
		out.printf("</text>\n")
	}
	for _, c := range charts {
		put(10, "start", ` font-weight="bold"`, c.title)
		y += row
		for _, b := range c.bars {
			put(labels-8, "end", "", b.label)
			out.printf(`<rect x="%d" y="%d" width="%.1f" height="%d" fill="#4477aa"/>`+"\n", labels, y+2, b.length*width, row-4)
			put(labels+width+8, "start", "", b.note)
			y += row
		}
		y += row
	}
	out.printf("</svg>\n")
}
