package cpu

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/backend/backendtest"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/sets"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/internal/testenv"
)

func TestParity(t *testing.T) {
	// An instruction set that is required but not here would not be tested.
	known := []string{"cpu", "cpu:0"}
	for _, isa := range sets.Names() {
		known = append(known, "cpu:"+isa)
	}
	require.NoError(t, testenv.CheckRequired(known...))
	// Tiles are the same for one thread as for three, and so is what drives the kernels of all sets: the
	// best set has most cases, and one thread alone.
	isas, numbers := sets.Names(), []int{1, 3}
	if raceEnabled {
		isas = ends(isas)
	}
	for i, isa := range isas {
		if i > 0 || raceEnabled || testing.Short() {
			numbers = []int{3}
		}
		for _, threads := range numbers {
			t.Run(fmt.Sprintf("%s/threads=%d", isa, threads), func(t *testing.T) {
				opts := backend.Options{ISA: isa, Threads: threads}
				d, ok := derived[isa]
				switch {
				case ok && os.Getenv(testenv.EnvOwnKernels) != "":
					backendtest.RunOnly(t, d.uses, Device(), opts)
				case i == 0 && !raceEnabled:
					backendtest.RunFirst(t, Device(), opts)
				default:
					backendtest.Run(t, Device(), opts)
				}
			})
		}
	}
}

// derivation is the set that another one has most kernels of, and the fields of kern.Set and
// kern.Wide that may differ.
type derivation struct {
	from   string
	fields []string
}

var (
	ofBits  = []string{"PackBits"}
	ofBytes = []string{"PackBytes", "PackInt8", "PackInt16"}
	derived = map[string]derivation{
		"neon":        {"neondot", ofBytes},
		"neonbytes":   {"neon", ofBits},
		"neonpieces":  {"neon", ofBits},
		"neoncarries": {"neon", ofBits},
		"neoni8mm":    {"neondot", ofBytes},
		"neonv7":      {"generic", append([]string{"DotBits", "Threshold", "Peak"}, ofBits...)},
	}
)

// uses reports whether a step may use a kernel that differs.
func (d derivation) uses(p *plan.Plan, s plan.Step) bool {
	differs := func(field string) bool { return slices.Contains(d.fields, field) }
	in := p.Tensors[s.In[0]].DType
	switch op := s.Op.(type) {
	case *plan.Conv:
		return differs("PackBits") && in == bcnn.Bits || differs("PackBytes") && in == bcnn.Uint8 ||
			differs("Threshold") && op.Threshold != nil
	case *plan.MatMul:
		return differs("DotBits") && in == bcnn.Bits
	}
	return false
}

// TestDerived compares the code of the functions of sets.
func TestDerived(t *testing.T) {
	for name, d := range derived {
		set, err := sets.Lookup(name)
		from, missing := sets.Lookup(d.from)
		if errors.Join(err, missing) != nil {
			continue // of another processor
		}
		for _, field := range differences(reflect.ValueOf(*set), reflect.ValueOf(*from)) {
			require.Contains(t, d.fields, field, "%s has another function than %s", name, d.from)
		}
	}
}

// differences are the names of fields that are functions and differ.
func differences(a, b reflect.Value) (names []string) {
	for i := range a.NumField() {
		f, g := a.Field(i), b.Field(i)
		switch f.Kind() {
		case reflect.Func:
			if f.Pointer() != g.Pointer() {
				names = append(names, a.Type().Field(i).Name)
			}
		case reflect.Pointer:
			if f.IsNil() != g.IsNil() {
				names = append(names, a.Type().Field(i).Name)
			} else if !f.IsNil() {
				names = append(names, differences(f.Elem(), g.Elem())...)
			}
		}
	}
	return names
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
