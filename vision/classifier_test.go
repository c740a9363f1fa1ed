package vision

import (
	"context"
	"image"
	"image/color"
	"math"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/ref"
	"github.com/bitcnn/bitcnn/vehiclenet"
)

// reference classifies a photo with the reference executor.
func reference(t *testing.T, n *bcnn.Network, img image.Image) []float32 {
	plan, err := lower.Network(t.Context(), n, lower.Options{})
	require.NoError(t, err)
	in := bcnn.NewTensor(bcnn.Uint8, 1, n.Inputs[0].Shape)
	copy(in.U8, pixels(t, img, n.Inputs[0]))
	out, err := ref.Run(t.Context(), plan, in, nil)
	require.NoError(t, err)
	return out.F32
}

// open opens a session on the CPU.
func open(t testing.TB, model *bitcnn.Model, opts bitcnn.Options) *bitcnn.Session {
	opts.Device = "cpu"
	s, err := bitcnn.Open(t.Context(), model, opts)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func classifier(t testing.TB, s *bitcnn.Session, opts Options) *Classifier {
	c, err := NewClassifier(s, opts)
	require.NoError(t, err)
	return c
}

func TestClassifierGivesTheLogitsOfTheReference(t *testing.T) {
	photos := []image.Image{noise(100, 100), noise(40, 60)}
	for _, scheme := range vehiclenet.InputSchemes {
		n, err := vehiclenet.Topology(scheme, 6, 3)
		require.NoError(t, err)
		n.Labels = []string{"a", "b", "c", "d", "e", "f"}
		c := classifier(t, open(t, n, bitcnn.Options{}), Options{})
		for _, img := range photos {
			want := reference(t, n, img)
			got, err := c.Classify(t.Context(), img)
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
	c := classifier(t, open(t, n, bitcnn.Options{Threads: 2, MaxBatch: 2}), Options{})
	const photos = 3
	var images [photos]image.Image
	var want [photos][]float32
	for i := range want {
		images[i] = noise(100+i, 100)
		r, err := c.Classify(t.Context(), images[i])
		require.NoError(t, err)
		want[i] = r.Logits
	}
	var wg sync.WaitGroup
	for i := range want {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for range 3 {
				r, err := c.Classify(t.Context(), images[i])
				assert.NoError(t, err)
				assert.Equal(t, want[i], r.Logits, "photo %d", i)
				all, err := c.ClassifyBatch(t.Context(), images[:])
				assert.NoError(t, err)
				for j, r := range all {
					assert.Equal(t, want[j], r.Logits, "photo %d of a batch", j)
				}
			}
		}()
	}
	wg.Wait()
}

// session is one with something done before each run.
type session struct {
	*bitcnn.Session
	before func(in []bcnn.Tensor)
}

func (s session) Run(ctx context.Context, out, in []bcnn.Tensor) error {
	s.before(in)
	return s.Session.Run(ctx, out, in)
}

func TestClassifyBatchUsesMaxBatch(t *testing.T) {
	n, err := vehiclenet.Topology(vehiclenet.GreyThreshold, 5, 7)
	require.NoError(t, err)
	var runs []int
	for _, c := range []struct{ maxBatch, images int }{{0, 3}, {1, 2}, {4, 3}, {4, 4}, {4, 9}, {2, 0}} {
		runs = nil
		s := open(t, n, bitcnn.Options{MaxBatch: c.maxBatch})
		classifier, err := newClassifier(session{s, func(in []bcnn.Tensor) { runs = append(runs, in[0].N) }}, Options{})
		require.NoError(t, err)
		most := max(1, c.maxBatch)
		var images []image.Image
		for i := range c.images {
			images = append(images, noise(90+i, 70))
		}
		results, err := classifier.ClassifyBatch(t.Context(), images)
		require.NoError(t, err)
		require.Len(t, results, c.images)
		for i, r := range results {
			one, err := classifier.Classify(t.Context(), images[i])
			require.NoError(t, err)
			require.Equal(t, one.Logits, r.Logits)
			require.Equal(t, one.Class, r.Class)
			require.Positive(t, r.Time)
		}
		var want []int
		for left := c.images; left > 0; left -= most {
			want = append(want, min(left, most))
		}
		for range c.images {
			want = append(want, 1)
		}
		require.Equal(t, want, runs)
	}
}

// watched is an image that tells when it is read.
type watched struct {
	image.Image
	read chan struct{}
	once *sync.Once
}

func (w watched) At(x, y int) color.Color {
	w.once.Do(func() { close(w.read) })
	return w.Image.At(x, y)
}

// While the session is busy with one image, others are prepared.
func TestClassifierPreparesWhileTheDeviceIsBusy(t *testing.T) {
	n, err := vehiclenet.Topology(vehiclenet.LBP, 6, 5)
	require.NoError(t, err)
	busy, release := make(chan struct{}), make(chan struct{})
	var held atomic.Bool
	c, err := newClassifier(session{open(t, n, bitcnn.Options{}), func([]bcnn.Tensor) {
		if held.CompareAndSwap(false, true) {
			close(busy)
			<-release
		}
	}}, Options{})
	require.NoError(t, err)
	var wg sync.WaitGroup
	classify := func(ctx context.Context, img image.Image, want error) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			_, err := c.Classify(ctx, img)
			assert.ErrorIs(t, err, want)
		}()
	}
	classify(t.Context(), noise(96, 96), nil)
	<-busy
	for range 2 {
		w := watched{noise(150, 150), make(chan struct{}), &sync.Once{}}
		classify(t.Context(), w, nil)
		<-w.read
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = c.Classify(ctx, noise(96, 96))
	require.ErrorIs(t, err, context.Canceled)
	close(release)
	wg.Wait()
}

func TestClassifierErrors(t *testing.T) {
	n, err := vehiclenet.Topology(vehiclenet.LBP, 6, 5)
	require.NoError(t, err)
	s := open(t, n, bitcnn.Options{})
	c := classifier(t, s, Options{})
	_, err = c.Classify(t.Context(), nil)
	require.ErrorContains(t, err, "the image is nil")
	_, err = c.Classify(t.Context(), image.NewGray(image.Rectangle{}))
	require.ErrorContains(t, err, "empty")
	_, err = c.ClassifyBatch(t.Context(), []image.Image{noise(96, 96), nil})
	require.ErrorContains(t, err, "image 1: the image is nil")
	_, err = c.ClassifyTensor(t.Context(), bcnn.NewTensor(bcnn.Float32, 1, n.Inputs[0].Shape))
	require.ErrorContains(t, err, "tensor is float32")
	require.ErrorIs(t, err, bitcnn.ErrShape)
	for name, in := range map[string]bcnn.Tensor{
		"nothing":   {},
		"negative":  {DType: bcnn.Uint8, N: -1, Shape: n.Inputs[0].Shape},
		"too short": {DType: bcnn.Uint8, N: 1, Shape: n.Inputs[0].Shape, U8: make([]uint8, 5)},
		"many":      {DType: bcnn.Uint8, N: 3, Shape: n.Inputs[0].Shape, U8: make([]uint8, 5)}, // more than MaxBatch
	} {
		_, err = c.ClassifyTensor(t.Context(), in)
		require.ErrorIs(t, err, bitcnn.ErrShape, name)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = c.Classify(ended, noise(96, 96))
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, s.Close())
	_, err = c.Classify(t.Context(), noise(96, 96))
	require.ErrorIs(t, err, bitcnn.ErrClosed)

	_, err = NewClassifier(s, Options{Mean: []float32{1}})
	require.ErrorContains(t, err, "this one reads bytes")
	_, err = NewClassifier(nil, Options{})
	require.ErrorContains(t, err, "got nil")

	vector := &bcnn.Network{Name: "vector", Inputs: []bcnn.Input{{Shape: bcnn.Shape{H: 1, W: 1, C: 9}, DType: bcnn.Float32}}}
	vector.Append("dense", bcnn.Dense{Out: 2, Weights: bcnn.Weights{F32: make([]float32, 18)}})
	_, err = NewClassifier(open(t, vector, bitcnn.Options{}), Options{})
	require.ErrorContains(t, err, "not an image")
}

// A network that reads floats, and whose outputs are those of single pixels.
func TestClassifierOfFloats(t *testing.T) {
	n := &bcnn.Network{Name: "pixels", Inputs: []bcnn.Input{{Shape: bcnn.Shape{H: 1, W: 2, C: 3}, DType: bcnn.Float32}}}
	identity := make([]float32, 36)
	for i := range 6 {
		identity[7*i] = 1
	}
	n.Append("dense", bcnn.Dense{Out: 6, Weights: bcnn.Weights{F32: identity}})
	s := open(t, n, bitcnn.Options{})
	c := classifier(t, s, Options{Mean: []float32{10, 20, 30}, Scale: []float32{0.5}})
	img := image.NewNRGBA(image.Rect(0, 0, 2, 1))
	copy(img.Pix, []uint8{1, 2, 3, 255, 200, 100, 50, 255})
	r, err := c.Classify(t.Context(), img)
	require.NoError(t, err)
	require.Equal(t, []float32{-4.5, -9, -13.5, 95, 40, 10}, r.Logits)
	require.Equal(t, "3", r.Label, "the network has no labels")
	require.Equal(t, []string{"0", "1", "2", "3", "4", "5"}, c.Labels())
	require.Equal(t, []int{3, 4}, []int{r.Top(2)[0].Index, r.Top(2)[1].Index})

	// An overflow is no class.
	huge := classifier(t, s, Options{Scale: []float32{math.MaxFloat32}})
	_, err = huge.Classify(t.Context(), img)
	require.ErrorContains(t, err, "output 0 of the model is NaN")
}
