// Package budget counts work, so that loading a model takes time and memory
// linear in what the model honestly declares.
//
// Every stage opens a budget with the size of its input, grows it by what turns
// out to be declared, and charges it for each byte that it allocates and each
// iteration of a loop whose length the input decides, before it does the work.
// Charging is cheap enough for loops: the context is looked at once in a
// million units.
package budget

import (
	"context"
	"errors"
	"math"
)

// ErrExceeded is wrapped by the error of a Charge beyond the limit.
var ErrExceeded = errors.New("the model asks for far more work than its size explains")

// lookEvery is how many units may pass before the context is looked at again:
// about a millisecond of work.
const lookEvery = 1 << 20

// Budget is what one stage may still spend. It is not safe for concurrent use.
type Budget struct {
	ctx               context.Context
	limit, used, look int64
	err               error // the first one
}

// New returns a budget of limit units, bytes or iterations, which ends early
// with ctx.
func New(ctx context.Context, limit int64) *Budget {
	return &Budget{ctx: ctx, limit: max(limit, 0)}
}

// Grow adds units to the limit. It does not undo an error.
func (b *Budget) Grow(units int64) {
	if units > 0 {
		b.limit += min(units, math.MaxInt64-b.limit)
	}
}

// Charge spends units. The error wraps ErrExceeded, or is that of the context.
// Every further Charge returns the first error.
func (b *Budget) Charge(units int64) error {
	switch {
	case b.err != nil:
		return b.err
	case units < 0 || units > b.limit-b.used:
		b.err = ErrExceeded
		return b.err
	}
	b.used += units
	if b.used >= b.look {
		b.look = b.used + min(lookEvery, math.MaxInt64-b.used)
		b.err = b.ctx.Err()
	}
	return b.err
}

// Used returns how many units have been spent.
func (b *Budget) Used() int64 { return b.used }
