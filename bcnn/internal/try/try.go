// Package try ends the import of a node where an error turns up, so that what an operator
// means can be written as arithmetic. An importer makes hundreds of small steps of which each
// may find that the file asks for what is not supported; with an error as a result of each,
// a third of the lines say nothing else.
//
// What fails panics with a value that only this package takes, in the package that began it:
// no panic of this package gets out of an importer. It is what encoding/json and text/template
// do. Other panics, which are bugs, pass through Catch; Recover makes errors of them, too.
package try

import "fmt"

// failure is what is panicked with.
type failure struct{ err error }

// Fail ends what Catch waits for with an error.
func Fail(err error) { panic(failure{err}) }

// Failf is Fail with an error of fmt.Errorf.
func Failf(format string, args ...any) { panic(Errorf(format, args...)) }

// Errorf returns what Failf panics with, for the end of a function, where the compiler wants
// to see a panic.
func Errorf(format string, args ...any) any { return failure{fmt.Errorf(format, args...)} }

// Check fails where err is one.
func Check(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// Value returns v, and fails where err is an error.
func Value[T any](v T, err error) T {
	Check(err)
	return v
}

// Values returns v and w, and fails where err is an error.
func Values[T, U any](v T, w U, err error) (T, U) {
	Check(err)
	return v, w
}

// Catch, deferred, makes a failure the error of the function that returns.
func Catch(err *error) {
	switch p := recover().(type) {
	case nil:
	case failure:
		*err = p.err
	default:
		panic(p)
	}
}

// Run returns the error that f failed with.
func Run(f func()) (err error) {
	defer Catch(&err)
	f()
	return nil
}

// Do returns what f returns, or the error that it failed with.
func Do[T any](f func() T) (v T, err error) {
	defer Catch(&err)
	return f(), nil
}
