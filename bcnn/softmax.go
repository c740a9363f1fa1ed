package bcnn

import "math"

// Probabilities returns the softmax of the logits, in float64.
func Probabilities(logits []float32) []float64 {
	p := make([]float64, len(logits))
	top := math.Inf(-1)
	for _, v := range logits {
		top = max(top, float64(v))
	}
	sum := 0.0
	for i, v := range logits {
		p[i] = math.Exp(float64(v) - top) // no overflow
		sum += p[i]
	}
	for i := range p {
		p[i] /= sum
	}
	return p
}
