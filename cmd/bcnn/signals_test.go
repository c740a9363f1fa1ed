//go:build unix || windows

package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/backend/driver"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// Where this variable is set, the test binary is the command, with a device
// "slow" that says on standard error what happens to it. The value is what the
// device does when it is asked to stop: "heed" it or go on ("deaf"), and how long
// the time of grace is.
const childVariable = "BCNN_TEST_CHILD"

func TestMain(m *testing.M) {
	ears, wait, isChild := strings.Cut(os.Getenv(childVariable), " ")
	if !isChild {
		os.Exit(m.Run())
	}
	var err error
	if grace, err = time.ParseDuration(wait); err != nil {
		panic(err)
	}
	backend.Register(fakeSlow(ears))
	main()
}

// fakeSlow is a backend with one device, whose runs do not end by themselves.
type fakeSlow string

func (fakeSlow) Name() string                        { return "slow" }
func (f fakeSlow) Devices() ([]driver.Device, error) { return []driver.Device{f}, nil }

func (f fakeSlow) Info() driver.Info {
	return driver.Info{ID: "slow:0", Name: "slow", Kind: driver.Emulated, Detail: "test", MaxBatch: 1000}
}

func (f fakeSlow) Compile(context.Context, *plan.Plan, driver.Config) (driver.Engine, error) {
	return f, nil
}

func (f fakeSlow) Run(ctx context.Context, _, _ []bcnn.Tensor) error {
	fmt.Fprintln(os.Stderr, "running")
	<-ctx.Done()
	fmt.Fprintln(os.Stderr, "asked")
	if f == "deaf" {
		select {}
	}
	return ctx.Err()
}

func (f fakeSlow) RunSteps(ctx context.Context, out, in []bcnn.Tensor, _ func(int, time.Duration) error) error {
	return f.Run(ctx, out, in)
}

func (fakeSlow) Read(int, bcnn.Tensor) error { return nil }

func (fakeSlow) Explain() []driver.Choice { return nil }

func (fakeSlow) Close() error { return nil }

// child is the command as another process.
type child struct {
	cmd    *exec.Cmd
	stderr *bufio.Scanner
}

// startChild starts the command line. The process has its own group, so that it
// alone gets the signals.
func startChild(t *testing.T, mode string, args ...string) child {
	executable, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(executable, args...)
	cmd.SysProcAttr = ownGroup
	cmd.Env = append(os.Environ(), childVariable+"="+mode)
	cmd.Stdout = io.Discard
	stderr, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill() })
	return child{cmd, bufio.NewScanner(stderr)}
}

// says waits for a line on standard error.
func (c child) says(t *testing.T, want string) {
	require.True(t, c.stderr.Scan(), "no %q", want)
	require.Equal(t, want, c.stderr.Text())
}

// A job that was done when the signal came has its own exit code. One that fails
// was interrupted, whatever it failed of.
func TestInterruptedJob(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var stdout, stderr bytes.Buffer
	require.Equal(t, exitOK, run(ctx, []string{"version"}, &stdout, &stderr))
	require.Empty(t, stderr.String())
	require.Equal(t, exitInterrupted, run(ctx, []string{"inspect", "absent.bcnn"}, &stdout, &stderr))
	require.Equal(t, "bcnn: interrupted\n", stderr.String())
}
