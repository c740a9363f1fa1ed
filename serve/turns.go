package serve

import (
	"context"
	"sync"
)

// turns lets so many work at the same time. Of those who wait, the client is next who has the
// fewest at work, and of its requests the first, so that nobody waits for all that another one has
// sent.
type turns struct {
	mu      sync.Mutex
	free    int
	working map[string]int // by client
	waiting []waiter
}

type waiter struct {
	client string
	ready  chan struct{} // closed when it is its turn
}

func newTurns(places int) *turns { return &turns{free: places, working: map[string]int{}} }

// wait waits for a turn, which ends with done, or until ctx ends.
func (t *turns) wait(ctx context.Context, client string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	t.mu.Lock()
	if t.free > 0 {
		t.free--
		t.working[client]++
		t.mu.Unlock()
		return nil
	}
	w := waiter{client, make(chan struct{})}
	t.waiting = append(t.waiting, w)
	t.mu.Unlock()
	select {
	case <-w.ready:
		return nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	for i := range t.waiting {
		if t.waiting[i] == w {
			t.waiting = append(t.waiting[:i], t.waiting[i+1:]...)
			t.mu.Unlock()
			return ctx.Err()
		}
	}
	t.mu.Unlock()
	t.done(client) // it had just got it
	return ctx.Err()
}

// done ends a turn.
func (t *turns) done(client string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.working[client]--; t.working[client] == 0 {
		delete(t.working, client)
	}
	if len(t.waiting) == 0 {
		t.free++
		return
	}
	next := 0
	for i, w := range t.waiting {
		if t.working[w.client] < t.working[t.waiting[next].client] {
			next = i
		}
	}
	w := t.waiting[next]
	t.waiting = append(t.waiting[:next], t.waiting[next+1:]...)
	t.working[w.client]++
	close(w.ready)
}
