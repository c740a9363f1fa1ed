// Package weights shares the weights of a plan, in the order in which kernels read
// them, between all executables of the plan.
package weights

import (
	"reflect"
	"runtime"
	"sync"
	"weak"

	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// Plan holds the weights of a plan for one instruction set. Executables hold it, and
// it goes with the last of them.
type Plan struct {
	mu    sync.Mutex
	parts map[part]any
}

// part names what a step has: it may have one value of each type.
type part struct {
	step  int
	value reflect.Type
}

// key names a Plan and keeps nothing alive.
type key struct {
	plan weak.Pointer[plan.Plan]
	isa  string
}

var plans = struct {
	sync.Mutex
	of map[key]weak.Pointer[Plan]
}{of: make(map[key]weak.Pointer[Plan])}

// Of returns the weights of a plan for an instruction set: those that another
// executable holds, or else none yet.
func Of(plan *plan.Plan, isa string) *Plan {
	k := key{weak.Make(plan), isa}
	plans.Lock()
	defer plans.Unlock()
	if p := plans.of[k].Value(); p != nil {
		return p
	}
	p := &Plan{parts: make(map[part]any)}
	w := weak.Make(p)
	plans.of[k] = w
	runtime.AddCleanup(p, func(k key) {
		plans.Lock()
		defer plans.Unlock()
		if plans.of[k] == w { // there may be a new one already
			delete(plans.of, k)
		}
	}, k)
	return p
}

// Share returns the value of type T of a step: the one that there is, or what pack
// makes. That depends on the step and the instruction set only, and nobody changes it.
// If the compilation has ended meanwhile, it may be incomplete and is not kept. Of those
// who ask for a value at the same time one makes it, and the others wait.
func Share[T any](p *Plan, step int, ended func() bool, pack func() T) T {
	k := part{step, reflect.TypeFor[T]()}
	p.mu.Lock()
	defer p.mu.Unlock()
	if v, ok := p.parts[k]; ok {
		return v.(T)
	}
	v := pack()
	if !ended() {
		p.parts[k] = v
	}
	return v
}
