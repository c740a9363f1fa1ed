//go:build opencl && cgo && linux && (amd64 || arm64)

package opencl

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"

	"github.com/jgillich/go-opencl/cl"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/backend/opencl/internal/shim"
)

// choice is what was the fastest for a step.
type choice struct {
	Variant string
	Groups  []int // work-items of a work-group, per kernel
}

// choose builds the best of the candidates that there are. Small steps take
// general programs and the first candidate: measuring and specialising take longer
// than they could ever save.
func (d *device) choose(ctx context.Context, candidates []candidate, heavy bool, memory [scratches]*cl.MemObject, batch int) (*built, error) {
	var there []candidate
	for _, c := range candidates {
		if len(c.specs) > 0 {
			there = append(there, c)
		}
	}
	if len(there) == 0 {
		return nil, backend.ErrUnsupported
	}
	if !heavy {
		first := there[len(there)-1] // b, unless a is forced
		first.built.why = whySmall
		return first.built, d.buildStep(ctx, first.built, first.specs, false, memory)
	}
	key := tuningKey(there, batch)
	if known, ok := d.tuning.Get(key); ok {
		for _, c := range there {
			if c.variant != known.Variant {
				continue
			}
			if err := d.buildStep(ctx, c.built, c.specs, true, memory); err != nil {
				return nil, err
			}
			if c.built.setGroups(known.Groups) {
				c.built.why = whyKnown
				return c.built, nil
			}
			// Nonsense in the file: measured again, this variant only, since
			// the others have not been built.
			return d.measure(ctx, []candidate{c}, key, batch)
		}
	}
	for _, c := range there {
		if err := d.buildStep(ctx, c.built, c.specs, true, memory); err != nil {
			return nil, err
		}
	}
	if d.info.Kind == backend.Emulated {
		there[len(there)-1].built.why = whyEmulated
		return there[len(there)-1].built, nil
	}
	return d.measure(ctx, there, key, batch)
}

// tuningKey identifies the choice between candidates.
func tuningKey(candidates []candidate, batch int) string {
	h := sha256.New()
	fmt.Fprintln(h, batch)
	for _, c := range candidates {
		for _, s := range c.specs {
			fmt.Fprintln(h, c.variant, s.kernel, s.items, s.local, s.form.options(), s.g.options(true))
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:12])
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

// measure finds the fastest of built candidates and remembers it.
func (d *device) measure(ctx context.Context, candidates []candidate, key string, batch int) (*built, error) {
	var best candidate
	var groups []int
	fastest := int64(math.MaxInt64)
	for _, c := range candidates {
		sizes, took, err := d.tune(ctx, c.built, batch)
		if err != nil {
			return nil, err
		}
		if took < fastest {
			best, groups, fastest = c, sizes, took
		}
	}
	best.built.setGroups(groups)
	best.built.why = whyMeasured
	d.tuning.Put(key, choice{best.variant, groups})
	return best.built, nil
}

// Sizes of work-groups to choose from are powers of two.
const smallestGroup, largestGroup = 16, 256

// tune finds the fastest size of work-groups for every kernel of a step. It
// returns the time of all together, in nanoseconds.
func (d *device) tune(ctx context.Context, b *built, batch int) (groups []int, total int64, err error) {
	own := bag{context: d.context}
	defer own.release()
	object, err := own.queue(d, true)
	if err != nil {
		return nil, 0, err
	}
	queue := shim.QueueOf(object)
	for _, l := range b.launches {
		candidates := []int{l.local}
		if l.local == 0 {
			candidates = candidates[:0]
			for size := smallestGroup; size <= min(largestGroup, l.largest); size *= 2 {
				candidates = append(candidates, size)
			}
			if len(candidates) == 0 {
				candidates = []int{l.largest}
			}
		}
		best, fastest := 0, int64(math.MaxInt64)
		for _, size := range candidates {
			l.setLocal(size)
			took, err := l.time(ctx, queue, batch)
			if err != nil {
				return nil, 0, err
			}
			if took < fastest {
				best, fastest = size, took
			}
		}
		groups = append(groups, best)
		total += fastest
	}
	return groups, total, nil
}

// tuningRounds is how often a kernel is timed, once to warm up not counted.
const tuningRounds = 4

// time is the shortest time of a kernel, in nanoseconds.
func (l *launch) time(ctx context.Context, queue shim.Queue, batch int) (int64, error) {
	l.sizes.SetImages(batch)
	fastest := int64(math.MaxInt64)
	for range 1 + tuningRounds {
		if err := ctx.Err(); err != nil {
			return 0, err
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
			return 0, fmt.Errorf("kernel %s, work-groups of %d: %w", l.name, l.sizes.Local(), err)
		}
		fastest = min(fastest, took)
	}
	return fastest, nil
}
