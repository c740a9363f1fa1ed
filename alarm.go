package bitcnn

import "time"

// alarm rings once some time after it has been set. It may have rung for what was set before.
type alarm struct {
	rings <-chan time.Time
	set   func(time.Duration)
	close func()
}

// timerAlarm is one of Go's timers, which on Linux wake an idle process after 1 ms at the earliest.
func timerAlarm() alarm {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return alarm{rings: t.C, set: func(d time.Duration) { t.Reset(d) }, close: func() { t.Stop() }}
}
