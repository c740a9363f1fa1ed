package vision

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/bitcnn/bitcnn/bcnn"
)

// Class is one of the classes that a network tells apart.
type Class struct {
	Label       string  `json:"label"`       // its name; the index in decimals if the network names none
	Index       int     `json:"index"`       // of the output
	Probability float64 `json:"probability"` // softmax of the outputs
}

// TopK returns the k likeliest classes, or all if there are fewer, the likeliest
// first and the first of equals first. The logits must be finite.
func TopK(logits []float32, labels []string, k int) []Class {
	classes := make([]Class, len(logits))
	for i, p := range bcnn.Probabilities(logits) {
		classes[i] = Class{Index: i, Label: label(labels, i), Probability: p}
	}
	// Different logits may have the same probability.
	slices.SortStableFunc(classes, func(a, b Class) int { return cmp.Compare(logits[b.Index], logits[a.Index]) })
	return classes[:min(max(0, k), len(classes))]
}

// Labels returns the names of n outputs as Class has them.
func Labels(labels []string, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = label(labels, i)
	}
	return names
}

func label(labels []string, i int) string {
	if i < len(labels) {
		return labels[i]
	}
	return strconv.Itoa(i)
}
