package vision

import (
	"context"
	"image"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/backend/cpu"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/ref"
	"github.com/bitcnn/bitcnn/vehiclenet"
)

// reference classifies a photo with the reference executor.
func reference(t *testing.T, n *bcnn.Network, img image.Image) []float32 {
	plan, err := bcnn.Lower(t.Context(), n, bcnn.LowerOptions{})
	require.NoError(t, err)
	in := bcnn.NewTensor(bcnn.Uint8, 1, n.Input.Shape)
	require.NoError(t, Pixels(in.U8, img, n.Input))
	out, err := ref.Run(t.Context(), plan, in, nil)
	require.NoError(t, err)
	return out.F32
}

func TestClassifierGivesTheLogitsOfTheReference(t *testing.T) {
	dev := cpu.Device()
	photos := []image.Image{noise(100, 100), noise(40, 60)}
	for _, scheme := range vehiclenet.InputSchemes {
		n, err := vehiclenet.Topology(scheme, 6, 3)
		require.NoError(t, err)
		n.Labels = []string{"a", "b", "c", "d", "e", "f"}
		c, err := NewClassifier(t.Context(), dev, n, backend.Options{})
		require.NoError(t, err)
		defer c.Close()
		for _, img := range photos {
			want := reference(t, n, img)
			got, err := c.Classify(context.Background(), img)
			require.NoError(t, err)
			require.Equal(t, want, got.Logits)
			require.Equal(t, n.Labels[got.Index], got.Label)
			for i, v := range want {
				require.LessOrEqual(t, v, want[got.Index])
				if v == want[got.Index] {
					require.LessOrEqual(t, got.Index, i, "the first of equals")
				}
			}
			require.Equal(t, bcnn.Probabilities(want)[got.Index], got.Probability)
			require.GreaterOrEqual(t, got.Probability, 1.0/6)
		}
	}
}

func TestClassifierServesSeveralGoroutines(t *testing.T) {
	n, err := vehiclenet.Topology(vehiclenet.RGBThreshold, 6, 4)
	require.NoError(t, err)
	c, err := NewClassifier(t.Context(), cpu.Device(), n, backend.Options{Threads: 2})
	require.NoError(t, err)
	defer c.Close()
	const photos = 2
	var want [photos][]float32
	for i := range want {
		want[i] = reference(t, n, noise(100+i, 100))
	}
	var wg sync.WaitGroup
	for i := range want {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for range 3 {
				r, err := c.Classify(context.Background(), noise(100+i, 100))
				if err != nil {
					t.Errorf("photo %d: %v", i, err)
					return
				}
				for j, v := range r.Logits {
					if v != want[i][j] {
						t.Errorf("photo %d: logit %d is %v, want %v", i, j, v, want[i][j])
					}
				}
			}
		}()
	}
	wg.Wait()
}

func TestClassifierErrors(t *testing.T) {
	dev := cpu.Device()
	n, err := vehiclenet.Topology(vehiclenet.LBP, 6, 5)
	require.NoError(t, err)
	c, err := NewClassifier(t.Context(), dev, n, backend.Options{})
	require.NoError(t, err)
	r, err := c.Classify(context.Background(), noise(96, 96))
	require.NoError(t, err)
	require.Empty(t, r.Label, "the network has no labels")
	_, err = c.Classify(context.Background(), image.NewGray(image.Rectangle{}))
	require.ErrorContains(t, err, "empty")
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = c.Classify(ended, noise(96, 96))
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, c.Close())
	require.NoError(t, c.Close())
	_, err = c.Classify(context.Background(), noise(96, 96))
	require.ErrorIs(t, err, backend.ErrClosed)

	bad := *n
	bad.Labels = []string{"one"}
	_, err = NewClassifier(t.Context(), dev, &bad, backend.Options{})
	require.ErrorContains(t, err, "labels")

	numbers := &bcnn.Network{Name: "numbers", Input: bcnn.Input{Shape: bcnn.Shape{H: 1, W: 1, C: 3}, DType: bcnn.Float32}}
	numbers.Append("dense", bcnn.Dense{Out: 2, Weights: bcnn.Weights{F32: make([]float32, 6)}})
	c, err = NewClassifier(t.Context(), dev, numbers, backend.Options{})
	require.NoError(t, err)
	defer c.Close()
	_, err = c.Classify(context.Background(), noise(96, 96))
	require.ErrorContains(t, err, "not an image")
}
