//go:build cuda && cgo && linux && (amd64 || arm64)

package cuda

import (
	"fmt"

	"github.com/bitcnn/bitcnn/backend/cuda/internal/candidates"
	"github.com/bitcnn/bitcnn/backend/driver"
	"github.com/bitcnn/bitcnn/backend/internal/gpu"
)

// choose builds the best of the candidates.
func (e *executable) choose(all []candidates.Candidate, macs int64) (*built, error) {
	d := e.device
	switch {
	case d.pick >= 0:
		return e.build(all[min(d.pick, len(all)-1)])
	case len(all) == 1:
		return e.buildBecause(gpu.WhyOnly, all[0])
	}
	key := gpu.Key(e.config.MaxBatch, all)
	tuner := gpu.Tuner{Cache: d.tuning, From: d.tuneFrom, Emulated: d.info.Kind == driver.Emulated}
	if i, why, _ := gpu.Decide(tuner, key, all, macs); i >= 0 {
		return e.buildBecause(why, all[i])
	}
	return e.measure(all, key)
}

func (e *executable) buildBecause(why string, c candidates.Candidate) (*built, error) {
	b, err := e.build(c)
	if err == nil {
		b.why = why
	}
	return b, err
}

// measure builds all candidates, keeps the fastest and remembers it.
func (e *executable) measure(all []candidates.Candidate, key string) (best *built, err error) {
	defer func() {
		if err != nil && best != nil {
			_ = best.bag.release() // the first error says more
			best = nil
		}
	}()
	var race gpu.Race
	var fastest candidates.Candidate
	for _, c := range all {
		b, err := e.build(c)
		if err != nil {
			return best, err
		}
		took, err := e.time(b)
		if err != nil {
			_ = b.bag.release()
			return best, fmt.Errorf("%s: %w", c.Name, err)
		}
		slower := b
		if race.Add(took) {
			best, slower, fastest = b, best, c
		}
		if slower != nil {
			if err := slower.bag.release(); err != nil {
				return best, err
			}
		}
	}
	entry := race.Entry()
	entry.Step, entry.Variant, entry.Name = fastest.Specs[0].G.About(e.config.MaxBatch), fastest.Variant, fastest.Name
	e.device.tuning.Put(key, entry)
	best.why = gpu.WhyMeasured
	return best, nil
}

const (
	tuningRounds   = 5
	tuningLaunches = 10 // in a round, since events count in half microseconds
)

// time measures a step in a few rounds.
func (e *executable) time(b *built) (gpu.Times, error) {
	switch e.device.fastest {
	case "":
	case b.variant:
		return gpu.Times{}, nil
	default:
		return gpu.Times{Shortest: 1}, nil
	}
	if err := b.enqueue(e.stream, e.config.MaxBatch); err != nil { // warms up
		return gpu.Times{}, err
	}
	var rounds []float64
	for range tuningRounds {
		if err := e.ctx.Err(); err != nil {
			return gpu.Times{}, err
		}
		took, err := timeOn(e.stream, e.start, e.stop, func() error {
			for range tuningLaunches {
				if err := b.enqueue(e.stream, e.config.MaxBatch); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return gpu.Times{}, err
		}
		rounds = append(rounds, took.Seconds()/tuningLaunches)
	}
	return gpu.NewTimes(rounds), nil
}
