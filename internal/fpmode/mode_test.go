package fpmode

import (
	"math"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// others are modes that are not the default one.
var others = map[string]map[string]word{
	"amd64": {"up": 0x5f80, "down": 0x3f80, "toward zero": 0x7f80, "FTZ": 0x9f80, "DAZ": 0x1fc0, "unmasked": 0x0fbf},
	"arm64": {"up": 1 << 22, "down": 2 << 22, "toward zero": 3 << 22, "FZ": 1 << 24},
}

//go:noinline
func compute(x, y float32) [3]float32 { return [...]float32{1 / x, -1 / x, y * 2} }

// TestEnter: inside, numbers are as ever; behind, the mode is the one before.
func TestEnter(t *testing.T) {
	if control == 0 {
		t.Skip("on this processor the mode is not known")
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	require.EqualValues(t, usual, get()&control)
	require.False(t, Enter().changed)
	for name, mode := range others[runtime.GOARCH] {
		set(mode)
		m := Enter()
		during, numbers := get()&control, compute(3, math.SmallestNonzeroFloat32)
		inner := Enter()
		inner.Leave()
		m.Leave()
		after := get()
		set(usual)
		require.EqualValues(t, usual, during, name)
		require.Equal(t, [...]float32{1. / 3, -1. / 3, 2 * math.SmallestNonzeroFloat32}, numbers, name)
		require.False(t, inner.changed, name)
		require.Equal(t, mode, after, name)
	}
}

func BenchmarkEnter(b *testing.B) {
	for b.Loop() {
		Enter().Leave()
	}
}
