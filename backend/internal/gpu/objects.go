package gpu

import "sync/atomic"

// Live counts the objects of drivers that have not been released, for tests of leaks.
var Live atomic.Int64

// Objects holds objects of a driver until they are released in order.
type Objects struct{ releases []func() error }

// Add takes over an object, which release releases.
func (o *Objects) Add(release func() error) {
	o.releases = append(o.releases, release)
	Live.Add(1)
}

// Release releases everything, the newest first, and returns the first error.
func (o *Objects) Release() error {
	var first error
	for i := len(o.releases) - 1; i >= 0; i-- {
		if err := o.releases[i](); err != nil && first == nil {
			first = err
		}
		Live.Add(-1)
	}
	o.releases = nil
	return first
}
