package backend

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend/driver"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// streams is a recorder whose engines have streams.
type streams struct {
	*recorder
	calls *[][]uintptr
}

func withStreams(t testing.TB) streams { return streams{newRecorder(t), new([][]uintptr)} }

type streamEngine struct {
	*recordedEngine
	calls *[][]uintptr
}

func (s streams) Compile(ctx context.Context, plan *plan.Plan, c driver.Config) (driver.Engine, error) {
	e, err := s.recorder.Compile(ctx, plan, c)
	if err != nil {
		return nil, err
	}
	return &streamEngine{e.(*recordedEngine), s.calls}, nil
}

func (e *streamEngine) Enqueue(stream uintptr, images int, out, in []uintptr) error {
	defer e.enter()()
	*e.calls = append(*e.calls, append([]uintptr{stream, uintptr(images)}, append(out, in...)...))
	return e.runErr
}

func TestEnqueueHandsTheAddressesOver(t *testing.T) {
	s := withStreams(t)
	exe := compiled(t, s, Options{MaxBatch: 3})
	require.NoError(t, exe.Enqueue(t.Context(), 5, 3, []uintptr{6}, []uintptr{7}))
	require.Equal(t, [][]uintptr{{5, 3, 6, 7}}, *s.calls)

	s.runErr = errBroken
	require.EqualError(t, exe.Enqueue(t.Context(), 5, 1, []uintptr{6}, []uintptr{7}), "fake:3: enqueue: broken")
}

func TestEnqueueRefuses(t *testing.T) {
	s := withStreams(t)
	exe := compiled(t, s, Options{MaxBatch: 3})
	one := []uintptr{1}
	for _, c := range []struct {
		images  int
		out, in []uintptr
	}{{0, one, one}, {4, one, one}, {-1, one, one}, {1, nil, one}, {1, one, []uintptr{1, 2}}} {
		require.ErrorIs(t, exe.Enqueue(t.Context(), 0, c.images, c.out, c.in), ErrShape)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, exe.Enqueue(ended, 0, 1, one, one), context.Canceled)
	var none context.Context
	require.Error(t, exe.Enqueue(none, 0, 1, one, one))
	require.Empty(t, *s.calls)
	require.NoError(t, exe.Close())
	require.ErrorIs(t, exe.Enqueue(t.Context(), 0, 1, one, one), ErrClosed)
	require.ErrorIs(t, (*Executable)(nil).Enqueue(t.Context(), 0, 1, one, one), ErrClosed)

	// Devices without streams, and runs that are waited for step by step.
	plain := compiled(t, newRecorder(t), Options{})
	require.ErrorIs(t, plain.Enqueue(t.Context(), 0, 1, one, one), errors.ErrUnsupported)
	timed := compiled(t, withStreams(t), Options{Timed: func(int, string, time.Duration) {}})
	require.ErrorIs(t, timed.Enqueue(t.Context(), 0, 1, one, one), errors.ErrUnsupported)
}
