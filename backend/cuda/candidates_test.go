//go:build cuda && cgo && ((linux && (amd64 || arm64)) || (windows && amd64))

package cuda

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/backend/cuda/internal/candidates"
	"github.com/bitcnn/bitcnn/backend/driver"
	"github.com/bitcnn/bitcnn/backend/internal/gpu"
	"github.com/bitcnn/bitcnn/backend/parity"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/internal/testenv"
	"github.com/bitcnn/bitcnn/kernels"
)

// mostCandidates is at least the number of candidates of a step of the table.
const mostCandidates = 30

// stepKernels are the kernels that steps may be given on a device.
func stepKernels(d *device) (map[string]bool, error) {
	files, err := kernels.PTX.ReadDir("cu/ptx")
	if err != nil {
		return nil, err
	}
	all := make(map[string]bool)
	for _, f := range files {
		name, rest, _ := strings.Cut(f.Name(), ".")
		if strings.HasPrefix(name, "peaks") || name == "network" || name == "steps" || strings.HasSuffix(rest, "a.ptx") && !d.limits.Warpgroups {
			continue
		}
		text, err := kernels.ReadPTX(name, d.arch)
		if err != nil {
			return nil, err
		}
		for _, m := range regexp.MustCompile(`\.visible \.entry (\w+)\(`).FindAllSubmatch(text, -1) {
			all[string(m[1])] = true
		}
	}
	return all, nil
}

// candidatesOf lists the candidates of the steps of a case, of a variant if one is
// forced.
func candidatesOf(d *device, c parity.Case, variant string) ([][]candidates.Candidate, error) {
	plan, err := lower.Network(context.Background(), c.Network(), lower.Options{})
	if err != nil {
		return nil, err
	}
	e := &executable{device: d, plan: plan, config: driver.Config{MaxBatch: c.Batch, Kernels: variant}, ctx: context.Background()}
	all, err := e.candidates()
	if variant == gpu.Patches && err == nil {
		candidates.Join(plan, all)
	}
	return all, err
}

// forced is a case whose steps are to take the candidate of a number, or their last, of a
// variant, of those for a compute capability.
type forced struct {
	parity.Case
	pick       int
	variant    string
	capability int
}

// capabilities are those that differ in the kernels that they take of the device's PTX.
func capabilities(d *device) []int {
	if d.arch >= 90 {
		return []int{90, 100}
	}
	return []int{d.limits.Capability}
}

// as has the device take another compute capability until the end is called.
func (d *device) as(capability int) (end func()) {
	before := d.limits
	if capability != before.Capability {
		d.limits.Warpgroups, d.limits.WarpgroupBytes = false, false
	}
	d.limits.Capability = capability
	return func() { d.limits = before }
}

// everyKernel lists cases that together launch every kernel that steps may be given.
func everyKernel(d *device) ([]forced, error) {
	left, err := stepKernels(d)
	if err != nil {
		return nil, err
	}
	var all []forced
	for _, capability := range capabilities(d) {
		cases, err := kernelsOf(d, capability, left)
		if err != nil {
			return nil, err
		}
		all = append(all, cases...)
	}
	if len(left) > 0 {
		return nil, fmt.Errorf("kernels for sm_%d that no case of the table launches: %s", d.arch, strings.Join(slices.Sorted(maps.Keys(left)), ", "))
	}
	return all, nil
}

// kernelsOf lists cases that launch the kernels that are left, as far as a compute
// capability takes them, and removes these.
func kernelsOf(d *device, capability int, left map[string]bool) ([]forced, error) {
	defer d.as(capability)()
	var all []forced
	for _, c := range parity.Cases() {
		for _, variant := range []string{"", gpu.Patches} {
			steps, err := candidatesOf(d, c, variant)
			if err != nil {
				return nil, err
			}
			for pick := range mostCandidates {
				before := len(left)
				for _, of := range steps {
					for _, s := range of[min(pick, len(of)-1)].Specs {
						delete(left, s.Name)
					}
				}
				if len(left) < before {
					all = append(all, forced{c, pick, variant, capability})
				}
			}
		}
		if len(left) == 0 {
			break
		}
	}
	return all, nil
}

// check runs the case on the device.
func (f forced) check(ctx context.Context, d *device) error {
	before := d.pick
	d.pick = f.pick
	defer func() { d.pick = before }()
	defer d.as(f.capability)()
	failures, err := parity.Check(ctx, backend.NewDevice(d), backend.Options{Kernels: f.variant}, []parity.Case{f.Case}, nil)
	if err == nil && len(failures) > 0 {
		err = fmt.Errorf("candidate %d: %w", f.pick, failures[0])
	}
	return err
}

// TestEveryKernel launches every kernel that measuring could choose for some step.
func TestEveryKernel(t *testing.T) {
	testenv.Long(t)
	d := unsharedDevice(t)
	all, err := everyKernel(d)
	require.NoError(t, err)
	for _, f := range all {
		if err := f.check(t.Context(), d); err != nil {
			t.Error(err)
		}
	}
}

// TestEveryCandidate takes, for every step, the kernels that measuring would choose
// from, one after the other; that they agree for more cases is for TestCandidatesAgree.
func TestEveryCandidate(t *testing.T) {
	testenv.Long(t)
	for pick := range mostCandidates {
		t.Run(fmt.Sprint(pick), func(t *testing.T) {
			requireParityPlaced(t, pick, backend.Options{}, parity.Core())
		})
	}
	for _, c := range parity.Cases() {
		all, err := candidatesOf(testDevice(t), c, "")
		require.NoError(t, err)
		for _, of := range all {
			require.LessOrEqual(t, len(of), mostCandidates, c.Name)
		}
	}
}
