package measure

import (
	"encoding/csv"
	"io"
	"strconv"
	"time"

	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/internal/text"
)

// column is a column of a CSV file, with what a row has there.
type column[R any] struct {
	name string
	of   func(R) string
}

// modelRow is a whole run, or one of its steps.
type modelRow struct {
	ModelResult
	step *StepTime
}

// whole and step are columns that only whole runs, or only steps, have.
func whole(name string, of func(ModelResult) string) column[modelRow] {
	return both(name, of, func(StepTime) string { return "" })
}

func step(name string, of func(StepTime) string) column[modelRow] {
	return both(name, func(ModelResult) string { return "" }, of)
}

// both is a column in which a step has its own value.
func both(name string, of func(ModelResult) string, ofStep func(StepTime) string) column[modelRow] {
	return column[modelRow]{name, func(r modelRow) string {
		if r.step != nil {
			return ofStep(*r.step)
		}
		return of(r.ModelResult)
	}}
}

var modelColumns = []column[modelRow]{
	{"model", func(r modelRow) string { return text.Escape(r.Model) }},
	{"device", func(r modelRow) string { return text.Escape(r.Device) }},
	{"detail", func(r modelRow) string { return text.Escape(r.Detail) }},
	{"threads", func(r modelRow) string { return strconv.Itoa(r.Threads) }},
	{"batch", func(r modelRow) string { return strconv.Itoa(r.Batch) }},
	{"runs", func(r modelRow) string { return strconv.Itoa(r.Runs) }},
	step("step", func(s StepTime) string { return text.Escape(s.Name) }),
	step("kind", func(s StepTime) string { return s.Kind }),
	step("output", func(s StepTime) string { return s.Output }),
	both("min_us", func(m ModelResult) string { return decimal(m.Min) }, func(s StepTime) string { return decimal(s.Min) }),
	both("median_us", func(m ModelResult) string { return decimal(m.Median) }, func(s StepTime) string { return decimal(s.Median) }),
	whole("p90_us", func(m ModelResult) string { return decimal(m.P90) }),
	whole("mean_us", func(m ModelResult) string { return decimal(m.Mean) }),
	whole("transfers", func(m ModelResult) string { return strconv.FormatBool(m.Transfers) }),
	whole("kernels_us", func(m ModelResult) string { return decimal(m.Kernels) }),
	step("share", func(s StepTime) string { return decimal(s.Share) }),
	both("macs", func(m ModelResult) string { return integer(m.MACs) }, func(s StepTime) string { return integer(s.MACs) }),
	both("binary_macs", func(m ModelResult) string { return integer(m.BinaryMACs) }, func(s StepTime) string {
		if s.Precision != plan.Binary {
			return "0"
		}
		return integer(s.MACs)
	}),
	step("bits", func(s StepTime) string {
		if s.Precision == 0 {
			return ""
		}
		return strconv.Itoa(int(s.Precision))
	}),
	whole("macs_per_s", func(m ModelResult) string { return decimal(m.Rate) }),
	whole("peak_macs_per_s", func(m ModelResult) string { return decimal(m.Peak) }),
	whole("peak_macs_per_s_of_one_thread", func(m ModelResult) string { return decimal(m.PeakOfOne) }),
	whole("peak_steady", func(m ModelResult) string { return decimal(m.Steady) }),
	whole("floor_us", func(m ModelResult) string { return decimal(m.Floor) }),
	step("peak_fraction", func(s StepTime) string { return decimal(s.Fraction) }),
	step("bound", func(s StepTime) string { return s.Bound }),
	step("outran_peak", func(s StepTime) string { return strconv.FormatBool(s.Outran) }),
	step("planes", func(s StepTime) string { return integer(int64(s.Planes)) }),
	step("plane_rows", func(s StepTime) string {
		if s.PlaneRows == nil {
			return ""
		}
		return strconv.FormatFloat(*s.PlaneRows, 'g', -1, 64)
	}),
	{"zeros", func(r modelRow) string { return strconv.FormatFloat(r.Zeros, 'g', -1, 64) }},
	{"processor", func(r modelRow) string { return text.Escape(r.Processor) }},
	{"version", func(r modelRow) string { return text.Escape(r.Version) }},
	{"date", func(r modelRow) string { return dateOf(r.Date) }},
}

var operatorColumns = []column[OperatorResult]{
	{"op", func(o OperatorResult) string { return text.Escape(o.Op) }},
	{"group", func(o OperatorResult) string { return text.Escape(o.Group) }},
	{"device", func(o OperatorResult) string { return text.Escape(o.Device) }},
	{"isa", func(o OperatorResult) string { return text.Escape(o.ISA) }},
	{"threads", func(o OperatorResult) string { return strconv.Itoa(o.Threads) }},
	{"batch", func(o OperatorResult) string { return strconv.Itoa(o.Batch) }},
	{"runs", func(o OperatorResult) string { return strconv.Itoa(o.Runs) }},
	{"min_ms", func(o OperatorResult) string { return decimal(o.Min) }},
	{"ms", func(o OperatorResult) string { return decimal(o.Median) }},
	{"macs", func(o OperatorResult) string { return integer(o.MACs) }},
	{"bytes", func(o OperatorResult) string { return integer(o.Bytes) }},
	{"mac_per_s", func(o OperatorResult) string { return decimal(o.MACRate) }},
	{"byte_per_s", func(o OperatorResult) string { return decimal(o.ByteRate) }},
	{"peak_mac_per_s", func(o OperatorResult) string { return decimal(o.Peak) }},
	{"peak_byte_per_s", func(o OperatorResult) string { return decimal(o.Bandwidth) }},
	{"peak_steady", func(o OperatorResult) string { return decimal(o.Steady) }},
	{"peak_fraction", func(o OperatorResult) string { return decimal(o.Fraction) }},
	{"bound", func(o OperatorResult) string { return o.Bound }},
	{"processor", func(o OperatorResult) string { return text.Escape(o.Processor) }},
	{"version", func(o OperatorResult) string { return text.Escape(o.Version) }},
	{"date", func(o OperatorResult) string { return dateOf(o.Date) }},
}

// WriteModelsCSV writes a line for each whole run, whose step is empty, and one for each of
// its steps.
func WriteModelsCSV(w io.Writer, results []ModelResult) error {
	var rows []modelRow
	for _, r := range results {
		rows = append(rows, modelRow{ModelResult: r})
		for i := range r.Steps {
			rows = append(rows, modelRow{r, &r.Steps[i]})
		}
	}
	return writeCSV(w, modelColumns, rows)
}

// WriteOperatorsCSV writes a line for each operator.
func WriteOperatorsCSV(w io.Writer, results []OperatorResult) error {
	return writeCSV(w, operatorColumns, results)
}

// comparedRow are a whole run of both sides, or one of the steps.
type comparedRow struct {
	Comparison
	step StepComparison
}

// WriteComparisonsCSV writes a line for each pair, whose step is empty, and one for each of
// the steps.
func WriteComparisonsCSV(w io.Writer, pairs []Comparison) error {
	var columns []column[comparedRow]
	for i, side := range []string{"a_", "b_"} {
		of := func(r comparedRow) Side { return []Side{r.A, r.B}[i] }
		columns = append(columns,
			column[comparedRow]{side + "model", func(r comparedRow) string { return text.Escape(of(r).Model) }},
			column[comparedRow]{side + "op", func(r comparedRow) string { return text.Escape(of(r).Op) }},
			column[comparedRow]{side + "device", func(r comparedRow) string { return text.Escape(of(r).Device) }},
			column[comparedRow]{side + "threads", func(r comparedRow) string { return strconv.Itoa(of(r).Threads) }},
			column[comparedRow]{side + "batch", func(r comparedRow) string { return strconv.Itoa(of(r).Batch) }},
		)
	}
	columns = append(columns,
		column[comparedRow]{"step", func(r comparedRow) string { return text.Escape(r.step.Name) }},
		column[comparedRow]{"a_min_us", func(r comparedRow) string { return decimal(r.step.A) }},
		column[comparedRow]{"b_min_us", func(r comparedRow) string { return decimal(r.step.B) }},
		column[comparedRow]{"ratio", func(r comparedRow) string { return decimal(r.step.Ratio) }},
	)
	var rows []comparedRow
	for _, p := range pairs {
		rows = append(rows, comparedRow{p, StepComparison{A: p.A.Min, B: p.B.Min, Ratio: p.Ratio}})
		for _, s := range p.Steps {
			rows = append(rows, comparedRow{p, s})
		}
	}
	return writeCSV(w, columns, rows)
}

func writeCSV[R any](w io.Writer, columns []column[R], rows []R) error {
	out := csv.NewWriter(w)
	line := make([]string, len(columns))
	for i, c := range columns {
		line[i] = c.name
	}
	// Errors are those of Flush.
	_ = out.Write(line)
	for _, r := range rows {
		for i, c := range columns {
			line[i] = c.of(r)
		}
		_ = out.Write(line)
	}
	out.Flush()
	return out.Error()
}

// decimal is empty where there is no value.
func decimal(v float64) string {
	if v == 0 {
		return ""
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

func integer(n int64) string { return strconv.FormatInt(n, 10) }

func dateOf(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format(time.RFC3339)
}
