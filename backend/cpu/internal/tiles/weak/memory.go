package weak

import (
	"sync"
	"time"
)

// accesses are the last ones of a location, by thread, to find races.
type accesses struct{ written, read, plainWritten, plainRead clock }

func (a *accesses) describe(s *state) {
	s.addClocks(&a.written, &a.read, &a.plainWritten, &a.plainRead)
}

// access checks that an access is no race.
func (a *accesses) access(name string, write, plain bool) {
	r := current
	t := r.now
	conflicts := []*clock{&a.plainWritten}
	if plain {
		conflicts = append(conflicts, &a.written)
	}
	if write {
		conflicts = append(conflicts, &a.plainRead)
		if plain {
			conflicts = append(conflicts, &a.read)
		}
	}
	for _, c := range conflicts {
		if !t.clock.covers(c) {
			r.note("%s is accessed", name)
			r.fail("race at " + name)
		}
	}
	to := &a.read
	switch {
	case write && plain:
		to = &a.plainWritten
	case write:
		to = &a.written
	case plain:
		to = &a.plainRead
	}
	to[t.id] = t.clock[t.id]
}

// location is what atomic operations access.
type location struct {
	name   string
	place  int
	values []value
	accesses
}

func newLocation(name string) *location {
	l := &location{name: name, place: current.places, values: make([]value, 1)}
	current.places++
	current.objects = append(current.objects, l)
	return l
}

func (l *location) describe(s *state) {
	if current.mixed {
		l.accesses.describe(s)
	}
	s.add(uint64(len(l.values)))
	for i := range l.values {
		s.addValue(&l.values[i])
	}
	for _, t := range current.threads {
		s.add(uint64(*l.oldest(t)))
	}
}

// push gives a location a value, and forgets those that nobody may read any more.
func (l *location) push(v value) {
	l.values = append(l.values, v)
	drop := len(l.values) - 1
	if current.stale {
		for _, t := range current.threads {
			drop = min(drop, *l.oldest(t))
		}
	}
	l.values = append(l.values[:0:0], l.values[drop:]...)
	for _, t := range current.threads {
		*l.oldest(t) = max(*l.oldest(t)-drop, 0)
	}
}

// oldest returns the place of the oldest value that a thread may read.
func (l *location) oldest(t *thread) *int {
	for len(t.floor) <= l.place {
		t.floor = append(t.floor, 0)
	}
	floor := &t.floor[l.place]
	for i := len(l.values) - 1; i > *floor; i-- {
		if v := &l.values[i]; v.at <= t.clock[v.by] {
			*floor = i
		}
	}
	return floor
}

func (l *location) buffered(t *thread) (uint64, bool) {
	for i := len(t.buffer) - 1; i >= 0; i-- {
		if t.buffer[i].to == l {
			return t.buffer[i].bits, true
		}
	}
	return 0, false
}

func (l *location) load(o Order) uint64 {
	r := current
	if !r.step(nil) {
		return l.values[len(l.values)-1].bits
	}
	t := r.now
	l.access(l.name, false, o == NotAtomic)
	if v, ok := l.buffered(t); ok {
		t.returned(v)
		return v
	}
	floor := l.oldest(t)
	first := *floor
	if o == SeqCst {
		for i := first; i < len(l.values); i++ {
			if l.values[i].seqCst {
				first = i
			}
		}
	}
	i := len(l.values) - 1 - r.choose(len(l.values)-first)
	*floor = i
	v := &l.values[i]
	if o.acquires() {
		t.clock.join(&v.seen)
	}
	t.returned(v.bits)
	r.note("%s gives %d, of %d the last but %d", l.name, v.bits, len(l.values), len(l.values)-1-i)
	return v.bits
}

func (l *location) store(o Order, bits uint64) {
	r := current
	ready := func() bool { return true }
	if o == SeqCst {
		ready = r.waitDrained()
	}
	if !r.step(ready) {
		return
	}
	t := r.now
	l.access(l.name, true, o == NotAtomic)
	t.released()
	v := value{bits: bits, by: t.id, at: t.clock[t.id], release: o.releases(), seqCst: o == SeqCst}
	if v.release {
		v.seen = t.clock
	}
	t.released()
	t.returned(bits)
	if o == SeqCst {
		l.push(v)
		*l.oldest(t) = len(l.values) - 1
		r.note("%s gets %d", l.name, bits)
		return
	}
	t.buffer = append(t.buffer, pending{l, v})
	r.note("%s is to get %d", l.name, bits)
}

// waitDrained returns whether the buffer of the thread that calls it is empty.
func (r *run) waitDrained() func() bool {
	t := r.now
	return func() bool { return len(t.buffer) == 0 }
}

// update replaces the last value by what f makes of it, if f says so.
func (l *location) update(o Order, f func(bits uint64) (uint64, bool)) uint64 {
	r := current
	t := r.now
	if o == NotAtomic { // a load and a store
		bits := l.load(o)
		if v, ok := f(bits); ok {
			l.store(o, v)
		}
		return bits
	}
	ready := func() bool { _, waits := l.buffered(t); return !waits }
	if o.releases() {
		ready = r.waitDrained()
	}
	if !r.step(ready) {
		return l.values[len(l.values)-1].bits
	}
	old := l.values[len(l.values)-1]
	bits, ok := f(old.bits)
	l.access(l.name, ok, false)
	if o.acquires() {
		t.clock.join(&old.seen)
	}
	t.returned(old.bits)
	r.note("%s gives %d, gets %d: %v", l.name, old.bits, bits, ok)
	if !ok {
		return old.bits
	}
	t.released()
	v := value{bits: bits, by: t.id, at: t.clock[t.id], release: o.releases(), seqCst: o == SeqCst, seen: old.seen}
	if v.release {
		v.seen.join(&t.clock)
	}
	t.released()
	l.push(v)
	*l.oldest(t) = len(l.values) - 1
	return old.bits
}

// Int is an integer of sync/atomic. Its methods take the number of the place in the
// source that calls them.
type Int[T ~uint64 | ~uint32 | ~int32] struct{ at *location }

// The types of sync/atomic.
type (
	Uint64 = Int[uint64]
	Uint32 = Int[uint32]
	Int32  = Int[int32]
)

func (i *Int[T]) register(name string) { i.at = newLocation(name) }

func order(site int, kind Kind) Order {
	current.sites[site] = kind
	return current.orders[site]
}

func (i *Int[T]) Load(site int) T { return T(i.at.load(order(site, LoadKind))) }

func (i *Int[T]) Store(site int, v T) { i.at.store(order(site, StoreKind), uint64(v)) }

func (i *Int[T]) Swap(site int, v T) T {
	return T(i.at.update(order(site, UpdateKind), func(uint64) (uint64, bool) { return uint64(v), true }))
}

func (i *Int[T]) Add(site int, d T) T {
	return T(i.at.update(order(site, UpdateKind), func(v uint64) (uint64, bool) { return uint64(T(v) + d), true })) + d
}

func (i *Int[T]) CompareAndSwap(site int, from, to T) bool {
	swapped := false
	i.at.update(order(site, UpdateKind), func(v uint64) (uint64, bool) {
		swapped = T(v) == from
		return uint64(to), swapped
	})
	return swapped
}

// Plain is a variable that is not atomic.
type Plain[T any] struct {
	v T
	*plain
}

type plain struct {
	name string
	accesses
}

// PlainOf returns a variable with a value, which New makes known.
func PlainOf[T any](v T) Plain[T] { return Plain[T]{v: v} }

// NewPlain returns a variable that is known.
func NewPlain[T any](name string, v T) *Plain[T] {
	p := &Plain[T]{v: v}
	p.register(name)
	return p
}

func (p *Plain[T]) register(name string) {
	p.plain = &plain{name: name}
	current.objects = append(current.objects, p.plain)
}

func (p *plain) describe(s *state) { p.accesses.describe(s) }

func (p *Plain[T]) Get() T {
	if !current.ending {
		p.access(p.name, false, true)
	}
	return p.v
}

func (p *Plain[T]) Set(v T) {
	if !current.ending {
		p.access(p.name, true, true)
	}
	p.v = v
}

// known is what hands over memory whatever the order of the processor.
type known struct {
	seen clock
	n    int
}

func (k *known) register(string)   { current.objects = append(current.objects, k) }
func (k *known) describe(s *state) { s.add(uint64(k.n)); s.addClocks(&k.seen) }

func (k *known) pass() {
	t := current.now
	t.clock.join(&k.seen)
	k.seen = t.clock
	t.released()
	t.returned(uint64(k.n))
}

// Mutex is a sync.Mutex.
type Mutex struct{ known }

func (m *Mutex) Lock() {
	empty := current.waitDrained()
	if current.step(func() bool { return m.n == 0 && empty() }) {
		m.n = 1
		m.pass()
	}
}

func (m *Mutex) Unlock() {
	if current.give(current.waitDrained()) {
		m.n = 0
		m.pass()
	}
}

// Cond is a sync.Cond; n counts broadcasts.
type Cond struct {
	known
	mu *Mutex
}

// NewCond is that of sync.
func NewCond(mu sync.Locker) *Cond {
	c := &Cond{mu: mu.(*Mutex)}
	c.register("")
	return c
}

func (c *Cond) Wait() {
	current.step(nil)
	n := c.n // who broadcasts after Unlock wakes it
	current.now.returned(uint64(n))
	c.mu.Unlock()
	current.step(func() bool { return c.n != n })
	c.mu.Lock()
}

func (c *Cond) Broadcast() {
	if current.step(current.waitDrained()) {
		c.n++
		c.pass()
	}
}

// WaitGroup is a sync.WaitGroup.
type WaitGroup struct{ known }

func (w *WaitGroup) Add(n int) { w.n += n }

func (w *WaitGroup) Done() {
	if current.give(current.waitDrained()) {
		w.n--
		w.pass()
	}
}

func (w *WaitGroup) Wait() {
	if current.step(func() bool { return w.n == 0 }) {
		w.pass()
	}
}

// Chan is a channel of struct{}.
type Chan struct {
	known
	room int
}

// MakeChan is make, of a channel with room for so many.
func MakeChan(room int) *Chan {
	c := &Chan{room: room}
	c.register("")
	return c
}

func (c *Chan) Send() {
	empty := current.waitDrained()
	if current.give(func() bool { return c.n < c.room && empty() }) {
		c.n++
		c.pass()
	}
}

func (c *Chan) Receive() {
	if current.step(func() bool { return c.n > 0 }) {
		c.n--
		c.pass()
	}
}

// Instant is that of clock, and so are Now and Since: loops that end after a time run once.
type Instant int64

func Now() Instant {
	current.timers = append(current.timers, 0)
	return Instant(len(current.timers))
}

func Since(t Instant) time.Duration {
	timer := &current.timers[t-1]
	*timer++
	return time.Duration(*timer-1) * time.Hour
}

// Gosched is that of runtime.
func Gosched() {}
