// Package testenv is how tests deal with what a machine may lack: devices,
// instruction sets, tools, data. Tests of what is absent are skipped, unless it is
// required.
package testenv

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// EnvRequire is the environment variable that lists, separated by commas, what
// must be there when tests run: backends ("cuda"), devices ("opencl:1"),
// instruction sets of the CPU backend ("cpu:avx2"), and what else Absent and the
// scripts call by a name. A test of something that is absent is skipped unless it
// is listed; then it fails, so that a builder that has lost its device does not
// pass by skipping.
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

// EnvSharedData names the folder of SharedData.
const EnvSharedData = "BCNN_SHARED_DATA"

// SharedData returns the path of a file, or folder, of the test data that is not
// part of the project: published weights, models and photos. It is looked for in the
// folder that EnvSharedData names, or else in shared/data beside the project. Where
// there is no such folder the test is skipped ("shared-data" is absent); where there
// is, the file must be in it.
func SharedData(t testing.TB, name string) string {
	t.Helper()
	dir := os.Getenv(EnvSharedData)
	if dir == "" {
		root, err := root()
		if err != nil { // a test that was copied to a machine
			Absent(t, "shared-data", fmt.Errorf("%w, and %s names no folder", err, EnvSharedData))
		}
		dir = filepath.Join(root, "..", "shared", "data")
	}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		Absent(t, "shared-data", fmt.Errorf("%w; %s may name another folder", err, EnvSharedData))
	}
	file, err := filepath.Abs(filepath.Join(dir, filepath.FromSlash(name))) // the test may go to another folder
	if err == nil {
		_, err = os.Stat(file)
	}
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// Root returns the folder of the module whose test runs.
func Root(t testing.TB) string {
	t.Helper()
	dir, err := root()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func root() (string, error) {
	dir, err := os.Getwd()
	for err == nil {
		if _, missing := os.Stat(filepath.Join(dir, "go.mod")); missing == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("no go.mod above the test")
		}
		dir = filepath.Dir(dir)
	}
	return "", err
}

// Long skips a test with go test -short. What it covers must be covered by
// others as well, on fewer cases.
func Long(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip(LeftOutByShort)
	}
}

// LeftOutByShort is what a test says that Long skips: nothing is absent.
const LeftOutByShort = "left out by -short"

// EnvOwnKernels is the environment variable that is set where tests are slow, as on an emulator: an
// instruction set is then tested on what it has kernels of its own for.
const EnvOwnKernels = "BCNN_TEST_OWN_KERNELS"

// Symlink makes a symbolic link to a file or folder that there is. Where links cannot be made, or are not
// followed, as on Windows without the right to and under Wine, the test is skipped.
func Symlink(t testing.TB, target, link string) {
	t.Helper()
	err := os.Symlink(target, link)
	if err == nil {
		_, err = os.Stat(link)
	}
	if err != nil && runtime.GOOS == "windows" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// EnvDrivers is the environment variable that tells drivers of devices apart. The go command knows
// nothing of them: it takes the result of an earlier run unless what the test reads has changed.
const EnvDrivers = "BCNN_TEST_DRIVERS"

// EnvCUDADriver is the environment variable that names the folder of a CUDA driver, such as the
// emulated one, for the tests of the backend. Others do without, since a device that is emulated is
// slow.
const EnvCUDADriver = "BCNN_TEST_CUDA_DRIVER"

// DependsOnDrivers is called by tests that use a driver.
func DependsOnDrivers() { _ = os.Getenv(EnvDrivers) }
