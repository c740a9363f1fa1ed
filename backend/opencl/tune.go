//go:build opencl && cgo && linux && (amd64 || arm64)

package opencl

import (
	"context"
	"errors"
	"fmt"

	"github.com/bitcnn/bitcnn/backend/driver"
	"github.com/bitcnn/bitcnn/backend/internal/gpu"
	"github.com/bitcnn/bitcnn/backend/opencl/internal/candidates"
	"github.com/bitcnn/bitcnn/backend/opencl/internal/shim"
)

// choose builds the best of the candidates. Small steps take general programs:
// specialising takes longer, too, than it could ever save.
func (d *device) choose(ctx context.Context, all []candidates.Candidate, macs int64, m memory, batch int) (*built, error) {
	key := gpu.Key(batch, all)
	tuner := gpu.Tuner{Cache: d.tuning, From: d.specialiseFrom, Emulated: d.info.Kind == driver.Emulated}
	i, why, known := gpu.Decide(tuner, key, all, macs)
	if i < 0 {
		return d.measure(ctx, all, m, key, batch)
	}
	b, err := d.buildStep(ctx, all[i], why != gpu.WhySmall, m)
	if err != nil {
		return nil, err
	}
	b.why = why
	switch {
	case why == gpu.WhySmall:
		b.why = whySmall
	case why == gpu.WhyKnown && !b.setGroups(known.Groups): // nonsense in the file
		b.release(d)
		return d.measure(ctx, all, m, key, batch)
	}
	return b, nil
}

// setGroups sets the sizes of the work-groups and reports whether they make
// sense.
func (b *built) setGroups(groups []int) bool {
	if len(groups) != len(b.launches) {
		return false
	}
	for i, l := range b.launches {
		if l.local == 0 && (groups[i] < 1 || groups[i] > l.largest) || l.local > 0 && groups[i] != l.local {
			return false
		}
	}
	for i, l := range b.launches {
		l.setLocal(groups[i])
	}
	return true
}

// groups are the sizes of the work-groups.
func (b *built) groups() []int {
	var sizes []int
	for _, l := range b.launches {
		sizes = append(sizes, l.sizes.Local())
	}
	return sizes
}

// measure builds all candidates that the driver does not refuse and keeps the fastest. It
// is remembered if it was compared with all.
func (d *device) measure(ctx context.Context, all []candidates.Candidate, m memory, key string, batch int) (best *built, err error) {
	defer func() {
		if err != nil && best != nil {
			best.release(d)
			best = nil
		}
	}()
	var race gpu.Race
	var refusal error
	for _, c := range all {
		b, took, err := d.tryOut(ctx, c, m, batch)
		if refused(err) {
			if refusal == nil {
				refusal = err
			}
			continue
		}
		if err != nil {
			return best, err
		}
		slower := b
		if race.Add(took) {
			best, slower = b, best
		}
		if slower != nil {
			slower.release(d)
		}
	}
	if best == nil {
		return nil, refusal
	}
	best.why = gpu.WhyMeasured
	if refusal == nil {
		entry := race.Entry()
		entry.Step, entry.Variant, entry.Groups = all[0].Specs[0].G.About(batch), best.variant, best.groups()
		d.tuning.Put(key, entry)
	}
	return best, nil
}

// tryOut builds a candidate and measures it.
func (d *device) tryOut(ctx context.Context, c candidates.Candidate, m memory, batch int) (*built, gpu.Times, error) {
	b, err := d.buildStep(ctx, c, true, m)
	if err != nil {
		return nil, gpu.Times{}, err
	}
	took, err := d.tune(ctx, b, batch)
	if err != nil {
		b.release(d)
		return nil, gpu.Times{}, err
	}
	return b, took, nil
}

// refused reports whether an error of a candidate says nothing about others: the compiler
// takes exception to its source, or it is too large for the device.
func refused(err error) bool {
	var code *shim.Error
	return errors.Is(err, errBuild) || errors.Is(err, errGroup) ||
		errors.As(err, &code) && (code.Code == shim.OutOfResources || code.Code == shim.InvalidGroupSize)
}

// Sizes of work-groups to choose from are powers of two.
const smallestGroup, largestGroup = 16, 256

// tune gives every kernel of a step the fastest size of work-groups, and returns the
// time of all together.
func (d *device) tune(ctx context.Context, b *built, batch int) (total gpu.Times, err error) {
	own := bag{context: d.context}
	defer own.release()
	object, err := own.queue(d, true)
	if err != nil {
		return total, err
	}
	queue := shim.QueueOf(object)
	for _, l := range b.launches {
		sizes := []int{l.local}
		if l.local == 0 {
			sizes = sizes[:0]
			for size := smallestGroup; size <= min(largestGroup, l.largest); size *= 2 {
				sizes = append(sizes, size)
			}
			if len(sizes) == 0 {
				sizes = []int{l.largest}
			}
		}
		best := 0
		var race gpu.Race
		for _, size := range sizes {
			l.setLocal(size)
			took, err := l.time(ctx, queue, batch)
			if err != nil {
				return total, err
			}
			if race.Add(took) {
				best = size
			}
		}
		l.setLocal(best)
		total = total.Add(race.Best())
	}
	return total, nil
}

// tuningRounds is how often a kernel is timed, after it has been launched once to warm
// up.
const tuningRounds = 4

// time measures a kernel in a few rounds.
func (l *launch) time(ctx context.Context, queue shim.Queue, batch int) (gpu.Times, error) {
	l.sizes.SetImages(batch)
	var rounds []float64
	for i := range 1 + tuningRounds {
		if err := ctx.Err(); err != nil {
			return gpu.Times{}, err
		}
		err := queue.Launch(l.kernel, &l.sizes, &l.event)
		if err == nil {
			err = queue.Finish()
		}
		took := int64(0)
		if err == nil {
			took, err = l.event.Nanoseconds()
		}
		l.event.Release()
		if err != nil {
			return gpu.Times{}, fmt.Errorf("kernel %s, work-groups of %d: %w", l.name, l.sizes.Local(), err)
		}
		if i > 0 {
			rounds = append(rounds, float64(took)/1e9)
		}
	}
	return gpu.NewTimes(rounds), nil
}
