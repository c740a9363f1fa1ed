package weak

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLitmus runs the tests by which memory orders are told apart: two threads with two
// locations, and a result that some orders permit.
func TestLitmus(t *testing.T) {
	const a, b, c, d = 1, 2, 3, 4 // sites: two of the first thread, two of the second
	type vars struct {
		X, Y Uint64
		P    Plain[int]
	}
	type orders = map[int]Order
	both := func(first func(v *vars), second func(v *vars), check func(v *vars)) func() {
		return func() {
			v := New(&vars{})
			var w WaitGroup
			w.register("")
			w.Add(1)
			Go(func() { second(v); w.Done() })
			first(v)
			w.Wait()
			check(v)
		}
	}
	var r, s uint64
	none := func(*vars) {}
	buffering := both(
		func(v *vars) { v.X.Store(a, 1); r = v.Y.Load(b) },
		func(v *vars) { v.Y.Store(c, 1); s = v.X.Load(d) },
		func(*vars) {
			if r == 0 && s == 0 {
				Fail("loads overtook stores")
			}
		})
	swaps := both(
		func(v *vars) { v.X.Swap(a, 1); r = v.Y.Load(b) },
		func(v *vars) { v.Y.Swap(c, 1); s = v.X.Load(d) },
		func(*vars) {
			if r == 0 && s == 0 {
				Fail("loads overtook stores")
			}
		})
	passing := both(
		func(v *vars) { v.X.Store(a, 7); v.Y.Store(b, 1) },
		func(v *vars) { r = v.Y.Load(c); s = v.X.Load(d) },
		func(*vars) {
			if r == 1 && s == 0 {
				Fail("the flag came first")
			}
		})
	plainPassing := both(
		func(v *vars) { v.P.Set(7); v.Y.Store(b, 1) },
		func(v *vars) {
			if v.Y.Load(c) == 1 && v.P.Get() != 7 {
				Fail("the flag came first")
			}
		}, none)
	coherence := both(
		func(v *vars) { v.X.Store(a, 1); v.X.Store(b, 2) },
		func(v *vars) { r = v.X.Load(c); s = v.X.Load(d) },
		func(*vars) {
			if r > s {
				Fail("values of a location went back")
			}
		})
	counting := both(
		func(v *vars) { v.X.Add(a, 1) },
		func(v *vars) { v.X.Add(c, 1) },
		func(v *vars) {
			if v.X.Load(d) != 2 {
				Fail("lost")
			}
		})
	sequence := both( // an update between keeps what was released
		func(v *vars) { v.P.Set(7); v.X.Store(a, 1); v.X.Add(b, 1) },
		func(v *vars) {
			if v.X.Load(c) == 2 {
				v.P.Get()
			}
		}, none)
	for _, k := range []struct {
		name   string
		body   func()
		orders orders
		fails  bool
	}{
		{"store buffering", buffering, nil, false},
		{"store buffering, a store released", buffering, orders{a: Release}, true},
		{"store buffering, loads acquire", buffering, orders{b: Acquire, d: Acquire}, true},
		{"store buffering, a load acquires", buffering, orders{d: Acquire}, true},
		{"swaps", swaps, nil, false},
		{"swaps, loads relaxed", swaps, orders{b: Relaxed, d: Relaxed}, true},
		{"message passing", passing, nil, false},
		{"message passing, release and acquire", passing, orders{a: Relaxed, b: Release, c: Acquire, d: Relaxed}, false},
		{"message passing, relaxed flag", passing, orders{a: Relaxed, b: Relaxed}, true},
		{"message passing, flag read relaxed", passing, orders{c: Relaxed, d: Relaxed}, true},
		{"message passing, stores alone relaxed", passing, orders{a: Relaxed}, false},
		{"plain message", plainPassing, nil, false},
		{"plain message, release and acquire", plainPassing, orders{b: Release, c: Acquire}, false},
		{"plain message, relaxed flag", plainPassing, orders{b: Relaxed}, true},
		{"plain message, flag read relaxed", plainPassing, orders{c: Relaxed}, true},
		{"plain message, flag not atomic", plainPassing, orders{b: NotAtomic}, true},
		{"plain message, flag read plainly", plainPassing, orders{c: NotAtomic}, true},
		{"coherence", coherence, orders{a: Relaxed, b: Relaxed, c: Relaxed, d: Relaxed}, false},
		{"counter", counting, orders{a: Relaxed, c: Relaxed}, false},
		{"counter that is not atomic", counting, orders{a: NotAtomic}, true},
		{"release sequence", sequence, orders{a: Release, b: Relaxed, c: Acquire}, false},
		{"no release", sequence, orders{a: Relaxed, b: Relaxed, c: Acquire}, true},
	} {
		t.Run(k.name, func(t *testing.T) {
			result := Explore(k.orders, 0, k.body)
			require.Equal(t, k.fails, result.Failure != "", result.String())
		})
	}
}

// TestWaiting has threads that wait for each other, and more of them than there may be.
func TestWaiting(t *testing.T) {
	handOver := func(lock bool) func() {
		return func() {
			var mu Mutex
			mu.register("")
			cond := NewCond(&mu)
			done, ready := MakeChan(1), NewPlain("ready", false)
			Go(func() {
				mu.Lock()
				for !ready.Get() {
					cond.Wait()
				}
				mu.Unlock()
				done.Send()
			})
			if lock {
				mu.Lock()
			}
			ready.Set(true)
			if lock {
				mu.Unlock()
			}
			cond.Broadcast()
			done.Receive()
		}
	}
	for _, k := range []struct {
		name string
		body func()
		want string
	}{
		{"a condition", handOver(true), ""},
		{"a condition without its lock", handOver(false), "race at ready"},
		{"a broadcast that came too early", func() {
			var mu Mutex
			mu.register("")
			cond := NewCond(&mu)
			Go(cond.Broadcast)
			mu.Lock()
			cond.Wait()
			mu.Unlock()
		}, "all threads wait"},
		{"an empty channel", func() { MakeChan(1).Receive() }, "all threads wait"},
		{"many threads", func() {
			for range maxThreads {
				Go(func() {})
			}
		}, "more than 4 threads"},
		{"a panic", func() { panic("no") }, "panic: no"},
		{"a choice", func() {
			if Choose(3) == 2 {
				Fail("the last one")
			}
		}, "the last one"},
	} {
		t.Run(k.name, func(t *testing.T) {
			require.Equal(t, k.want, Explore(nil, 0, k.body).Failure)
		})
	}
}
