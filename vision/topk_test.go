package vision

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTopK(t *testing.T) {
	logits := []float32{1, 3, 3, -2, 2}
	labels := []string{"a", "b", "c", "d", "e"}
	sum := 0.0
	for _, v := range logits {
		sum += math.Exp(float64(v))
	}
	for _, c := range []struct {
		k    int
		want []int
	}{{1, []int{1}}, {2, []int{1, 2}}, {4, []int{1, 2, 4, 0}}, {5, []int{1, 2, 4, 0, 3}}, {9, []int{1, 2, 4, 0, 3}}, {0, []int{}}, {-1, []int{}}} {
		got := TopK(logits, labels, c.k)
		require.Len(t, got, len(c.want))
		for i, index := range c.want {
			require.Equal(t, index, got[i].Index)
			require.Equal(t, labels[index], got[i].Label)
			require.InDelta(t, math.Exp(float64(logits[index]))/sum, got[i].Probability, 1e-15)
		}
	}
	require.Equal(t, "4", TopK(logits, nil, 3)[2].Label)
	require.Empty(t, TopK(nil, nil, 3))
	// Probabilities of 0 keep the order of the logits.
	require.Equal(t, []int{2, 1, 0}, func() (order []int) {
		for _, c := range TopK([]float32{-3000, -2000, 0}, nil, 3) {
			order = append(order, c.Index)
		}
		return order
	}())
}

// Results are the objects that the command writes.
func TestJSON(t *testing.T) {
	r := Result{Class: Class{Label: "7", Index: 7, Probability: 0.5}, Logits: []float32{1, -2}, Time: 1500 * time.Nanosecond}
	data, err := json.Marshal(&r)
	require.NoError(t, err)
	require.JSONEq(t, `{"label": "7", "index": 7, "probability": 0.5, "logits": [1, -2], "us": 1.5}`, string(data))
}
