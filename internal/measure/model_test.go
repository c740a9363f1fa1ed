package measure

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/backend/backendtest"
	"github.com/bitcnn/bitcnn/backend/driver"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// clockDevice says that step i of its n-th run takes n·(i+1) microseconds, and remembers
// the first bytes of the images.
type clockDevice struct {
	driver.Device
	id     string
	runs   *int
	images map[byte]bool
}

func (d clockDevice) Info() driver.Info { return driver.Info{ID: d.id, MaxBatch: 1} }

func (d clockDevice) Compile(_ context.Context, plan *plan.Plan, _ driver.Config) (driver.Engine, error) {
	return clockEngine{clockDevice: d, steps: len(plan.Steps)}, nil
}

type clockEngine struct {
	driver.Engine
	clockDevice
	steps int
}

func (clockEngine) Run(context.Context, []bcnn.Tensor, []bcnn.Tensor) error { return nil }
func (clockEngine) Explain() []driver.Choice                                { return nil }
func (clockEngine) Close() error                                            { return nil }

func (e clockEngine) RunSteps(_ context.Context, _, in []bcnn.Tensor, after func(int, time.Duration) error) error {
	e.images[in[0].U8[0]] = true
	for i := range e.steps {
		if err := after(i, time.Duration(*e.runs*(i+1))*time.Microsecond); err != nil {
			return err
		}
	}
	*e.runs++
	return nil
}

// TestPaperLeavesTransfersOut: the paper's figure is the time of the kernels, of new
// images in every run.
func TestPaperLeavesTransfersOut(t *testing.T) {
	net := backendtest.VehicleNet(3, 8)
	plan, err := lower.Network(t.Context(), net, lower.Options{})
	require.NoError(t, err)
	require.Len(t, plan.Steps, 5)
	d := clockDevice{id: "gpu:0", runs: new(int), images: make(map[byte]bool)}
	opts := Options{Options: backend.Options{MaxBatch: 1}, Runs: 5, Fresh: true}
	result, err := Model(t.Context(), backend.NewDevice(d), net, plan, opts, func(int, int) {})
	require.NoError(t, err)
	require.Equal(t, 3*15.0, result.Kernels) // the first run is for warming up
	require.Empty(t, result.Steps)
	require.Equal(t, 6, *d.runs)
	require.Greater(t, len(d.images), 3)

	d.id = "cpu" // which transfers nothing
	result, err = Model(t.Context(), backend.NewDevice(d), net, plan, opts, func(int, int) {})
	require.NoError(t, err)
	require.Zero(t, result.Kernels)
	require.Equal(t, 6, *d.runs)
}
