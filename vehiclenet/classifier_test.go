package vehiclenet

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
)

// reference classifies a photo with the reference executor.
func reference(t *testing.T, n *bcnn.Network, img image.Image) []float32 {
	plan, err := bcnn.Lower(t.Context(), n, bcnn.LowerOptions{})
	require.NoError(t, err)
	in := bcnn.NewTensor(bcnn.Uint8, 1, n.Input.Shape)
	require.NoError(t, Pixels(in.U8, img, n.Input))
	out, err := ref.Run(plan, in, nil)
	require.NoError(t, err)
	return out.F32
}

func TestTopologyHasThePapersShapes(t *testing.T) {
	for _, scheme := range InputSchemes {
		n, err := Topology(scheme, 4, 1)
		require.NoError(t, err)
		shapes, err := n.Shapes()
		require.NoError(t, err)
		got := map[string]bcnn.Shape{}
		for i, l := range n.Layers {
			got[l.Name] = shapes[i]
		}
		require.Equal(t, bcnn.Shape{H: 96, W: 96, C: 32}, got["conv1"])
		require.Equal(t, bcnn.Shape{H: 48, W: 48, C: 32}, got["conv2"])
		require.Equal(t, bcnn.Shape{H: 24, W: 24, C: 32}, got["sign2"])
		require.Equal(t, bcnn.Shape{H: 1, W: 1, C: 18432}, got["flatten"])
		require.Equal(t, bcnn.Shape{H: 1, W: 1, C: 100}, got["dense4"])
		require.Equal(t, bcnn.Shape{H: 1, W: 1, C: 4}, shapes[len(shapes)-1])

		same, err := Topology(scheme, 4, 1)
		require.NoError(t, err)
		require.Equal(t, n, same)
		other, err := Topology(scheme, 4, 2)
		require.NoError(t, err)
		require.NotEqual(t, n, other)
	}
	_, err := Topology("sepia", 4, 1)
	require.ErrorContains(t, err, `"sepia"`)
	_, err = Topology(LBP, 0, 1)
	require.ErrorContains(t, err, "0 classes")
}

func TestClassifierGivesTheLogitsOfTheReference(t *testing.T) {
	dev := cpu.Device()
	photos := []image.Image{noise(100, 100), noise(40, 60)}
	for _, scheme := range InputSchemes {
		n, err := Topology(scheme, 6, 3)
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
	n, err := Topology(RGBThreshold, 6, 4)
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
	n, err := Topology(LBP, 6, 5)
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

func TestEmbeddedModels(t *testing.T) {
	schemes := map[string]InputScheme{
		"vehiclenet": NoBinarization, "vehiclenet-rgb": RGBThreshold, "vehiclenet-grey": GreyThreshold, "vehiclenet-lbp": LBP,
	}
	require.Len(t, Models(), len(schemes)+1)
	entries, err := files.ReadDir("models")
	require.NoError(t, err)
	require.Len(t, entries, len(Models()))
	kinds := func(n *bcnn.Network) (kinds []string, shapes []bcnn.Shape) {
		plan, err := bcnn.Lower(t.Context(), n, bcnn.LowerOptions{})
		require.NoError(t, err)
		for _, s := range plan.Steps {
			kinds = append(kinds, s.Kind())
			shapes = append(shapes, plan.Tensors[s.Out].Shape)
			if c, ok := s.Op.(*bcnn.ConvStep); ok {
				require.Empty(t, c.WhyFloat, s.Name)
				require.NotNil(t, c.Bits, s.Name)
			}
		}
		return kinds, shapes
	}
	for _, name := range Models() {
		t.Run(name, func(t *testing.T) {
			n, err := Load(t.Context(), name)
			require.NoError(t, err)
			gotKinds, gotShapes := kinds(n)
			if name == "digits" {
				require.Equal(t, bcnn.Shape{H: 28, W: 28, C: 1}, n.Input.Shape)
				require.Equal(t, []string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}, n.Labels)
				return
			}
			require.Equal(t, []string{"bike", "car", "juggernaut", "minibus", "pickup", "truck"}, n.Labels)
			require.Equal(t, rgb96, n.Input)
			same, err := Topology(schemes[name], 6, 1)
			require.NoError(t, err)
			wantKinds, wantShapes := kinds(same)
			require.Equal(t, wantKinds, gotKinds)
			require.Equal(t, wantShapes, gotShapes)
		})
	}
	_, err = Load(t.Context(), "planenet")
	require.ErrorContains(t, err, `"planenet", there are vehiclenet, `)
	_, err = Load(t.Context(), "../models/vehiclenet")
	require.Error(t, err)
}

func TestNewUsesTheEmbeddedVehicleNet(t *testing.T) {
	c, err := New(t.Context(), cpu.Device())
	require.NoError(t, err)
	defer c.Close()
	n, err := Load(t.Context(), "vehiclenet")
	require.NoError(t, err)
	img := noise(100, 100)
	got, err := c.Classify(context.Background(), img)
	require.NoError(t, err)
	require.Equal(t, reference(t, n, img), got.Logits)
	require.Contains(t, n.Labels, got.Label)
}
