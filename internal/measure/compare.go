package measure

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

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
				err = errors.New("impossible times")
			}
			list.Models = append(list.Models, m)
		case kind.Op != "":
			var o OperatorResult
			err = json.Unmarshal(raw, &o)
			if err == nil && (o.Min <= 0 || o.Median < o.Min) {
				err = errors.New("impossible times")
			}
			for _, known := range zoo.Operators() {
				if known.Name == o.Op {
					o.Operator = known
				}
			}
			list.Operators = append(list.Operators, o)
		default:
			err = errors.New("neither a model nor an operator, as 'bcnn bench --json' prints them")
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
	A     Side             `json:"a"`
	B     Side             `json:"b"`
	Ratio float64          `json:"ratio"`
	Steps []StepComparison `json:"steps,omitempty"`
}

// Side is one of two results: what was measured, the shortest time and the median in
// microseconds.
type Side struct {
	Model   string  `json:"model,omitempty"`
	Op      string  `json:"op,omitempty"`
	Device  string  `json:"device"`
	Threads int     `json:"threads"`
	Batch   int     `json:"batch"`
	Min     float64 `json:"min_us"`
	Median  float64 `json:"median_us"`

	model    ModelResult
	operator OperatorResult
}

// StepComparison are the shortest times of a step; one of them is 0 where a result has no
// step of the name.
type StepComparison struct {
	Name  string  `json:"name"`
	A     float64 `json:"a_min_us"`
	B     float64 `json:"b_min_us"`
	Ratio float64 `json:"ratio,omitempty"`
}

// Compare pairs results that agree in what was measured, the device, the number of threads
// and the batch. What is one and the same in all of a file need not be that of the other:
// so two models on the same devices are compared. Others are told as alone.
func Compare(a, b *Results) (pairs []Comparison, alone []string) {
	list := [2][]Side{a.sides(), b.sides()}
	matters := [4]bool{}
	for i := range matters {
		matters[i] = varies(list[0], i) || varies(list[1], i)
	}
	for _, x := range list[0] {
		i := slices.IndexFunc(list[1], func(y Side) bool {
			if (x.Model == "") != (y.Model == "") {
				return false
			}
			for k, m := range matters {
				if m && x.key()[k] != y.key()[k] {
					return false
				}
			}
			return true
		})
		if i < 0 {
			alone = append(alone, "A: "+x.String())
			continue
		}
		y := list[1][i]
		list[1] = slices.Delete(list[1], i, i+1)
		pairs = append(pairs, Comparison{A: x, B: y, Ratio: x.Min / y.Min, Steps: compareSteps(x.model.Steps, y.model.Steps)})
	}
	for _, y := range list[1] {
		alone = append(alone, "B: "+y.String())
	}
	return pairs, alone
}

// varies reports whether part i of the keys is not the same for all.
func varies(list []Side, i int) bool {
	return slices.ContainsFunc(list, func(s Side) bool { return s.key()[i] != list[0].key()[i] })
}

// sides returns the results as sides of comparisons.
func (r *Results) sides() []Side {
	var list []Side
	for _, m := range r.Models {
		list = append(list, Side{Model: m.Model, Device: m.Device, Threads: m.Threads, Batch: m.Batch, Min: m.Min, Median: m.Median, model: m})
	}
	for _, o := range r.Operators {
		list = append(list, Side{Op: o.Op, Device: o.Device, Threads: o.Threads, Batch: o.Batch, Min: o.Min * 1e3, Median: o.Median * 1e3, operator: o})
	}
	return list
}

// key are the parts of a side by which it is paired, in words.
func (s Side) key() [4]string {
	return [4]string{s.Model + s.Op, s.Device, threadCount(s.Threads), fmt.Sprintf("batch of %d", s.Batch)}
}

// Where says on what and how a model was measured.
func (m ModelResult) Where() string {
	key := Side{Device: m.Device, Threads: m.Threads, Batch: m.Batch}.key()
	return parts(key[1:])
}

func (s Side) String() string { return describe(s.key()) }

// Busy says that something else ran on the machine, where the times tell so.
func (s Side) Busy() string {
	if s.Op != "" {
		return s.operator.Busy()
	}
	return s.model.Busy()
}

// String names what was measured: in one word where both sides agree, else as A / B.
func (c Comparison) String() string {
	a, b := c.A.key(), c.B.key()
	for i := range a {
		if a[i] != b[i] {
			a[i] = cmp.Or(a[i], "-") + " / " + cmp.Or(b[i], "-")
		}
	}
	return describe(a)
}

// describe joins the parts of a key.
func describe(key [4]string) string {
	return key[0] + " on " + parts(key[1:])
}

// parts joins those that there are.
func parts(key []string) string {
	return strings.Join(slices.DeleteFunc(slices.Clone(key), func(s string) bool { return s == "" }), ", ")
}

// ComparisonCharts draws both results of each model, then those of the operators.
func ComparisonCharts(pairs []Comparison) []chart.Chart {
	var charts []chart.Chart
	var operators [2][]OperatorResult
	for _, c := range pairs {
		if c.A.Model != "" {
			a, b := c.A.model, c.B.model
			a.Device, b.Device = "A: "+a.Device, "B: "+b.Device
			charts = append(charts, ModelCharts([]ModelResult{a, b})...)
			continue
		}
		a, b := c.A.operator, c.B.operator
		a.Device, b.Device = "A: "+a.Device, "B: "+b.Device
		operators[0], operators[1] = append(operators[0], a), append(operators[1], b)
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
