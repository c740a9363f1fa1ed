//go:build opencl && cgo && ((linux && (amd64 || arm64)) || (windows && amd64))

package opencl

import (
	"context"
	"fmt"
	"time"

	"github.com/bitcnn/bitcnn/backend/driver"
	"github.com/bitcnn/bitcnn/backend/internal/gpu"
	"github.com/bitcnn/bitcnn/backend/opencl/internal/candidates"
	"github.com/bitcnn/bitcnn/backend/opencl/internal/shim"
	"github.com/bitcnn/bitcnn/internal/clock"
)

// choose builds the best of the candidates. Small steps take general programs:
// specialising takes longer, too, than it could ever save.
func (e *executable) choose(ctx context.Context, step int, all []candidates.Candidate) (*built, error) {
	d := e.device
	key := gpu.Key(e.config.MaxBatch, all)
	tuner := gpu.Tuner{Cache: d.tuning, From: d.specialiseFrom, Emulated: d.info.Kind == driver.Emulated}
	i, why, known := gpu.Decide(tuner, key, all, e.plan.Products(step))
	if i < 0 {
		return e.measure(ctx, step, all, key)
	}
	b, err := d.buildStep(ctx, all[i], why != gpu.WhySmall, &e.memory)
	if dropped(err) {
		return e.another(ctx, all, i, err)
	}
	if err != nil {
		return nil, err
	}
	b.why = why
	switch {
	case why == gpu.WhySmall:
		b.why = whySmall
	case why == gpu.WhyKnown && !b.setGroups(known.Groups): // nonsense in the file
		b.release(d)
		return e.measure(ctx, step, all, key)
	}
	return b, nil
}

// another builds the first candidate beside one that was refused.
func (e *executable) another(ctx context.Context, all []candidates.Candidate, not int, cause error) (*built, error) {
	e.device.refuse("kernels "+all[not].Variant, cause)
	for k, c := range all {
		if k == not {
			continue
		}
		b, err := e.device.buildStep(ctx, c, false, &e.memory)
		if err == nil {
			b.why = "the driver refuses " + all[not].Variant
			return b, nil
		}
		if !dropped(err) {
			return nil, err
		}
	}
	return nil, cause
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

// measure builds all candidates that the driver does not refuse and keeps the fastest of those
// that compute the same. It is remembered if it was compared with all.
func (e *executable) measure(ctx context.Context, step int, all []candidates.Candidate, key string) (*built, error) {
	d := e.device
	var t *gpu.Trial
	if len(all) > 1 {
		t = gpu.NewTrial(e.plan, step, e.config.MaxBatch)
	}
	var contest gpu.Contest[*built]
	var refusal error
	release := func(list []*built) {
		for _, b := range list {
			b.release(d)
		}
	}
	for _, c := range all {
		b, output, took, err := e.tryOut(ctx, t, c)
		if dropped(err) {
			d.refuse("kernels "+c.Variant, err)
			if refusal == nil {
				refusal = err
			}
			continue
		}
		if err != nil {
			best, _, _, rest, ok := contest.End()
			if ok {
				rest = append(rest, best)
			}
			release(rest)
			return nil, err
		}
		release(contest.Enter(c.Variant, c.Variant == gpu.Direct, output, took, b))
	}
	best, race, wrong, rest, ok := contest.End()
	if !ok {
		return nil, refusal
	}
	release(rest)
	best.why = gpu.Why(gpu.WhyMeasured, wrong)
	if refusal == nil {
		entry := race.Entry()
		entry.Step, entry.Variant, entry.Groups, entry.Wrong = all[0].Specs[0].G.About(e.config.MaxBatch), best.variant, best.groups(), wrong
		d.tuning.Put(key, entry)
	}
	return best, nil
}

// tryOut builds a candidate, measures it and, if there are others, computes what it writes.
func (e *executable) tryOut(ctx context.Context, t *gpu.Trial, c candidates.Candidate) (b *built, output uint64, took gpu.Times, err error) {
	if b, err = e.device.buildStep(ctx, c, true, &e.memory); err != nil {
		return nil, 0, took, err
	}
	took, err = e.device.tune(ctx, b, e.queue, e.config.MaxBatch)
	if err == nil && t != nil {
		output, err = e.output(t, b)
	}
	if err != nil {
		b.release(e.device)
		return nil, 0, took, err
	}
	return b, output, took, nil
}

// output returns the hash of what a candidate writes, with the work-groups that it has.
func (e *executable) output(t *gpu.Trial, b *built) (uint64, error) {
	to, bytes := shim.BufferOf(e.memory.tensors[t.Step.Out]), e.bytes(t.Step.Out, t.Images)
	memory := contents(&t.Output, bytes)
	gpu.Clear(memory)
	if err := e.queue.Write(to, bytes, data(&t.Output), true); err != nil {
		return 0, err
	}
	for k, i := range t.Step.In { // each time, for the output may lie there
		if err := e.queue.Write(shim.BufferOf(e.memory.tensors[i]), e.bytes(i, t.Images), data(&t.Inputs[k]), true); err != nil {
			return 0, err
		}
	}
	if err := b.enqueue(e.queue, t.Images, false); err != nil {
		return 0, err
	}
	err := e.queue.Read(to, bytes, data(&t.Output), true)
	return gpu.Hash(memory), err
}

// Sizes of work-groups to choose from are powers of two.
const smallestGroup, largestGroup = 16, 256

// tune gives every kernel of a step the fastest size of work-groups, and returns the
// time of all together. Sizes that the driver refuses are left out. Where it has no queue that
// tells times, queue is used.
func (d *device) tune(ctx context.Context, b *built, queue shim.Queue, batch int) (total gpu.Times, err error) {
	own := bag{context: d.context}
	defer own.release()
	object, err := own.queue(d, true)
	switch {
	case err == nil:
		queue = shim.QueueOf(object)
	case !refused(err):
		return total, err
	}
	for _, l := range b.launches {
		best := 0
		var race gpu.Race
		var refusal error
		for _, size := range l.groups() {
			if size < smallestGroup && best > 0 {
				break // which is for want of anything else
			}
			l.setLocal(size)
			took, err := d.time(ctx, l, queue, batch)
			if refused(err) {
				d.refuse("a size of work-groups", err)
				refusal = err
				continue
			}
			if err != nil {
				return total, err
			}
			if race.Add(took) {
				best = size
			}
		}
		if best == 0 {
			return total, refusal
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
func (d *device) time(ctx context.Context, l *launch, queue shim.Queue, batch int) (gpu.Times, error) {
	var rounds []float64
	for i := range 1 + tuningRounds {
		if err := ctx.Err(); err != nil {
			return gpu.Times{}, err
		}
		start := clock.Now()
		err := l.enqueue(queue, batch, !d.untimed.Load())
		if err == nil {
			if err = queue.Finish(); err != nil {
				err = fmt.Errorf("kernel %s, work-groups of %d: %w", l.name, l.sizes.Local(), err)
			}
		}
		var took time.Duration
		if err == nil {
			took = d.elapsed(start, l)
		}
		l.dropEvents()
		if err != nil {
			return gpu.Times{}, err
		}
		if l.atOnce = d.atOnce(took, batch); i > 0 {
			rounds = append(rounds, took.Seconds())
		}
	}
	return gpu.NewTimes(rounds), nil
}
