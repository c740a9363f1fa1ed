//go:build cuda && cgo && linux && (amd64 || arm64)

package cuda

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"

	"github.com/bitcnn/bitcnn/backend"
)

// choice is what was the fastest for a step.
type choice struct{ Variant, Name string }

// choose builds the best of the candidates. Small steps take the first: measuring
// takes longer than it could ever save. The times of an emulator say nothing.
func (e *executable) choose(candidates []candidate, macs int64) (*built, error) {
	d := e.device
	if len(candidates) == 0 {
		return nil, backend.ErrUnsupported
	}
	if d.pick >= 0 {
		return e.build(candidates[min(d.pick, len(candidates)-1)])
	}
	switch {
	case len(candidates) == 1:
		return e.buildBecause(whyOnly, candidates[0])
	case macs < d.tuneFrom:
		return e.buildBecause(whySmall, candidates[0])
	case d.info.Kind == backend.Emulated:
		return e.buildBecause(whyEmulated, candidates[0])
	}
	key := tuningKey(candidates, e.opts.MaxBatch)
	if known, ok := d.tuning.Get(key); ok {
		for _, c := range candidates {
			if c.variant == known.Variant && c.name == known.Name {
				return e.buildBecause(whyKnown, c)
			}
		}
	}
	return e.measure(candidates, key)
}

func (e *executable) buildBecause(why string, c candidate) (*built, error) {
	b, err := e.build(c)
	if err == nil {
		b.why = why
	}
	return b, err
}

// tuningKey identifies the choice between candidates.
func tuningKey(candidates []candidate, batch int) string {
	h := sha256.New()
	fmt.Fprintln(h, batch)
	for _, c := range candidates {
		fmt.Fprintln(h, c.variant, c.name)
		for _, s := range c.specs {
			fmt.Fprintln(h, s.kernel, s.g, s.grid, s.block, s.shared)
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:12])
}

// measure builds all candidates, keeps the fastest and remembers it.
func (e *executable) measure(candidates []candidate, key string) (best *built, err error) {
	defer func() {
		if err != nil && best != nil {
			_ = best.bag.release() // the first error says more
			best = nil
		}
	}()
	var name choice
	fastest := math.Inf(1)
	for _, c := range candidates {
		b, err := e.build(c)
		if err != nil {
			return best, err
		}
		took, err := e.time(b)
		if err != nil {
			_ = b.bag.release()
			return best, fmt.Errorf("%s: %w", c.name, err)
		}
		slower := b
		if took < fastest {
			fastest, name = took, choice{c.variant, c.name}
			best, slower = b, best
		}
		if slower != nil {
			if err := slower.bag.release(); err != nil {
				return best, err
			}
		}
	}
	e.device.tuning.Put(key, name)
	best.why = whyMeasured
	return best, nil
}

const (
	tuningRounds   = 5
	tuningLaunches = 10 // in a round, since events count in half microseconds
)

// time is the shortest time of a step over a few rounds, in seconds.
func (e *executable) time(b *built) (float64, error) {
	switch e.device.fastest {
	case "":
	case b.variant:
		return 0, nil
	default:
		return 1, nil
	}
	fastest := math.Inf(1)
	if err := b.enqueue(e.stream, e.opts.MaxBatch); err != nil { // warms up
		return 0, err
	}
	for range tuningRounds {
		if err := e.ctx.Err(); err != nil {
			return 0, err
		}
		took, err := timeOn(e.stream, e.start, e.stop, func() error {
			for range tuningLaunches {
				if err := b.enqueue(e.stream, e.opts.MaxBatch); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return 0, err
		}
		fastest = min(fastest, took.Seconds()/tuningLaunches)
	}
	return fastest, nil
}
