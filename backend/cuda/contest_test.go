//go:build cuda && cgo && ((linux && (amd64 || arm64)) || (windows && amd64))

package cuda

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/backend/backendtest"
	"github.com/bitcnn/bitcnn/backend/internal/gpu"
	"github.com/bitcnn/bitcnn/backend/parity"
	"github.com/bitcnn/bitcnn/internal/testenv"
)

// TestWrongCandidate: kernels that compute something else than the others are left out, however
// fast they are, and it is said which.
func TestWrongCandidate(t *testing.T) {
	testenv.Long(t)
	net := backendtest.OneConv(4, 3, 32, 32)
	d := timed(t, "launch:1,node:1")
	before, driver := gpu.Live.Load(), alive(t, d)
	wrong := map[string]bool{}
	for range 3 { // the fastest, then what is chosen in its place
		exe := requireReference(t, d, net, backend.Options{}, maxNetworkBatch+1)
		chosen := exe.steps[1]
		for _, l := range chosen.launches {
			require.NotContains(t, wrong, l.spec.Name)
		}
		why := exe.Explain()[1].Why
		require.Equal(t, len(wrong) > 0, strings.Contains(why, "; not used, as it computes wrong bits: "), why)
		// Known the next time, from what is remembered.
		require.NoError(t, exe.Close())
		again := requireReference(t, d, net, backend.Options{}, maxNetworkBatch+1)
		require.Equal(t, gpu.WhyKnown, again.steps[1].why)
		require.Equal(t, chosen.name, again.steps[1].name)
		require.NoError(t, again.Close())
		named := 0
		for _, e := range d.tuning.Steps {
			named += len(e.Wrong)
		}
		require.Equal(t, len(wrong) > 0, named > 0)

		wrong[chosen.launches[0].spec.Name] = true
		faults := ""
		for name := range wrong {
			faults += "wrong:" + name + ","
		}
		t.Setenv(envFault, faults)
		d.tuning = d.loadTuning("")
	}
	require.Equal(t, before, gpu.Live.Load())
	require.Equal(t, driver, alive(t, d))
}

// TestWrongNetwork: one launch for the whole network, or kernels that begin early, are not
// taken where they compute something else than the steps.
func TestWrongNetwork(t *testing.T) {
	for name, c := range map[string]struct{ clock, fault string }{
		gpu.Fused:     {"launch:10,cooperative:1,node:1", "wrong:network"},
		earlyLaunches: {"launch:10,cooperative:100,node:10,dependent:1", "wrong:early"},
	} {
		t.Run(name, func(t *testing.T) {
			d := timedWhole(t, c.clock)
			before, driver := gpu.Live.Load(), alive(t, d)
			for _, fault := range []string{"", c.fault} {
				t.Setenv(envFault, fault)
				exe := requireReference(t, d, backendtest.VehicleNet(3, 8), backend.Options{}, 2)
				require.Equal(t, fault == "", name == gpu.Fused && exe.network != nil || name == earlyLaunches && exe.early)
				require.Equal(t, fault != "", strings.HasSuffix(exe.Explain()[0].Why, "computes wrong bits: "+name))
				said := false
				for _, e := range d.tuning.Steps {
					said = said || len(e.Wrong) == 1 && e.Wrong[0] == name
				}
				require.Equal(t, fault != "", said)
				require.NoError(t, exe.Close())
			}
			require.Equal(t, before, gpu.Live.Load())
			require.Equal(t, driver, alive(t, d))
		})
	}
}

// TestCandidatesAgree: all candidates of all steps compute the same, of random bits and of what
// the steps before make of random images.
func TestCandidatesAgree(t *testing.T) {
	testenv.Long(t)
	d := measured(t, "")
	d.fastest = gpu.Direct // nothing is timed
	requireParity(t, d, backend.Options{}, parity.Core())
	require.NotEmpty(t, d.tuning.Steps)
	for _, e := range d.tuning.Steps {
		require.Empty(t, e.Wrong, "%s, %s %s", e.Step, e.Variant, e.Name)
	}
}
