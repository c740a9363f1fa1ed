package backendtest_test

import (
	"testing"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/backend/backendtest"
	"github.com/bitcnn/bitcnn/backend/cpu"
)

// The tests of a backend are one for what it computes and one for all else.
func Example() {
	_ = func(t *testing.T) { // TestParity
		backendtest.Run(t, cpu.Device(), backend.Options{ISA: "generic"})
	}
	_ = func(t *testing.T) { // TestLife
		backendtest.Life(t, cpu.Device(), backend.Options{ISA: "generic"})
	}
}
