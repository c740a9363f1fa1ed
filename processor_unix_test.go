//go:build unix

package bitcnn

import (
	"syscall"
	"time"
)

// processorTime returns the time that the process has had on processors.
func processorTime() time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
