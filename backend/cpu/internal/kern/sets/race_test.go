//go:build race

package sets

import (
	"fmt"
	"os"
	"os/exec"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
)

// A probe is a byte that a call of a kernel writes, reads or leaves alone.
type probe struct {
	what string
	at   *uint8
	does access
}

type access string

const (
	written access = "written"
	read    access = "read"
	alone   access = "left alone"
)

// probes are the first and the last byte of a slice.
func probes[T any](does access, what string, s []T) []probe {
	first := (*uint8)(unsafe.Pointer(&s[0]))
	last := (*uint8)(unsafe.Add(unsafe.Pointer(first), len(s)*int(unsafe.Sizeof(s[0]))-1))
	return []probe{{what + ", first byte", first, does}, {what + ", last byte", last, does}}
}

// A racyCall makes a call of one kernel on memory of its own. It returns nil
// where the Set has no such kernel.
type racyCall struct {
	field string // of Set or Wide, or a method of WideFilter
	make  func(s *kern.Set) (call func(), probed []probe)
}

var racyCalls = slices.Concat(racySetCalls, racyPairs(), racyWideCalls, racyMatrixCalls,
	racyConvs("bits"), racyConvs("carries"), racyConvs("bytes"), racyConvs("8-bit weights"), racyConvs("16-bit weights"))

// racyEnv makes TestRaces race.
const racyEnv = "BCNN_TEST_RACES"

// TestRaces has kernels race with another goroutine, in a process of its own,
// for all memory that they write or read, and expects a report each time, and
// none where they leave memory alone.
func TestRaces(t *testing.T) {
	if os.Getenv(racyEnv) != "" {
		race()
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run", "^TestRaces$")
	cmd.Env = append(os.Environ(), racyEnv+"=1",
		// The race detector reports nothing twice: neither equal stacks, which can
		// be changed, nor equal addresses, so memory is never used again.
		"GORACE=suppress_equal_stacks=0", "GOGC=off")
	out, _ := cmd.CombinedOutput() // it fails, because of the races
	reports := strings.Split(string(out), racyHead)[1:]
	for _, s := range runnable() {
		for _, c := range racyCalls {
			_, all := c.make(s)
			for _, p := range all {
				require.NotEmpty(t, reports, "the process ended early:\n%s", out)
				name, report, _ := strings.Cut(reports[0], "\n")
				require.Equal(t, racyName(s, &c, &p), name)
				require.Equal(t, p.does != alone, strings.Contains(report, "DATA RACE"), "%s:\n%s", name, report)
				reports = reports[1:]
			}
		}
	}
	require.Empty(t, reports)
}

const racyHead = "probe of "

func racyName(s *kern.Set, c *racyCall, p *probe) string {
	return fmt.Sprintf("%s, %s: %s, %s", s.ISA, c.field, p.what, p.does)
}

func race() {
	for _, s := range runnable() {
		for _, c := range racyCalls {
			for i := 0; ; i++ {
				call, all := c.make(s)
				if i >= len(all) {
					break
				}
				p := all[i]
				fmt.Fprintln(os.Stderr, racyHead+racyName(s, &c, &p))
				value := *p.at
				unordered(func() {
					if p.does == written {
						value = *p.at
					} else {
						store(p.at, value)
					}
				}, call)
			}
		}
	}
}

//go:noinline
func store(p *uint8, v uint8) { *p = v }

// unordered runs one function after the other, in goroutines that nothing
// orders as far as the race detector can see. They end together, because it
// takes the accesses of a goroutine that has ended for those of one that has
// started since.
func unordered(first, second func()) {
	var turn turn
	done, end := make(chan bool), make(chan bool)
	go func() {
		first()
		turn.pass()
		done <- true
		<-end
	}()
	go func() {
		for !turn.passed() {
			runtime.Gosched()
		}
		second()
		done <- true
		<-end
	}()
	<-done
	<-done
	close(end)
}

// turn is what the race detector does not see.
type turn bool

//go:norace
//go:noinline
func (t *turn) pass() { *t = true }

//go:norace
//go:noinline
func (t *turn) passed() bool { return bool(*t) }

// TestRacesOfAll is that TestRaces calls all functions of Set, Wide and Matrix that run
// after Compile.
func TestRacesOfAll(t *testing.T) {
	called := map[string]bool{"PackBits": true, "PackBytes": true, "PackInt8": true, "PackInt16": true, "PackCarries": true, "Read": true, "PeakFMA": true, "Columns": true, "Groups": true,
		"Signs": true, "Nibbles": true, "Bytes": true} // behind the methods of MatrixFilter
	for _, c := range racyCalls {
		called[c.field] = true
	}
	for prefix, typ := range map[string]reflect.Type{"": reflect.TypeFor[kern.Set](), "Pairs.": reflect.TypeFor[kern.PairKernels](),
		"Wide.": reflect.TypeFor[kern.Wide](), "Matrix.": reflect.TypeFor[kern.Matrix]()} {
		for i := range typ.NumField() {
			if f := typ.Field(i); f.Type.Kind() == reflect.Func {
				require.True(t, called[f.Name] || called[prefix+f.Name], "no call of %s%s", prefix, f.Name)
			}
		}
	}
}
