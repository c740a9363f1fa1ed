package main

import (
	"errors"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/windows"
)

// ownGroup: Ctrl-Break goes to all processes of a group. Ctrl-C cannot be sent to one alone; package
// os/signal makes the same of both.
var ownGroup = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}

func (c child) breaks(t *testing.T) {
	err := windows.GenerateConsoleCtrlEvent(windows.CTRL_BREAK_EVENT, uint32(c.cmd.Process.Pid))
	if errors.Is(err, windows.ERROR_INVALID_ACCESS) || errors.Is(err, windows.ERROR_INVALID_HANDLE) { // of Wine's
		t.Skip("there is no console, and so no Ctrl-Break: ", err)
	}
	require.NoError(t, err)
}

// diesOfBreak requires that a process has ended as Ctrl-C or Ctrl-Break end one.
func (c child) diesOfBreak(t *testing.T) {
	require.False(t, c.stderr.Scan(), "%s", c.stderr.Text())
	var exit *exec.ExitError
	require.ErrorAs(t, c.cmd.Wait(), &exit)
	require.Equal(t, windows.STATUS_CONTROL_C_EXIT, windows.NTStatus(uint32(exit.ExitCode())))
}

// The first one asks, and the command ends in good order.
func TestFirstBreak(t *testing.T) {
	model, data := saveLightNet(t), evalFolder(t)
	for _, args := range [][]string{
		{"classify", "--model", model, "--device", "slow", filepath.Join(data, "light", "0.png")},
		{"bench", "--model", model, "--device", "slow"},
		{"parity", "--device", "slow"},
	} {
		c := startChild(t, "heed 1h", args...)
		c.says(t, "running")
		c.breaks(t)
		c.says(t, "asked")
		c.says(t, "bcnn: interrupted")
		c.diesOfBreak(t)
	}
}

// The second one ends the process, whatever it is at, and so does the end of the time of grace.
func TestSecondBreak(t *testing.T) {
	for _, mode := range []string{"deaf 1h", "deaf 1ms"} {
		c := startChild(t, mode, "bench", "--model", "digits", "--device", "slow")
		c.says(t, "running")
		c.breaks(t)
		c.says(t, "asked")
		if mode == "deaf 1ms" {
			c.says(t, "bcnn: interrupted")
		} else {
			c.breaks(t)
		}
		c.diesOfBreak(t)
	}
}
