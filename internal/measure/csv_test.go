package measure

import (
	"encoding/csv"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// cells returns what a CSV file has in its lines, by the names of columns.
func cells(t *testing.T, text string) []map[string]string {
	lines, err := csv.NewReader(strings.NewReader(text)).ReadAll() // as many fields in each
	require.NoError(t, err)
	var list []map[string]string
	for _, line := range lines[1:] {
		row := map[string]string{}
		for i, cell := range line {
			row[lines[0][i]] = cell
		}
		require.Len(t, row, len(line), "names are different")
		list = append(list, row)
	}
	return list
}

func TestCSV(t *testing.T) {
	model := ModelResult{
		Model: `a,"b"`, Device: "cpu", Detail: "avx2, 2 threads", Threads: 2, Batch: 3, Runs: 4, Median: 1.5, Min: 1, MACs: 100, BinaryMACs: 60,
		Steps:  []StepTime{{Name: "conv", Kind: "conv", Min: 0.5, Median: 0.75, MACs: 60, Precision: plan.Binary, Fraction: 0.25, Bound: Memory}},
		Origin: Origin{Date: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)},
	}
	var b strings.Builder
	require.NoError(t, WriteModelsCSV(&b, []ModelResult{model, {Model: "c", Batch: 1}}))
	rows := cells(t, b.String())
	require.Len(t, rows, 3)
	require.Equal(t, []string{"", "conv", ""}, []string{rows[0]["step"], rows[1]["step"], rows[2]["step"]})
	for name, want := range map[string][2]string{
		"model": {`a,"b"`, `a,"b"`}, "threads": {"2", "2"}, "min_us": {"1", "0.5"}, "median_us": {"1.5", "0.75"}, "macs": {"100", "60"},
		"binary_macs": {"60", "60"}, "bits": {"", "1"}, "peak_fraction": {"", "0.25"}, "bound": {"", Memory}, "transfers": {"false", ""}, "date": {"2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"},
	} {
		require.Equal(t, want, [2]string{rows[0][name], rows[1][name]}, name)
	}

	b.Reset()
	require.NoError(t, WriteOperatorsCSV(&b, []OperatorResult{{Op: "c64", ISA: "avx2", Threads: 1, Min: 0.25, Median: 0.5, MACs: 7, Fraction: 0.5}}))
	rows = cells(t, b.String())
	require.Equal(t, []string{"c64", "0.25", "0.5", "0.5"}, []string{rows[0]["op"], rows[0]["min_ms"], rows[0]["ms"], rows[0]["peak_fraction"]})

	b.Reset()
	other := model
	other.Model, other.Min, other.Steps = "x", 4, nil
	pairs, _ := Compare(&Results{Models: []ModelResult{model}}, &Results{Models: []ModelResult{other}})
	require.NoError(t, WriteComparisonsCSV(&b, pairs))
	rows = cells(t, b.String())
	require.Len(t, rows, 2)
	require.Equal(t, []string{`a,"b"`, "x", "", "1", "4", "0.25"}, []string{
		rows[0]["a_model"], rows[0]["b_model"], rows[0]["step"], rows[0]["a_min_us"], rows[0]["b_min_us"], rows[0]["ratio"]})
	require.Equal(t, []string{"conv", "0.5", "", ""}, []string{rows[1]["step"], rows[1]["a_min_us"], rows[1]["b_min_us"], rows[1]["ratio"]})

	full := errors.New("full")
	require.ErrorIs(t, WriteModelsCSV(failing{full}, []ModelResult{model}), full)
}

// Results that differ in what is one and the same in each file are paired; names, devices
// and threads stay apart.
func TestCompare(t *testing.T) {
	of := func(model, device string, threads ...int) *Results {
		r := &Results{}
		for _, n := range threads {
			r.Models = append(r.Models, ModelResult{Model: model, Device: device, Threads: n, Batch: 1, Min: float64(10 * max(n, 1)), Median: 50})
		}
		return r
	}
	names := func(pairs []Comparison) (list []string) {
		for _, p := range pairs {
			list = append(list, p.String())
		}
		return list
	}
	pairs, alone := Compare(of("x", "cpu", 1, 2), of("y", "cpu", 2, 1, 3))
	require.Equal(t, []string{"x / y on cpu, 1 thread, batch of 1", "x / y on cpu, 2 threads, batch of 1"}, names(pairs))
	require.Equal(t, []string{"B: y on cpu, 3 threads, batch of 1"}, alone)
	require.Equal(t, [2]string{"x", "y"}, [2]string{pairs[0].A.Model, pairs[0].B.Model})
	require.Equal(t, 1.0, pairs[0].Ratio)

	pairs, alone = Compare(of("x", "cpu", 4), of("y", "cuda:0", 0))
	require.Equal(t, []string{"x / y on cpu / cuda:0, 4 threads / -, batch of 1"}, names(pairs))
	require.Empty(t, alone)
	require.Equal(t, [2]string{"cpu", "cuda:0"}, [2]string{pairs[0].A.Device, pairs[0].B.Device})

	// Where a file has two models, names matter.
	two := of("x", "cpu", 1)
	two.Models = append(two.Models, of("y", "cpu", 1).Models...)
	pairs, alone = Compare(two, of("y", "cpu", 1))
	require.Equal(t, []string{"y on cpu, 1 thread, batch of 1"}, names(pairs))
	require.Equal(t, []string{"A: x on cpu, 1 thread, batch of 1"}, alone)

	// A model is no operator.
	pairs, alone = Compare(of("x", "cpu", 1), &Results{Operators: []OperatorResult{{Op: "x", Device: "cpu", Threads: 1, Batch: 1, Min: 1, Median: 1}}})
	require.Empty(t, pairs)
	require.Len(t, alone, 2)
}
