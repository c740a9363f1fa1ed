package measure

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn/zoo"
	"github.com/bitcnn/bitcnn/internal/chart"
)

// Results are what bench --json has printed, of models or of operators.
type Results struct {
	Models    []ModelResult
	Operators []OperatorResult
}

// maxBytes is what is read of a file; a result of a large network takes 20 KB.
const maxBytes = 64 << 20

// Read reads the lines of bench --json.
func Read(r io.Reader) (*Results, error) {
	list := &Results{}
	d := json.NewDecoder(io.LimitReader(r, maxBytes))
	for n := 1; ; n++ {
		var raw json.RawMessage
		switch err := d.Decode(&raw); {
		case errors.Is(err, io.EOF) && n > 1:
			return list, nil
		case errors.Is(err, io.EOF):
			return nil, errors.New("no results; 'bcnn bench --json' prints some")
		case err != nil:
			return nil, fmt.Errorf("result %d: %w", n, err)
		}
		var kind struct{ Model, Op string }
		if err := json.Unmarshal(raw, &kind); err != nil {
			return nil, fmt.Errorf("result %d: %w", n, err)
		}
		var err error
		switch {
		case kind.Model != "":
			var m ModelResult
			err = json.Unmarshal(raw, &m)
			if err == nil && (m.Batch < 1 || m.Min <= 0 || m.Median < m.Min) {
				err = errors.New("times that no measurement gives")
			}
			list.Models = append(list.Models, m)
		case kind.Op != "":
			var o OperatorResult
			err = json.Unmarshal(raw, &o)
			if err == nil && (o.Min <= 0 || o.Median < o.Min) {
				err = errors.New("times that no measurement gives")
			}
			for _, known := range zoo.Operators() {
				if known.Name == o.Op {
					o.Operator = known
				}
			}
			list.Operators = append(list.Operators, o)
		default:
			err = errors.New("neither that of a model nor of an operator, as 'bcnn bench --json' prints them")
		}
		if err != nil {
			return nil, fmt.Errorf("result %d: %w", n, err)
		}
	}
}

// Origins returns where and when the results were measured.
func (r *Results) Origins() []string {
	return append(origins(r.Models, func(m ModelResult) (string, Origin) { return m.Device, m.Origin }),
		origins(r.Operators, func(o OperatorResult) (string, Origin) { return o.Device, o.Origin })...)
}

// Comparison is a measurement that two results have, and a line of bench --compare --json.
// The ratio is that of the shortest times: how many times as fast the second is.
type Comparison struct {
	Model   string           `json:"model,omitempty"`
	Op      string           `json:"op,omitempty"`
	Device  string           `json:"device"`
	Threads int              `json:"threads"`
	Batch   int              `json:"batch"`
	A       Times            `json:"a"`
	B       Times            `json:"b"`
	Ratio   float64          `json:"ratio"`
	Steps   []StepComparison `json:"steps,omitempty"`

	models    [2]ModelResult
	operators [2]OperatorResult
}

// Times are the shortest time and the median, in microseconds.
type Times struct {
	Min    float64 `json:"min_us"`
	Median float64 `json:"median_us"`
}

// StepComparison are the shortest times of a step; one of them is 0 where a result has no
// step of the name.
type StepComparison struct {
	Name  string  `json:"name"`
	A     float64 `json:"a_min_us"`
	B     float64 `json:"b_min_us"`
	Ratio float64 `json:"ratio,omitempty"`
}

// Compare pairs the results of the same model or operator, device, number of threads and
// batch; a single result of each is a pair whatever it is of. Others are told as alone.
func Compare(a, b *Results) (pairs []Comparison, alone []string) {
	list := [2][]Comparison{a.all(), b.all()}
	single := len(list[0]) == 1 && len(list[1]) == 1 && (list[0][0].Model == "") == (list[1][0].Model == "")
	for _, x := range list[0] {
		i := slices.IndexFunc(list[1], func(y Comparison) bool { return single || x.key() == y.key() })
		if i < 0 {
			alone = append(alone, "A: "+x.key())
			continue
		}
		y := list[1][i]
		list[1] = slices.Delete(list[1], i, i+1)
		if x.key() != y.key() {
			x.Device = fmt.Sprintf("%s, %s", x.Device, y.key())
		}
		x.B, x.Ratio = y.A, x.A.Min/y.A.Min
		x.models[1], x.operators[1] = y.models[0], y.operators[0]
		x.Steps = compareSteps(x.models[0].Steps, x.models[1].Steps)
		pairs = append(pairs, x)
	}
	for _, y := range list[1] {
		alone = append(alone, "B: "+y.key())
	}
	return pairs, alone
}

// all returns the results as first halves of comparisons.
func (r *Results) all() []Comparison {
	var list []Comparison
	for _, m := range r.Models {
		list = append(list, Comparison{Model: m.Model, Device: m.Device, Threads: m.Threads, Batch: m.Batch,
			A: Times{m.Min, m.Median}, models: [2]ModelResult{m}})
	}
	for _, o := range r.Operators {
		list = append(list, Comparison{Op: o.Op, Device: o.Device, Threads: o.Threads, Batch: o.Batch,
			A: Times{o.Min * 1e3, o.Median * 1e3}, operators: [2]OperatorResult{o}})
	}
	return list
}

func (c Comparison) key() string {
	return fmt.Sprintf("%s%s on %s, %s, batch of %d", c.Model, c.Op, c.Device, threadCount(c.Threads), c.Batch)
}

// String names what was measured.
func (c Comparison) String() string { return c.key() }

// ComparisonCharts draws both results of each model, then those of the operators.
func ComparisonCharts(pairs []Comparison) []chart.Chart {
	var charts []chart.Chart
	var operators [2][]OperatorResult
	for _, c := range pairs {
		if c.Model != "" {
			models := c.models
			models[0].Device, models[1].Device = "A: "+models[0].Device, "B: "+models[1].Device
			charts = append(charts, ModelCharts(models[:])...)
			continue
		}
		for i, o := range c.operators {
			o.Device = []string{"A: ", "B: "}[i] + o.Device
			operators[i] = append(operators[i], o)
		}
	}
	return append(charts, OperatorCharts(slices.Concat(operators[0], operators[1]))...)
}

// compareSteps pairs steps by name, in the order of the first, then those of the second alone.
func compareSteps(a, b []StepTime) []StepComparison {
	var list []StepComparison
	rest := slices.Clone(b)
	for _, x := range a {
		c := StepComparison{Name: x.Name, A: x.Min}
		if i := slices.IndexFunc(rest, func(y StepTime) bool { return y.Name == x.Name }); i >= 0 {
			c.B = rest[i].Min
			if c.B > 0 {
				c.Ratio = c.A / c.B
			}
			rest = slices.Delete(rest, i, i+1)
		}
		list = append(list, c)
	}
	for _, y := range rest {
		list = append(list, StepComparison{Name: y.Name, B: y.Min})
	}
	return list
}
