//go:build cuda && cgo && ((linux && (amd64 || arm64)) || (windows && amd64))

package cuda

import (
	"errors"
	"fmt"

	"github.com/bitcnn/bitcnn/backend/cuda/internal/candidates"
	"github.com/bitcnn/bitcnn/backend/cuda/internal/shim"
	"github.com/bitcnn/bitcnn/backend/driver"
	"github.com/bitcnn/bitcnn/backend/internal/gpu"
)

// choose builds the best of the candidates of a step.
func (e *executable) choose(step int, all []candidates.Candidate) (*built, error) {
	d := e.device
	switch {
	case d.pick >= 0:
		return e.build(all[min(d.pick, len(all)-1)])
	case len(all) == 1:
		return e.buildBecause(gpu.WhyOnly, all[0])
	}
	key := gpu.Key(e.config.MaxBatch, all)
	tuner := gpu.Tuner{Cache: d.tuning, From: d.tuneFrom, Emulated: d.info.Kind == driver.Emulated}
	if i, why, _ := gpu.Decide(tuner, key, all, e.plan.Products(step)); i >= 0 {
		b, err := e.buildBecause(why, all[i])
		if !shim.Refused(err) {
			return b, err
		}
		return e.another(all, i, err)
	}
	return e.measure(step, all, key)
}

// another builds the first candidate beside one that was refused.
func (e *executable) another(all []candidates.Candidate, not int, cause error) (*built, error) {
	e.device.refuse("kernels "+all[not].Name, cause)
	for k, c := range all {
		if k == not {
			continue
		}
		b, err := e.buildBecause("the driver refuses "+all[not].Name, c)
		if !shim.Refused(err) {
			return b, err
		}
	}
	return nil, cause
}

func (e *executable) buildBecause(why string, c candidates.Candidate) (*built, error) {
	b, err := e.build(c)
	if err == nil {
		b.why = why
	}
	return b, err
}

// measure builds all candidates that the driver does not refuse and keeps the fastest of those
// that compute the same. It is remembered if it was compared with all.
func (e *executable) measure(step int, all []candidates.Candidate, key string) (*built, error) {
	t := gpu.NewTrial(e.plan, step, e.config.MaxBatch)
	var contest gpu.Contest[*built]
	var refused error
	release := func(list []*built) (err error) {
		for _, b := range list {
			err = errors.Join(err, b.bag.release())
		}
		return err
	}
	for _, c := range all {
		b, output, took, err := e.tryOut(t, c)
		if shim.Refused(err) {
			e.device.refuse("kernels "+c.Name, err)
			if refused == nil {
				refused = fmt.Errorf("%s: %w", c.Name, err)
			}
			continue
		}
		if err == nil {
			err = release(contest.Enter(c.Name, c.Variant == gpu.Direct, output, took, b))
		}
		if err != nil {
			best, _, _, rest, ok := contest.End()
			if ok {
				rest = append(rest, best)
			}
			_ = release(rest) // the first error says more
			return nil, fmt.Errorf("%s: %w", c.Name, err)
		}
	}
	best, race, wrong, rest, ok := contest.End()
	if !ok {
		return nil, refused
	}
	if err := release(rest); err != nil {
		_ = best.bag.release()
		return nil, err
	}
	if refused == nil {
		entry := race.Entry()
		entry.Step, entry.Variant, entry.Name, entry.Wrong = all[0].Specs[0].G.About(e.config.MaxBatch), best.variant, best.name, wrong
		e.device.tuning.Put(key, entry)
	}
	best.why = gpu.Why(gpu.WhyMeasured, wrong)
	return best, nil
}

// tryOut builds a candidate, computes what it writes, and measures it.
func (e *executable) tryOut(t *gpu.Trial, c candidates.Candidate) (b *built, output uint64, took gpu.Times, err error) {
	if b, err = e.build(c); err != nil {
		return nil, 0, took, err
	}
	if output, err = e.output(t, b); err == nil {
		took, err = e.time(b)
	}
	if err != nil {
		_ = b.bag.release()
		return nil, 0, took, err
	}
	return b, output, took, nil
}

const (
	tuningRounds   = 5
	tuningLaunches = 10 // in a round, since events count in half microseconds
)

// time measures a step, as a node of a graph if the driver records it.
func (e *executable) time(b *built) (gpu.Times, error) {
	if times, ok := e.device.pretended(b.variant); ok {
		return times, nil
	}
	enqueue := func() error { return b.enqueue(e.stream, e.config.MaxBatch) }
	if err := enqueue(); err != nil { // warms up
		return gpu.Times{}, err
	}
	launches := func() error {
		for range tuningLaunches {
			if err := enqueue(); err != nil {
				return err
			}
		}
		return nil
	}
	g, recorded, err := e.record(launches)
	if err != nil {
		return gpu.Times{}, err
	}
	if !recorded {
		return e.rounds(launches)
	}
	times, err := e.rounds(func() error { return g.Launch(e.stream) })
	return times, errors.Join(err, g.Destroy())
}

// rounds measures what a function enqueues, tuningLaunches times the same.
func (e *executable) rounds(launches func() error) (gpu.Times, error) {
	var rounds []float64
	for range tuningRounds {
		if err := e.ctx.Err(); err != nil {
			return gpu.Times{}, err
		}
		took, err := timeOn(e.stream, e.start, e.stop, launches)
		if err != nil {
			return gpu.Times{}, err
		}
		rounds = append(rounds, took.Seconds()/tuningLaunches)
	}
	return gpu.NewTimes(rounds), nil
}

// pretended are the times of a variant, where a test says which is the fastest.
func (d *device) pretended(variant string) (gpu.Times, bool) {
	switch d.fastest {
	case "":
		return gpu.Times{}, false
	case variant:
		return gpu.Times{}, true
	}
	return gpu.Times{Shortest: 1}, true
}
