package backendtest

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// EnvRequire is the environment variable that lists, separated by commas, what
// must be there when tests run: backends ("cuda"), devices ("opencl:1") and
// instruction sets of the CPU backend ("cpu:avx2"). A test of something that is
// absent is skipped unless it is listed; then it fails, so that a builder that
// has lost its device does not pass by skipping.
const EnvRequire = "BCNN_TEST_REQUIRE"

func required() []string {
	var names []string
	for name := range strings.SplitSeq(os.Getenv(EnvRequire), ",") {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// Required reports whether EnvRequire lists the name. A backend is also required
// by the name of one of its devices: "cuda:1" requires "cuda".
func Required(name string) bool {
	for _, r := range required() {
		if r == name || strings.HasPrefix(r, name+":") {
			return true
		}
	}
	return false
}

// Absent ends a test of something that is not there: skipped, or failed if it
// is required.
func Absent(t testing.TB, name string, why error) {
	t.Helper()
	if Required(name) {
		t.Fatalf("%s is required by %s but absent: %v", name, EnvRequire, why)
	}
	t.Skipf("%s is absent: %v", name, why)
}

// CheckRequired returns an error if EnvRequire lists a name that begins like one
// of the known names but is none of them, such as "cpu:avx22" where
// "cpu:avx2" is known. Names of other backends are left to their own tests.
func CheckRequired(known ...string) error {
	for _, name := range required() {
		backend, _, _ := strings.Cut(name, ":")
		mine := slices.ContainsFunc(known, func(k string) bool { b, _, _ := strings.Cut(k, ":"); return b == backend })
		if mine && !slices.Contains(known, name) {
			return fmt.Errorf("%s lists %q; known are %s", EnvRequire, name, strings.Join(known, ", "))
		}
	}
	return nil
}
