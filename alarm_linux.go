package bitcnn

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// newAlarm is a timer of the kernel, which wakes the runtime as a file that can be read: its own timers
// are waited for in whole milliseconds. Where the kernel gives none, it is one of these.
func newAlarm() alarm {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return timerAlarm()
	}
	file := os.NewFile(uintptr(fd), "timerfd")
	set := func(d time.Duration) {
		// Its errors are of arguments, which are right.
		_ = unix.TimerfdSettime(fd, 0, &unix.ItimerSpec{Value: unix.NsecToTimespec(int64(d))}, nil)
	}
	rings := make(chan time.Time, 1)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		var count [8]byte // of how often it has rung
		for {
			if _, err := file.Read(count[:]); err != nil {
				return
			}
			select {
			case rings <- time.Now():
			default:
			}
		}
	}()
	return alarm{rings: rings, set: set, close: func() {
		_ = file.Close() // nothing is lost with it
		<-ended
	}}
}
