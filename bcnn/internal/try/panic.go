package try

import (
	"errors"
	"fmt"
	"path"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
)

// ErrPanic is in the chain of every error that Recover has made of a panic. Tests fail on it
// where other errors are good: it is never the fault of a file alone.
var ErrPanic = errors.New("internal error")

// Panic is the error that a panic of another package becomes, such as an index out of range.
type Panic struct {
	Value any
	Where string // function, file and line that panicked
	Stack []byte // of the goroutine, as debug.Stack has it
}

// longest is how many bytes of a panic's value the text of its error has.
const longest = 200

func (p *Panic) Error() string {
	s := fmt.Sprint(p.Value)
	s = strconv.Quote(s[:min(len(s), longest)]) // it may hold names of a file
	return fmt.Sprintf("%v at %s: %s; this is a bug of the importer, please report it", ErrPanic, p.Where, s[1:len(s)-1])
}

// Panicked returns Stack, for who may not import this package.
func (p *Panic) Panicked() []byte { return p.Stack }

// Is tells errors.Is that it is ErrPanic.
func (p *Panic) Is(target error) bool { return target == ErrPanic }

// Recover, deferred, makes a failure the error of the function that returns, as Catch does,
// and any other panic an error of type *Panic. It belongs where an importer begins a node, so
// that the error names it, and where it begins a file. Where an error has the importer try
// something else, Catch is right: a bug would be hidden there.
//
// A panic of another goroutine, and what ends a process, such as a stack that is too deep,
// are not caught.
func Recover(err *error) {
	switch p := recover().(type) {
	case nil:
	case failure:
		*err = p.err
	default:
		*err = &Panic{Value: p, Where: where(), Stack: debug.Stack()}
	}
}

// DoSafely is Do with Recover.
func DoSafely[T any](f func() T) (v T, err error) {
	defer Recover(&err)
	return f(), nil
}

// where says what panicked, seen from a function that is deferred. Catch panics anew with
// what is not its own, above the frames of the first panic, so the last panic counts.
func where() string {
	const most = 256
	var pcs [most]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(0, pcs[:])])
	found, panicked := "unknown", false
	for {
		f, more := frames.Next()
		switch {
		case f.Function == "runtime.gopanic":
			panicked = true
		case panicked && !strings.HasPrefix(f.Function, "runtime."):
			found = fmt.Sprintf("%s (%s:%d)", path.Base(f.Function), path.Base(f.File), f.Line)
			panicked = false
		}
		if !more {
			return found
		}
	}
}
