package bcnn

import (
	"math"

	"github.com/bitcnn/bitcnn/internal/fpmode"
)

// Probabilities returns the softmax of the logits, in float64.
func Probabilities(logits []float32) []float64 {
	defer fpmode.Enter().Leave()
	p := make([]float64, len(logits))
	top, sum := largest(logits), 0.0
	for i, v := range logits {
		p[i] = math.Exp(float64(v) - top) // no overflow
		sum += p[i]
	}
	for i := range p {
		p[i] /= sum
	}
	return p
}

// LogProbabilities returns the logarithms of the softmax of the logits, in float64: also
// of probabilities that are too small for a number.
func LogProbabilities(logits []float32) []float64 {
	p := make([]float64, len(logits))
	top, sum := largest(logits), 0.0
	for _, v := range logits {
		sum += math.Exp(float64(v) - top)
	}
	for i, v := range logits {
		p[i] = float64(v) - top - math.Log(sum)
	}
	return p
}

func largest(logits []float32) float64 {
	top := math.Inf(-1)
	for _, v := range logits {
		top = max(top, float64(v))
	}
	return top
}
