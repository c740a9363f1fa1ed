package bitcnn

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend/driver"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/ref"
)

// endsNet adds a vector to what it makes of an image, and gives that and the sum.
func endsNet() *Model {
	n := binaryNet()
	n.Inputs[0].Source = &bcnn.Source{Name: "photo", Dims: []int{6, 5}}
	n.Inputs = append(n.Inputs, bcnn.Input{Shape: Shape{H: 1, W: 1, C: 4}, DType: Float32})
	dense := len(n.Layers) - 1
	n.Append("sum", bcnn.Add{}, dense, bcnn.NetworkInput-1)
	n.Outputs = []int{dense + 1, dense}
	return n
}

// Several inputs and outputs go through a session, from any goroutine, alone and in
// batches with others.
func TestSeveralEnds(t *testing.T) {
	model := endsNet()
	plan, err := lower.Network(t.Context(), model, lower.Options{})
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(1, 2))
	type question struct{ in, want []Tensor }
	var asked []question
	for n := 1; n <= 4; n++ {
		image, vector := NewTensor(Uint8, n, model.Inputs[0].Shape), NewTensor(Float32, n, Shape{H: 1, W: 1, C: 4})
		for i := range image.U8 {
			image.U8[i] = uint8(rng.Uint32())
		}
		for i := range vector.F32 {
			vector.F32[i] = float32(rng.NormFloat64())
		}
		in := []Tensor{image, vector}
		want, err := ref.RunAll(t.Context(), plan, in, nil)
		require.NoError(t, err)
		asked = append(asked, question{in, want})
	}
	for _, device := range Devices() {
		if device.Kind == driver.Emulated {
			continue // parity has seen it
		}
		for _, delay := range []time.Duration{0, time.Microsecond} {
			t.Run(fmt.Sprint(device.ID, delay), func(t *testing.T) {
				s := open(t, model, Options{Device: device.ID, MaxBatch: 4, BatchDelay: delay})
				var names []string
				for _, io := range append(s.Inputs(), s.Outputs()...) {
					names = append(names, fmt.Sprintf("%s %v %v", io.Name, io.DType, io.Shape))
				}
				require.Equal(t, []string{"photo uint8 6×5×1", "input 2 float32 1×1×4", "output float32 1×1×4", "output 2 float32 1×1×4"}, names)
				var wg sync.WaitGroup
				errs := make([]error, 8)
				for g := range errs {
					wg.Go(func() {
						for k := range 8 {
							q := asked[(g+k)%len(asked)]
							out, err := s.Predict(t.Context(), q.in...)
							for i := range q.want {
								if err == nil {
									err = differs(out[i], q.want[i])
								}
							}
							if err != nil {
								errs[g] = err
								return
							}
						}
					})
				}
				wg.Wait()
				for _, err := range errs {
					require.NoError(t, err)
				}
				_, err := s.Predict(t.Context(), asked[0].in[0])
				require.ErrorIs(t, err, ErrShape)
				_, err = s.Predict(t.Context(), asked[0].in[0], asked[1].in[1])
				require.ErrorIs(t, err, ErrShape)
			})
		}
	}
}
