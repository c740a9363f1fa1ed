//go:build unix

package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// ownGroup: a signal goes to a process.
var ownGroup *syscall.SysProcAttr

// diesOf requires that a process has ended as the signal ends one: a shell calls
// that 128 and the number of the signal.
func (c child) diesOf(t *testing.T, s syscall.Signal) {
	require.False(t, c.stderr.Scan(), "%s", c.stderr.Text())
	require.Error(t, c.cmd.Wait())
	status := c.cmd.ProcessState.Sys().(syscall.WaitStatus)
	require.True(t, status.Signaled(), "%v", c.cmd.ProcessState)
	require.Equal(t, s, status.Signal())
}

// The first signal asks, and the command ends in good order.
func TestFirstSignal(t *testing.T) {
	model, data := saveLightNet(t), evalFolder(t)
	img := filepath.Join(data, "light", "0.png")
	for _, args := range [][]string{
		{"classify", "--model", model, "--device", "slow", img},
		{"eval", "--model", model, "--device", "slow", "--data", data},
		{"bench", "--model", model, "--device", "slow"},
		{"bench", "--ops=pool5", "--device", "slow"},
		{"parity", "--device", "slow"},
		{"parity", "--model", model, "--device", "slow"},
	} {
		for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
			c := startChild(t, "heed 1h", args...)
			c.says(t, "running")
			require.NoError(t, c.cmd.Process.Signal(s))
			c.says(t, "asked")
			c.says(t, "bcnn: interrupted")
			c.diesOf(t, s)
		}
	}
}

// The second signal ends the process, whatever it is at.
func TestSecondSignal(t *testing.T) {
	model := saveLightNet(t)
	for _, second := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		c := startChild(t, "deaf 1h", "bench", "--model", model, "--device", "slow")
		c.says(t, "running")
		require.NoError(t, c.cmd.Process.Signal(syscall.SIGINT))
		c.says(t, "asked")
		require.NoError(t, c.cmd.Process.Signal(second))
		c.diesOf(t, second)
	}
}

// One signal is enough in the end, so that timeout works.
func TestGrace(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		c := startChild(t, "deaf 1ms", "bench", "--model", "digits", "--device", "slow")
		c.says(t, "running")
		require.NoError(t, c.cmd.Process.Signal(s))
		c.says(t, "asked")
		c.says(t, "bcnn: interrupted")
		c.diesOf(t, s)
	}
}

// A signal that is ignored when the command starts, as in the background of a
// shell script, does not stop it.
func TestIgnoredSignal(t *testing.T) {
	executable, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command("sh", "-c", `trap "" INT; exec "$0" bench --model digits --device slow`, executable)
	cmd.Env = append(os.Environ(), childVariable+"=heed 1h")
	stderr, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill() })
	c := child{cmd, bufio.NewScanner(stderr)}
	c.says(t, "running")
	require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	c.says(t, "asked")
	c.says(t, "bcnn: interrupted")
	c.diesOf(t, syscall.SIGTERM)
}
