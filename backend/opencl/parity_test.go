//go:build opencl && cgo && linux && (amd64 || arm64)

package opencl

import (
	"os"
	"testing"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/backend/backendtest"
)

func TestMain(m *testing.M) {
	// What earlier runs measured must not decide what is tested.
	dir, err := os.MkdirTemp("", "bitcnn-opencl")
	if err != nil {
		panic(err)
	}
	os.Setenv("XDG_CACHE_HOME", dir)
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// testDevice returns the first device, in a copy of its own.
func testDevice(t testing.TB) *device {
	t.Helper()
	devices, err := enumerate()
	if err != nil {
		backendtest.Absent(t, "opencl", err)
	}
	d := devices[0]
	if err := d.open(); err != nil {
		t.Fatal(err)
	}
	return &device{id: d.id, info: d.info, driver: d.driver, limits: d.limits, specialiseFrom: d.specialiseFrom,
		context: d.context, programs: make(map[string]*program), tuning: loadTuning(d.driver, "")}
}

// TestParity runs the whole table with both variants. Its steps are small, so
// they take the general programs; TestParitySpecialised takes the others.
func TestParity(t *testing.T) {
	for _, variant := range []string{"a", "b"} {
		t.Run(variant, func(t *testing.T) { backendtest.Run(t, testDevice(t), backend.Options{Variant: variant}) })
	}
}
