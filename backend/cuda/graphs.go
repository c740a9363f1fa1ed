//go:build cuda && cgo && ((linux && (amd64 || arm64)) || (windows && amd64))

package cuda

import (
	"errors"

	"github.com/bitcnn/bitcnn/backend/cuda/internal/shim"
)

// maxGraphs bounds how many graphs are kept, since a batch may have any size.
const maxGraphs = 16

// graph returns the graph for a batch size, recording it if it is the first. Where the
// driver does not record it, direct is set.
func (e *executable) graph(images int) (shim.Graph, error) {
	return e.graphOf(e.graphs, images, func() error { return e.enqueueAll(false) })
}

func (e *executable) graphOf(kept map[int]shim.Graph, images int, enqueue func() error) (shim.Graph, error) {
	if g, ok := kept[images]; ok || e.direct {
		return g, nil
	}
	before := e.images
	e.images = images
	g, recorded, err := e.record(enqueue)
	e.images = before
	if err != nil || !recorded {
		e.direct = err == nil
		return g, err
	}
	if len(kept) >= maxGraphs {
		for old, dropped := range kept {
			if old != 1 && old != e.config.MaxBatch {
				delete(kept, old)
				if err := dropped.Destroy(); err != nil {
					return g, errors.Join(err, g.Destroy())
				}
				break
			}
		}
	}
	kept[images] = g
	return g, nil
}

// record makes a graph of what a function enqueues, if the driver records it: older ones
// have no graphs, or none with cooperative launches.
func (e *executable) record(enqueue func() error) (g shim.Graph, recorded bool, err error) {
	if err = shim.BeginCapture(e.stream); err == nil {
		e.recording = true
		enqueued := enqueue()
		e.recording = false
		// To be called in any case: it ends the recording.
		if g, err = shim.EndCapture(e.stream); err == nil && enqueued != nil {
			err = g.Destroy()
		}
		if enqueued != nil && (err == nil || shim.Refused(err)) {
			err = enqueued
		}
	}
	switch {
	case err == nil:
		return g, true, nil
	case shim.Refused(err): // if it is not for the recording, the launch is refused, too
		return shim.Graph{}, false, nil
	}
	return shim.Graph{}, false, err
}

// dropGraphs destroys all graphs.
func (e *executable) dropGraphs() error {
	var err error
	for _, kept := range []map[int]shim.Graph{e.graphs, e.deviceGraphs} {
		for _, g := range kept {
			err = errors.Join(err, g.Destroy())
		}
		clear(kept)
	}
	return err
}
