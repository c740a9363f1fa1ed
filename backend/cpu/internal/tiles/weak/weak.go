// Package weak finds errors of concurrent code that a processor with a weak memory
// order, or none at hand, would show: it runs the code with every order of its atomic
// operations, one at a time, and lets loads read what is out of date and stores wait
// behind later operations wherever their order of memory permits. Tests rewrite code to
// its types; nothing else uses it.
//
// Memory is that of C11 without speculation: a location has a list of values, each with
// what its writer had seen (a vector clock). A load that is not sequentially consistent
// reads any value that its thread has not seen replaced; stores that are not wait in a
// buffer, from where those of different locations leave in any order. Accesses that are
// not atomic are races unless one happens before the other.
package weak

import (
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"
)

// Order is how an atomic operation orders memory.
type Order uint8

// All atomic operations of Go are sequentially consistent.
const (
	SeqCst Order = iota
	AcqRel
	Acquire
	Release
	Relaxed
	NotAtomic
)

func (o Order) String() string {
	return [...]string{"sequentially consistent", "acquire and release", "acquire", "release", "relaxed", "not atomic"}[o]
}

func (o Order) acquires() bool { return o <= Acquire }
func (o Order) releases() bool { return o <= AcqRel || o == Release }

// Kind is what an atomic operation does.
type Kind uint8

// The kinds of operations.
const (
	LoadKind Kind = iota
	StoreKind
	UpdateKind
)

// Weaker returns orders that are weaker than those of Go: release is that of a store-release
// that later loads overtake, as they do under QEMU.
func (k Kind) Weaker() []Order {
	switch k {
	case LoadKind:
		return []Order{Relaxed, NotAtomic}
	case StoreKind:
		return []Order{Release, Relaxed, NotAtomic}
	}
	return []Order{Relaxed, NotAtomic}
}

// Set by rewritten code and for it: the names of the places that call atomic operations,
// and the error that it is to have, if any.
var (
	Sites  []string
	Broken string
)

// Result is that of an exploration.
type Result struct {
	Failure string   // "" if there is none
	Trace   []string // what led to it
	Runs    int
	States  int
	Sites   map[int]Kind // that were executed
}

// Explore runs body in all ways until one fails: by a race, by threads that wait for
// each other, by Fail, by a panic. The operations of a site have their order from orders,
// if it is there. body must do the same whenever operations have the same results. It looks no further than
// limit states, 0 for no limit.
func Explore(orders map[int]Order, limit int, body func()) Result {
	r := &run{orders: orders, seen: map[uint64]bool{}, sites: map[int]Kind{}}
	for _, o := range orders {
		r.stale = r.stale || o != SeqCst
		r.mixed = r.mixed || o == NotAtomic
	}
	runs := 0
	for {
		runs++
		r.execute(body)
		if r.failure != "" { // once more, for what led to it
			r.failure, r.tracing = "", true
			r.execute(body)
		}
		if r.failure != "" || limit > 0 && len(r.seen) > limit || !r.backtrack() {
			return Result{Failure: r.failure, Trace: r.trace, Runs: runs, States: len(r.seen), Sites: r.sites}
		}
	}
}

const maxThreads = 4

type clock [maxThreads]uint16

func (c *clock) join(d *clock) {
	for i, v := range d {
		c[i] = max(c[i], v)
	}
}

// covers reports whether what had the clock d has happened before.
func (c *clock) covers(d *clock) bool {
	for i, v := range d {
		if v > c[i] {
			return false
		}
	}
	return true
}

// thread is a goroutine of the code.
type thread struct {
	id      int
	clock   clock
	resume  func() (struct{}, bool)
	stop    func()
	yield   func(struct{}) bool
	ready   func() bool // nil for always
	ended   bool
	history uint64 // of what its operations have returned
	mark    uint64
	floor   []int // of a location, the oldest value that it may still read
	buffer  []pending
}

type pending struct {
	to *location
	value
}

// value is one of a location.
type value struct {
	bits    uint64
	by      int
	at      uint16 // clock of its writer
	seen    clock  // what who acquires it has seen
	release bool
	seqCst  bool
}

type choice struct{ of, taken int }

// run is the code running in one way.
type run struct {
	orders  map[int]Order
	seen    map[uint64]bool
	sites   map[int]Kind
	choices []choice
	depth   int
	threads []*thread
	objects []interface{ describe(s *state) }
	state   state
	stale   bool // some loads may read what is out of date
	mixed   bool // some operations are not atomic
	places  int
	now     *thread
	ending  bool
	failure string
	trace   []string
	tracing bool
	timers  []int
}

var current *run

// ended unwinds a thread that is not wanted any more.
type ended struct{}

// choose returns each number below n, in one run or another.
func (r *run) choose(n int) int {
	if n == 1 {
		return 0
	}
	if r.depth == len(r.choices) {
		r.choices = append(r.choices, choice{of: n})
	}
	r.depth++
	return r.choices[r.depth-1].taken
}

// backtrack goes to the next way, if there is one.
func (r *run) backtrack() bool {
	r.choices = r.choices[:r.depth]
	for n := len(r.choices); n > 0; n-- {
		if c := &r.choices[n-1]; c.taken+1 < c.of {
			c.taken++
			r.choices = r.choices[:n]
			return true
		}
	}
	return false
}

func (r *run) execute(body func()) {
	current = r
	r.depth, r.threads, r.objects, r.places, r.trace, r.timers, r.ending = 0, nil, nil, 0, nil, nil, false
	r.start(body)
	r.schedule()
	r.ending = true
	for _, t := range r.threads {
		r.now = t
		t.stop()
	}
	current = nil
}

func (r *run) start(body func()) {
	t := &thread{id: len(r.threads)}
	if t.id == maxThreads {
		r.fail(fmt.Sprintf("more than %d threads", maxThreads))
	}
	if r.now != nil && t.id > 0 {
		t.clock = r.now.clock
	}
	t.clock[t.id] = 1
	t.resume, t.stop = iter.Pull(func(yield func(struct{}) bool) {
		t.yield = yield
		defer func() {
			if p := recover(); p != nil && p != (ended{}) && r.failure == "" {
				r.failure = fmt.Sprint("panic: ", p)
			}
			t.ended = true
		}()
		body()
	})
	r.threads = append(r.threads, t)
}

// schedule has one thread after the other do an operation, or the memory take a store,
// until all have ended, or the state is one that was there before.
func (r *run) schedule() {
	type action struct {
		thread *thread
		store  int // of the buffer, or −1
	}
	var actions []action
	for r.failure == "" {
		actions = actions[:0]
		alive := false
		for _, t := range r.threads {
			if !t.ended {
				alive = true
				if t.ready == nil || t.ready() {
					actions = append(actions, action{t, -1})
				}
			}
			for i := range t.buffer {
				if t.leaves(i) {
					actions = append(actions, action{t, i})
				}
			}
		}
		if len(actions) == 0 {
			if alive {
				r.failure = "all threads wait"
			}
			return
		}
		if !r.tracing && r.depth >= len(r.choices) {
			state := r.hash()
			if r.seen[state] {
				return
			}
			r.seen[state] = true
		}
		a := actions[r.choose(len(actions))]
		r.now = a.thread
		if a.store >= 0 {
			p := a.thread.buffer[a.store]
			a.thread.buffer = append(a.thread.buffer[:a.store:a.store], a.thread.buffer[a.store+1:]...)
			p.to.push(p.value)
			r.note("%s has %d", p.to.name, p.bits)
			continue
		}
		a.thread.ready = nil
		a.thread.resume()
	}
}

// leaves reports whether a store may leave the buffer before those that are older.
func (t *thread) leaves(i int) bool {
	for _, older := range t.buffer[:i] {
		if t.buffer[i].release || older.to == t.buffer[i].to {
			return false
		}
	}
	return true
}

// step waits until it is the thread's turn and it is ready. It returns false when the
// thread is not wanted any more and unwinds.
func (r *run) step(ready func() bool) bool {
	if r.ending {
		return false
	}
	t := r.now
	t.ready = ready
	t.returned()
	if !t.yield(struct{}{}) {
		panic(ended{})
	}
	return true
}

// give is step for what lets others go on and what none of them can see otherwise, so
// that it need not be tried later.
func (r *run) give(ready func() bool) bool {
	if !r.ending && ready() {
		return true
	}
	return r.step(ready)
}

func (r *run) fail(what string) {
	if r.failure == "" {
		r.failure = what
	}
	r.ending = true
	panic(ended{})
}

func (r *run) note(format string, args ...any) {
	if !r.tracing {
		return
	}
	r.trace = append(r.trace, fmt.Sprintf("thread %d: ", r.now.id)+fmt.Sprintf(format, args...))
}

func mix(h uint64, values ...uint64) uint64 {
	for _, v := range values {
		h = (h ^ v) * 0x9e3779b97f4a7c15
		h ^= h >> 29
	}
	return h
}

// state is what decides how a run goes on: numbers, and clocks, of which only the order
// counts.
type state struct {
	numbers []uint64
	clocks  []clock
	times   []uint16
}

func (s *state) add(numbers ...uint64) { s.numbers = append(s.numbers, numbers...) }

func (s *state) addClocks(clocks ...*clock) {
	for _, c := range clocks {
		s.clocks = append(s.clocks, *c)
	}
}

func (s *state) addValue(v *value) {
	s.add(v.bits, uint64(v.by))
	var at clock
	at[v.by] = v.at
	s.addClocks(&at, &v.seen)
}

func (s *state) hash() uint64 {
	h := mix(uint64(len(s.clocks)), s.numbers...)
	for thread := range maxThreads {
		s.times = s.times[:0]
		for i := range s.clocks {
			if v := s.clocks[i][thread]; v > 0 {
				s.times = append(s.times, v)
			}
		}
		slices.Sort(s.times)
		s.times = slices.Compact(s.times)
		for i := range s.clocks {
			rank := 0
			if v := s.clocks[i][thread]; v > 0 {
				rank, _ = slices.BinarySearch(s.times, v)
				rank++
			}
			h = mix(h, uint64(rank))
		}
	}
	return h
}

func (r *run) hash() uint64 {
	s := &r.state
	s.numbers, s.clocks = s.numbers[:0], s.clocks[:0]
	for _, t := range r.threads {
		ended := uint64(0)
		if t.ended {
			ended = 1
		}
		s.add(t.history, ended, uint64(len(t.buffer)))
		s.addClocks(&t.clock)
		for i := range t.buffer {
			s.add(uint64(t.buffer[i].to.place))
			s.addValue(&t.buffer[i].value)
		}
	}
	for _, o := range r.objects {
		o.describe(s)
	}
	return s.hash()
}

// returned remembers what an operation has returned, on which the thread's next steps
// depend.
func (t *thread) returned(values ...uint64) { t.history = mix(t.history+1, values...) }

// Mark says that what the thread does from now on depends on nothing that its operations
// have returned before, but on this.
func Mark(v int) {
	current.now.mark = mix(1, uint64(v))
	current.now.history = current.now.mark
}

// Forget says that what the thread does from this place on depends on nothing that its
// operations have returned since Mark.
func Forget(place int) { current.now.history = mix(current.now.mark, uint64(place)) }

// released begins a new time of the thread.
func (t *thread) released() { t.clock[t.id]++ }

// New makes the fields of a structure, which p points to, known in their order.
func New[T any](p *T) *T {
	v := reflect.ValueOf(p).Elem()
	for i := range v.NumField() {
		field := reflect.NewAt(v.Field(i).Type(), v.Field(i).Addr().UnsafePointer())
		if f, ok := field.Interface().(interface{ register(name string) }); ok {
			f.register(v.Type().Field(i).Name)
		}
	}
	return p
}

// Go starts a thread.
func Go(body func()) {
	if current.ending {
		return
	}
	current.start(body)
	current.now.released()
}

// Fail says that the code is wrong.
func Fail(format string, args ...any) { current.fail(fmt.Sprintf(format, args...)) }

// Choose returns each number below n, in one run or another.
func Choose(n int) int {
	v := current.choose(n)
	current.now.returned(uint64(v))
	return v
}

// String is the failure with what led to it.
func (r *Result) String() string { return r.Failure + "\n" + strings.Join(r.Trace, "\n") }
