// Package fakequantize computes OpenVINO's operator FakeQuantize, which its IR has, and ONNX files that NNCF
// exports.
package fakequantize

import (
	"fmt"
	"math"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/internal/f32"
)

// Quantiser is FakeQuantize with numbers: OutLow for what is at most InLow, OutHigh for what is above InHigh,
// and what lies between in Levels equal steps.
type Quantiser struct {
	InLow, InHigh, OutLow, OutHigh float32
	Levels                         int // at least 2
}

// Check refuses numbers that define nothing, or that overflow float32.
func (q Quantiser) Check() error {
	for _, x := range []float32{q.InLow, q.InHigh, q.OutLow, q.OutHigh} {
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
			return fmt.Errorf("a bound of its is %v, want finite numbers", x)
		}
	}
	if q.InLow > q.InHigh {
		return fmt.Errorf("input_low, %v, is above input_high, %v, which is not supported", q.InLow, q.InHigh)
	}
	if math.IsInf(float64(q.InHigh-q.InLow), 0) || math.IsInf(float64(q.OutHigh-q.OutLow), 0) {
		return fmt.Errorf("its bounds are too far apart for float32")
	}
	return nil
}

// Level returns which level x has, in float32 as the operator defines it.
func (q Quantiser) Level(x float32) float32 {
	top := float32(q.Levels - 1)
	switch {
	case x <= q.InLow:
		return 0
	case x > q.InHigh:
		return top
	}
	part := float32(float32(x-q.InLow) / float32(q.InHigh-q.InLow))
	return float32(math.RoundToEven(float64(float32(part * top))))
}

// Of returns what becomes of x.
func (q Quantiser) Of(x float32) float32 {
	switch {
	case x <= q.InLow:
		return q.OutLow
	case x > q.InHigh:
		return q.OutHigh
	}
	part := float32(q.Level(x) / float32(q.Levels-1))
	return float32(part*float32(q.OutHigh-q.OutLow)) + q.OutLow
}

// Threshold returns the least x of a level from 1 on.
func (q Quantiser) Threshold(level int) float32 {
	return f32.Least(func(x float32) bool { return q.Level(x) >= float32(level) })
}

// Below returns the largest x of the lower of two levels.
func (q Quantiser) Below() float32 {
	if q.InLow == q.InHigh {
		return q.InLow
	}
	return math.Nextafter32(q.Threshold(1), float32(math.Inf(-1)))
}

// Step returns how far the levels are apart.
func (q Quantiser) Step() float64 {
	return (float64(q.OutHigh) - float64(q.OutLow)) / float64(q.Levels-1)
}

// Least returns the whole number that stands for the lowest level, so that 0 stands for 0 where
// the numbers have it: then layers behind them sum whole numbers alone.
func (q Quantiser) Least() int {
	scale := q.Step()
	k := math.Round(float64(q.OutLow) / scale)
	const rounding = 1e-7 // of what float32 makes of the bounds
	if !(math.Abs(k) <= float64(bcnn.MaxLevels)) || k+float64(q.Levels)-1 > bcnn.MaxLevels ||
		math.Abs(float64(q.OutLow)-k*scale) > rounding*math.Abs(float64(q.OutLow)) {
		return 0
	}
	return int(k)
}
