//go:build cuda && cgo && ((linux && (amd64 || arm64)) || (windows && amd64))

package cuda

import (
	"github.com/bitcnn/bitcnn/backend/cuda/internal/shim"
	"github.com/bitcnn/bitcnn/backend/driver"
	"github.com/bitcnn/bitcnn/backend/internal/gpu"
)

// earlyLaunches names graphs whose kernels begin early, where tests say what is fastest.
const earlyLaunches = "early"

// maxEarlyBatch is the largest batch for which it is measured whether kernels are to begin
// early: those of larger ones take long beside what lies between them.
const maxEarlyBatch = 16

// chooseEarly decides whether kernels may begin before those ahead of them have ended: if
// the driver does not refuse it and it is faster, as graphs of the whole run. The blocks
// that wait take places on the multiprocessors, so it need not be.
func (e *executable) chooseEarly() error {
	emulated := e.device.info.Kind == driver.Emulated // whose times mean nothing
	if !e.device.early || e.config.Stepwise || !e.canOverlap() || e.config.MaxBatch > maxEarlyBatch && !emulated {
		return nil
	}
	e.images, e.early = e.config.MaxBatch, true
	var early, plain gpu.Times
	var output, right uint64
	var err error
	if emulated {
		_, err = e.graph(e.images)
		plain.Shortest = 1
	} else {
		early, output, err = e.timeAll(earlyLaunches)
	}
	refused := e.direct || shim.Refused(err)
	e.early, e.direct = false, false
	if err != nil && !refused {
		return err
	}
	if err := e.dropGraphs(); refused || err != nil {
		return err
	}
	if !emulated {
		if plain, right, err = e.timeAll(""); err != nil && !shim.Refused(err) {
			return err
		}
		if err == nil && output != right {
			e.wrong = append(e.wrong, earlyLaunches)
		}
	}
	e.early = early.Shortest < plain.Shortest && len(e.wrong) == 0
	return e.dropGraphs()
}

// canOverlap reports whether a kernel that waits comes behind another.
func (e *executable) canOverlap() bool {
	launches := 0
	for _, s := range e.steps {
		for _, l := range s.launches {
			if l.waits && launches > 0 {
				return true
			}
			launches++
		}
	}
	return false
}
