package backend

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend/driver"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/internal/host"
)

func TestOptionsBecomeTheConfig(t *testing.T) {
	timed, tap := func(int, string, time.Duration) {}, func(int, string, bcnn.Tensor) {}
	tapBytes := int64(2*3*2*8 + 2*3*70*4) // of an image
	for _, c := range []struct {
		name string
		opts Options
		edit func(i *driver.Info)
		want driver.Config
	}{
		{"defaults", Options{}, nil,
			driver.Config{MaxBatch: 1, Threads: min(host.Threads(), 6), ISA: "good", ArenaBytes: 1 << 20}},
		{"everything", Options{MaxBatch: 8, Threads: 6, ISA: "plain", Kernels: "direct", Limits: bcnn.Limits{ArenaBytes: 77}}, nil,
			driver.Config{MaxBatch: 8, Threads: 6, ISA: "plain", Kernels: "direct", ArenaBytes: 77}},
		{"no choice", Options{}, func(i *driver.Info) { i.MaxThreads, i.ISAs, i.Kernels = 0, nil, nil },
			driver.Config{MaxBatch: 1, ArenaBytes: 1 << 20}},
		{"timed", Options{Threads: 1, Timed: timed}, nil,
			driver.Config{MaxBatch: 1, Threads: 1, ISA: "good", ArenaBytes: 1 << 20, Stepwise: true}},
		{"tapped", Options{Threads: 1, MaxBatch: 2, Tap: tap}, nil,
			driver.Config{MaxBatch: 2, Threads: 1, ISA: "good", ArenaBytes: 1<<20 - 2*tapBytes, Stepwise: true}},
		{"unknown memory", Options{Threads: 1}, func(i *driver.Info) { i.Memory = 0 },
			driver.Config{MaxBatch: 1, Threads: 1, ISA: "good", ArenaBytes: unknownMemory}},
		{"more than there can be", Options{Threads: 1, Limits: bcnn.Limits{ArenaBytes: math.MaxInt64}}, nil,
			driver.Config{MaxBatch: 1, Threads: 1, ISA: "good", ArenaBytes: maxMemory}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRecorder(t)
			if c.edit != nil {
				c.edit(&r.info)
			}
			compiled(t, r, c.opts)
			require.Equal(t, []driver.Config{c.want}, r.configs)
		})
	}
}

// TestSharedMemory: a device that has no memory of its own gets what is free.
func TestSharedMemory(t *testing.T) {
	for _, kind := range []Kind{IntegratedGPU, CPU, Emulated} {
		r := newRecorder(t)
		r.info.Kind, r.info.Memory = kind, math.MaxInt64
		compiled(t, r, Options{})
		most := host.Memory()
		if most == 0 { // nobody knows
			most = maxMemory
		}
		require.Positive(t, r.configs[0].ArenaBytes)
		require.LessOrEqual(t, r.configs[0].ArenaBytes, most)
	}
}

func TestOptionsAreRefused(t *testing.T) {
	none := func(i *driver.Info) { i.MaxThreads, i.ISAs, i.Kernels = 0, nil, nil }
	for _, c := range []struct {
		opts        Options
		edit        func(i *driver.Info)
		want        string
		unsupported bool
	}{
		{Options{ISA: "mmx"}, nil, `instruction set "mmx"; the device has good, plain`, true},
		{Options{ISA: "good"}, none, `instruction set "good": the device offers no choice`, true},
		{Options{Kernels: "fused"}, nil, `kernels "fused"; the device has patches, direct`, true},
		{Options{Kernels: "direct"}, none, `kernels "direct": the device offers no choice`, true},
		{Options{Threads: 1}, none, "1 threads: the device offers no choice", true},
		{Options{Threads: -1}, nil, "-1 threads, want 1 to 6", false},
		{Options{Threads: 7}, nil, "7 threads, want 1 to 6", false},
		{Options{MaxBatch: -1}, nil, "a batch of -1 images, want 1 to 8", false},
		{Options{MaxBatch: 9}, nil, "a batch of 9 images, want 1 to 8", false},
		{Options{Limits: bcnn.Limits{ArenaBytes: -1}}, nil, "-1", false},
	} {
		r := newRecorder(t)
		if c.edit != nil {
			c.edit(&r.info)
		}
		_, err := NewDevice(r).Compile(t.Context(), twoSteps(), c.opts)
		require.ErrorContains(t, err, "fake:3: compile: ")
		require.ErrorContains(t, err, c.want)
		require.Equal(t, c.unsupported, errors.Is(err, errors.ErrUnsupported), c.want)
		require.Empty(t, r.configs)
		_, err = NewDevice(meter{r}).Peak(c.opts)
		require.ErrorContains(t, err, c.want)
	}
}

func TestCompileChecksItsArguments(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	r := newRecorder(t)
	broken := twoSteps()
	broken.Steps[0].Op, broken.Steps[1].Op = nil, (*plan.Affine)(nil)
	for _, c := range []struct {
		ctx  context.Context
		plan *plan.Plan
		want string
	}{
		{nil, twoSteps(), "fake:3: compile: no context"},
		{ended, twoSteps(), "fake:3: compile: context canceled"},
		{t.Context(), nil, "fake:3: compile: no plan"},
		{t.Context(), &plan.Plan{}, `fake:3: compile: plan "": it has no tensors`},
		{t.Context(), broken, `fake:3: compile: plan "two": not supported: step 0 (binarize): no operation; step 1 (affine): no operation`},
	} {
		_, err := NewDevice(r).Compile(c.ctx, c.plan, Options{})
		require.EqualError(t, err, c.want)
	}
	_, err := NewDevice(r).Compile(t.Context(), broken, Options{})
	require.ErrorIs(t, err, errors.ErrUnsupported)
	var unsupported *plan.UnsupportedError
	require.ErrorAs(t, err, &unsupported)
	require.Equal(t, []plan.UnsupportedStep{
		{Step: 0, Name: "binarize", Reason: "no operation"}, {Step: 1, Name: "affine", Reason: "no operation"},
	}, unsupported.Steps)
	require.Empty(t, r.configs)

	for _, none := range []*Device{nil, {}} {
		_, err := none.Compile(t.Context(), twoSteps(), Options{})
		require.EqualError(t, err, "no device")
		_, err = none.Peak(Options{})
		require.EqualError(t, err, "no device")
	}
}

func TestCompileNamesTheErrorOfTheDriver(t *testing.T) {
	r := newRecorder(t)
	r.compileErr = &plan.UnsupportedError{Steps: []plan.UnsupportedStep{{Step: 1, Name: "affine", Kind: "affine", Reason: "no kernel"}}}
	_, err := NewDevice(r).Compile(t.Context(), twoSteps(), Options{})
	require.EqualError(t, err, "fake:3: compile: not supported: step 1 (affine): no kernel")
	require.ErrorIs(t, err, errors.ErrUnsupported)
	var named *Error
	require.ErrorAs(t, err, &named)
	require.Equal(t, "fake:3", named.Device)
}

// TestTapNeedsMemory: what Tap gets counts before the driver is asked.
func TestTapNeedsMemory(t *testing.T) {
	r := newRecorder(t)
	opts := Options{MaxBatch: 8, Tap: func(int, string, bcnn.Tensor) {}, Limits: bcnn.Limits{ArenaBytes: 8*(2*3*2*8+2*3*70*4) - 1}}
	_, err := NewDevice(r).Compile(t.Context(), twoSteps(), opts)
	require.ErrorIs(t, err, ErrTooLarge)
	require.Empty(t, r.configs)
	opts.Limits.ArenaBytes++
	_, err = NewDevice(r).Compile(t.Context(), twoSteps(), opts)
	require.NoError(t, err)
	require.Zero(t, r.configs[0].ArenaBytes)
}

func TestMeters(t *testing.T) {
	r := newRecorder(t)
	d := NewDevice(meter{r})
	rate, err := d.Peak(Options{Threads: 2, Kernels: "direct"})
	require.NoError(t, err)
	require.Equal(t, 5.0, rate)
	rate, err = d.Bandwidth(Options{Threads: 2}, 1000)
	require.NoError(t, err)
	require.Equal(t, 1000.0, rate)
	require.Equal(t, []int{2, 2}, []int{r.configs[0].Threads, r.configs[1].Threads})
	require.Equal(t, "direct", r.configs[0].Kernels)

	_, err = d.Bandwidth(Options{}, 0)
	require.EqualError(t, err, "fake:3: bandwidth: 0 bytes")
	r.runErr = errors.New("broken")
	_, err = d.Peak(Options{})
	require.EqualError(t, err, "fake:3: peak: broken")

	_, err = NewDevice(r).Peak(Options{})
	require.ErrorIs(t, err, errors.ErrUnsupported)
	require.ErrorContains(t, err, "fake:3: peak: ")
	require.Equal(t, driver.Device(r), NewDevice(r).Driver())
}
