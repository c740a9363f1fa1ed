// Package clock measures how long something takes, to 100 ns or better on every system.
// That of package time moves on by half a millisecond to sixteen on Windows.
package clock

import "time"

// Instant is a reading of the clock: nanoseconds from a moment before the first one. No
// other process, and no other machine, knows of that moment.
type Instant int64

// Now reads the clock.
func Now() Instant { return Instant(read()) }

// Since returns the time that has passed since an instant, 1 ns at least: figures are
// divided by it, and two readings may be of the same tick.
func Since(i Instant) time.Duration { return max(1, time.Duration(Now()-i)) }

// nanoseconds is the time of so many ticks. The product of ten minutes of them and 1e9 may
// have more than 64 bits.
func nanoseconds(ticks, frequency int64) int64 {
	const second = 1_000_000_000
	return ticks/frequency*second + ticks%frequency*second/frequency
}
