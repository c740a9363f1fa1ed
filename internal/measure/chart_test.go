package measure

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/bcnn/zoo"
	"github.com/bitcnn/bitcnn/internal/chart"
)

func TestModelCharts(t *testing.T) {
	require.Empty(t, ModelCharts(nil))
	fast := ModelResult{
		Model: "net", Device: "cpu", Detail: "avx2", Threads: 1, Batch: 1, Median: 50, Min: 40,
		Steps: []StepTime{
			{Name: "in", Kind: "conv", Median: 35, Min: 30, Share: 0.75, MACs: 5, Precision: 8},
			{Name: "conv", Kind: "conv", Median: 9, Min: 8, Share: 0.2, MACs: 5, Precision: 1, Fraction: 0.5, Bound: Memory},
			{Name: "sign", Kind: "sign", Median: 3, Min: 2, Share: 0.05},
		},
	}
	slow := fast
	slow.Device, slow.Batch, slow.Threads, slow.Median = "opencl:0", 10, 2, 100
	slow.Origin = Origin{"GPU", "v1", time.Date(2026, 11, 23, 1, 2, 3, 4, time.UTC)}
	charts := ModelCharts([]ModelResult{fast, slow})
	require.Len(t, charts, 2)
	require.Equal(t, "µs per image", charts[0].Axis)
	require.Equal(t, []chart.Panel{{Bars: []chart.Bar{
		{
			Label: "cpu, 1 thread, batch of 1", Note: "40 µs, median 50", Mark: 40,
			Parts: []chart.Part{part(30, "conv, 8-bit"), part(8, "conv, binary"), part(2, "sign")},
		},
		{
			Label: "opencl:0, 2 threads, batch of 10", Mark: 4,
			Note:  "4 µs, median 10; the machine was busy: the median is 2.5 times the shortest run",
			Parts: []chart.Part{part(3, "conv, 8-bit"), part(0.8, "conv, binary"), part(0.2, "sign")},
		},
	}}}, charts[0].Panels)
	require.Equal(t, "opencl:0 (avx2), batch of 10: steps 4 µs together", charts[1].Panels[1].Title)
	require.Equal(t, chart.Bar{
		Label: "conv", Note: "8 µs, 20.0 %, 50 % of peak (memory)", Mark: 9, Parts: []chart.Part{part(8, "conv, binary")},
	}, charts[1].Panels[0].Bars[1])
	require.Empty(t, charts[0].Footer)
	require.Equal(t, []string{"opencl:0: GPU, v1, 2026-11-23"}, charts[1].Footer)

	slow.Median, slow.Min, slow.Mean, slow.Kernels, slow.Transfers = 25e3, 24e3, 30e3, 7e3, true // in milliseconds
	slow.Steps, slow.Batch, slow.Threads = nil, 1, 1
	charts = ModelCharts([]ModelResult{slow})
	require.Equal(t, []chart.Chart{{
		Title: "net: whole runs", Axis: "ms", Mark: "whole run", Footer: []string{"opencl:0: GPU, v1, 2026-11-23"},
		Panels: []chart.Panel{{Bars: []chart.Bar{{
			Label: "opencl:0", Mark: 24,
			Note:  "24 ms, median 25, mean 30 with transfers, kernels alone 7",
			Parts: []chart.Part{part(30, "mean of the whole runs")},
		}}}},
	}}, charts)
}

func TestOperatorCharts(t *testing.T) {
	require.Empty(t, OperatorCharts(nil))
	list := []OperatorResult{
		{Op: "a", Device: "cpu", ISA: "avx2", Threads: 1, Batch: 1, Min: 0.5, Fraction: 0.9, Bound: Arithmetic, Operator: zoo.Operator{Op: bcnn.Conv2D{}}},
		{Op: "b", Device: "cpu", ISA: "avx2", Threads: 1, Batch: 1, Min: 0.25, Fraction: 0.3, Bound: Memory, Operator: zoo.Operator{Op: bcnn.Dense{}}},
		{Op: "a", Device: "cpu", ISA: "avx2", Threads: 2, Batch: 1, Min: 0.125, Fraction: 0.8, Bound: Memory, Operator: zoo.Operator{Op: bcnn.Dense{}}},
	}
	charts := OperatorCharts(list)
	require.Len(t, charts, 2)
	require.Equal(t, 100.0, charts[0].Least)
	require.Equal(t, []string{"cpu (avx2), 1 thread, batch of 1", "cpu (avx2), 2 threads, batch of 1"},
		[]string{charts[1].Panels[0].Title, charts[1].Panels[1].Title})
	require.Equal(t, []chart.Bar{
		{Label: "a", Note: "90 % (arithmetic)", Parts: []chart.Part{part(90, "conv, binary")}},
		{Label: "b", Note: "30 % (memory)", Parts: []chart.Part{part(30, "dense, binary")}},
	}, charts[0].Panels[0].Bars)
	require.Equal(t, []chart.Bar{{Label: "a", Note: "125 µs", Parts: []chart.Part{part(125, "dense, binary")}}}, charts[1].Panels[1].Bars)

	list[0].Outran, list[0].Fraction, list[0].Bound = true, 0, ""
	require.Equal(t, chart.Bar{Label: "a", Note: "unknown: faster than the peak loops", Parts: []chart.Part{part(0, "conv, binary")}},
		OperatorCharts(list)[0].Panels[0].Bars[0])
	list[1].Fraction = 0 // a device that cannot measure its peak
	require.Equal(t, charts[1:], OperatorCharts(list))
}

// Bars of several models name theirs.
func TestModelChartsOfSeveral(t *testing.T) {
	list := []ModelResult{
		{Model: "a", Device: "cpu", Detail: "avx2", Threads: 1, Batch: 1, Median: 5, Min: 4, Steps: []StepTime{{Name: "s", Kind: "sign", Min: 4, Median: 4}}},
		{Model: "b", Device: "cpu", Detail: "avx2", Threads: 1, Batch: 1, Median: 5, Min: 4, Steps: []StepTime{{Name: "s", Kind: "sign", Min: 4, Median: 4}}},
	}
	charts := ModelCharts(list)
	require.Equal(t, "Models: the shortest whole run, and its steps", charts[0].Title)
	require.Equal(t, "b on cpu", charts[0].Panels[0].Bars[1].Label)
	require.Equal(t, "b on cpu (avx2): steps 4 µs together", charts[1].Panels[1].Title)
	require.False(t, charts[0].Ticks)
	require.True(t, charts[1].Ticks, "medians and whole runs have other marks")
}

// A kind has one colour wherever it is drawn, and no other has it.
func TestColours(t *testing.T) {
	seen := map[string]string{unknown: "another version's"}
	for _, kind := range kinds {
		colour := colourOf(kind)
		require.Regexp(t, "^#[0-9a-f]{6}$", colour)
		require.NotContains(t, seen, colour, kind)
		seen[colour] = kind
	}
	require.Equal(t, unknown, colourOf("of another version"))
	require.Equal(t, colourOf(StepTime{Kind: "conv", Precision: plan.Binary}.kindOf()), colourOf(OperatorResult{Operator: zoo.Operator{Op: bcnn.Conv2D{}}}.kindOf()))
	for _, name := range []string{"binarynet", "cnv-1w2a", "densenet28"} {
		net, err := zoo.New(name, Seed)
		require.NoError(t, err)
		p, err := lower.Network(t.Context(), net, lower.Options{})
		require.NoError(t, err)
		steps := make([]StepTime, len(p.Steps))
		for i, s := range p.Steps {
			steps[i].Kind = s.Kind()
		}
		count(steps, plan.Summarize(net, p))
		for _, s := range steps {
			require.Contains(t, kinds, s.kindOf())
		}
	}
}
