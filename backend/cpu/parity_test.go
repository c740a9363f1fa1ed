package cpu

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/backend/backendtest"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/sets"
	"github.com/bitcnn/bitcnn/internal/testenv"
)

func TestParity(t *testing.T) {
	// An instruction set that is required but not here would not be tested.
	known := []string{"cpu", "cpu:0"}
	for _, isa := range sets.Names() {
		known = append(known, "cpu:"+isa)
	}
	require.NoError(t, testenv.CheckRequired(known...))
	run := backendtest.Run
	if raceEnabled {
		run = backendtest.RunSlow
	}
	forEach(t, func(t *testing.T, opts backend.Options) { run(t, Device(), opts) })
}

func FuzzParity(f *testing.F) {
	backendtest.Fuzz(f, Device(), backend.Options{Threads: 2})
}

// TestPublished runs the published weights of the paper on every instruction set.
func TestPublished(t *testing.T) {
	for _, isa := range sets.Names() {
		t.Run(isa, func(t *testing.T) { backendtest.PublishedOn(t, Device(), backend.Options{ISA: isa}) })
	}
}
