//go:build cgo && (linux || (windows && amd64))

package main

import (
	"sync"
	"sync/atomic"
)

// A table gives objects numbers by which C knows them, and finds them again. A number
// is never given twice, so that one that was closed is told apart from all later ones.
//
// From the top, a number has 4 bits of the kind of table, 28 bits that say which object
// of its place it is, and 32 bits for the place plus 1.
type table[T any] struct {
	kind uint64 // from 1 to 15
	what string // "session"

	places atomic.Pointer[[]*place[T]] // grows
	mu     sync.Mutex
	free   []uint32
}

type place[T any] struct {
	used  uint64 // objects that have been here; under table.mu
	entry atomic.Pointer[entry[T]]
}

type entry[T any] struct {
	number uint64
	value  *T
}

const (
	kindShift  = 60
	usedShift  = 32
	usedMost   = 1<<(kindShift-usedShift) - 1
	placeMask  = 1<<usedShift - 1
	placesMost = placeMask
)

// add returns the number of a new object.
func (t *table[T]) add(value *T) (uint64, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.free) == 0 {
		var places []*place[T]
		if p := t.places.Load(); p != nil {
			places = *p
		}
		if len(places) == placesMost {
			return 0, invalid("too many %ss", t.what)
		}
		t.free = append(t.free, uint32(len(places)))
		// Readers have the old slice, or the new one with the new element.
		places = append(places, &place[T]{})
		t.places.Store(&places)
	}
	index := t.free[len(t.free)-1]
	t.free = t.free[:len(t.free)-1]
	p := (*t.places.Load())[index]
	p.used++
	number := t.kind<<kindShift | p.used<<usedShift | uint64(index+1)
	p.entry.Store(&entry[T]{number, value})
	return number, nil
}

func (t *table[T]) find(number uint64) *place[T] {
	places := t.places.Load()
	index := number&placeMask - 1 // of 0, more than there are
	if places == nil || number>>kindShift != t.kind || index >= uint64(len(*places)) {
		return nil
	}
	return (*places)[index]
}

// get returns an object.
func (t *table[T]) get(number uint64) (*T, error) {
	if p := t.find(number); p != nil {
		if e := p.entry.Load(); e != nil && e.number == number {
			return e.value, nil
		}
	}
	return nil, t.lost(number)
}

// take returns an object, which the table does not have any more.
func (t *table[T]) take(number uint64) (*T, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p := t.find(number); p != nil {
		if e := p.entry.Load(); e != nil && e.number == number {
			p.entry.Store(nil)
			if p.used < usedMost { // else its numbers have been used up
				t.free = append(t.free, uint32(number&placeMask-1))
			}
			return e.value, nil
		}
	}
	return nil, t.lostLocked(number)
}

// lost says why there is no object of a number.
func (t *table[T]) lost(number uint64) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lostLocked(number)
}

func (t *table[T]) lostLocked(number uint64) error {
	if p := t.find(number); p != nil {
		if used := number >> usedShift & usedMost; used >= 1 && used <= p.used {
			return &closedError{t.what}
		}
	}
	if number == 0 {
		return invalid("not a %s: the number is 0", t.what)
	}
	return invalid("%#x is not a %s", number, t.what)
}
