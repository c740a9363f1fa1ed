//go:build opencl && cgo && ((linux && (amd64 || arm64)) || (windows && amd64))

package opencl

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/jgillich/go-opencl/cl"

	"github.com/bitcnn/bitcnn/backend/driver"
	"github.com/bitcnn/bitcnn/backend/opencl/internal/shim"
	"github.com/bitcnn/bitcnn/internal/clock"
)

// A driver may refuse what another one does: a size of work-groups, memory, a program, queues
// that tell times. What is refused is left out, something else takes its place, and the device
// remembers it for its Info. Errors of other kinds, such as a lost device, end what is in hand.

// refusal marks an error as one that says nothing about other kernels.
type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }

// refusals are the codes that say that a kernel, or a buffer, is too much for the device.
var refusals = []int{shim.OutOfResources, shim.InvalidGroupSize, shim.InvalidItemSize, shim.NoMemory, shim.NoHostMemory, shim.NoMapping}

// libraryRefusals are those of go-opencl, which has no codes.
var libraryRefusals = []error{
	cl.ErrOutOfResources, cl.ErrInvalidWorkGroupSize, cl.ErrMemObjectAllocationFailure, cl.ErrOutOfHostMemory, cl.ErrMapFailure, cl.ErrInvalidBufferSize,
}

// refused reports whether an error says nothing about other kernels: the compiler takes
// exception to the source, or the kernel or its memory is too large for the device.
func refused(err error) bool {
	switch {
	case err == nil: // before anything is allocated
		return false
	case errors.Is(err, errBuild) || errors.Is(err, errGroup):
		return true
	}
	var marked refusal
	var code *shim.Error
	return errors.As(err, &marked) || errors.As(err, &code) && slices.Contains(refusals, code.Code) ||
		slices.ContainsFunc(libraryRefusals, func(r error) bool { return errors.Is(err, r) })
}

// dropped reports whether a candidate with this error is left out of the choice: it is refused,
// or needs more memory than it may have.
func dropped(err error) bool { return refused(err) || errors.Is(err, driver.ErrTooLarge) }

// maxRefusal is how much of an error is kept, in bytes: it may be the log of a compiler.
const maxRefusal = 200

// refuse notes what the driver has refused.
func (d *device) refuse(what string, err error) {
	lines := strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' || r == '\r' })
	for i, l := range lines {
		lines[i] = strings.TrimSpace(l)
	}
	why := strings.Join(lines, " ")
	if len(why) > maxRefusal {
		why = strings.ToValidUTF8(why[:maxRefusal], "") + "…"
	}
	d.choices().Refuse(what + ": " + why)
}

// withoutTimes makes the host's clock the one that is used from now on.
func (d *device) withoutTimes(err error) {
	if !d.untimed.Swap(true) {
		d.refuse("times of the device, in place of which the host's clock is read", err)
	}
}

// elapsed is the time of a launch that has finished and was enqueued at start: the device's, or
// the host's where the driver has none.
func (d *device) elapsed(start clock.Instant, l *launch) time.Duration {
	host := clock.Since(start)
	if d.untimed.Load() {
		return host
	}
	ns, err := l.nanoseconds()
	if err != nil {
		d.withoutTimes(err)
		return host
	}
	return time.Duration(ns)
}
