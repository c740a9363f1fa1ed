package bitcnn

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var alarms = map[string]func() alarm{"timer": timerAlarm, "system": newAlarm}

// An alarm rings after what it was set to last.
func TestAlarm(t *testing.T) {
	for name, make := range alarms {
		t.Run(name, func(t *testing.T) {
			a := make()
			for _, d := range []time.Duration{1, time.Microsecond, 2 * time.Millisecond} {
				began := time.Now()
				a.set(d)
				<-a.rings
				require.GreaterOrEqual(t, time.Since(began), d)
			}
			a.set(time.Hour)
			a.set(time.Millisecond)
			<-a.rings
			a.set(time.Hour)
			a.close()
		})
	}
}

// BenchmarkAlarm is how much later than 200 µs an alarm rings where nothing else happens.
func BenchmarkAlarm(b *testing.B) {
	const wait = 200 * time.Microsecond
	for name, make := range alarms {
		b.Run(name, func(b *testing.B) {
			a := make()
			defer a.close()
			var late []time.Duration
			for range 500 {
				began := time.Now()
				a.set(wait)
				<-a.rings
				late = append(late, time.Since(began)-wait)
			}
			slices.Sort(late)
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(late[len(late)/2])/1e3, "median-µs")
			b.ReportMetric(float64(late[len(late)*99/100])/1e3, "p99-µs")
		})
	}
}
