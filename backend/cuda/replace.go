//go:build cuda && cgo && ((linux && (amd64 || arm64)) || (windows && amd64))

package cuda

import (
	"errors"
	"slices"
	"strings"

	"gorgonia.org/cu"

	"github.com/bitcnn/bitcnn/backend/cuda/internal/candidates"
	"github.com/bitcnn/bitcnn/backend/cuda/internal/shim"
	"github.com/bitcnn/bitcnn/backend/internal/gpu"
)

// refuse notes what the driver has refused, and was done in another way.
func (d *device) refuse(what string, err error) {
	d.choices().Refuse(what + ": " + strings.Join(strings.Fields(err.Error()), " "))
}

// replace gives step i other kernels, since the driver has refused to launch those that it has,
// and enqueues them. What the step reads is as it was: its kernels write it last, if at all. Where
// the driver refuses all the error is the one that it was called for. It runs on the device's thread.
func (e *executable) replace(stream cu.Stream, i int, cause error) error {
	if e.bits != nil && i < 2 { // one of two that are joined, as was asked for
		return cause
	}
	old := e.steps[i]
	all, err := e.candidatesOf(i)
	if err != nil {
		return cause
	}
	e.device.refuse("a launch", cause)
	all = slices.DeleteFunc(all, func(c candidates.Candidate) bool { return c.Name == old.name })
	for _, c := range all {
		if !e.hasScratch(c) {
			continue
		}
		b, err := e.build(c)
		if err == nil {
			if err = b.enqueue(stream, e.images); err != nil {
				_ = b.bag.release()
			}
		}
		switch {
		case err == nil:
			e.steps[i], e.direct = b, false
			// Graphs have the kernels that were.
			return errors.Join(e.dropGraphs(), old.bag.release())
		case !shim.Refused(err):
			return err
		}
	}
	return cause
}

// hasScratch reports whether there is the scratch memory that a candidate needs.
func (e *executable) hasScratch(c candidates.Candidate) bool {
	for _, s := range c.Specs {
		for _, a := range s.Args {
			if m, ok := a.(gpu.Scratch); ok && m.Bytes > e.scratchBytes[m.Which] {
				return false
			}
		}
	}
	return true
}
