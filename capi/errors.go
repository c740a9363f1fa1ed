//go:build cgo && (linux || (windows && amd64))

package main

/*
#include "bitcnn.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/bitcnn/bitcnn"
)

// invalidError is about an argument that makes no sense.
type invalidError struct{ text string }

func (e *invalidError) Error() string { return e.text }

func invalid(format string, args ...any) error { return &invalidError{fmt.Sprintf(format, args...)} }

// notFoundError is about an index or a name that is not there.
type notFoundError struct{ text string }

func (e *notFoundError) Error() string { return e.text }

// closedError is about a number of an object that was closed.
type closedError struct{ what string }

func (e *closedError) Error() string { return "the " + e.what + " is closed" }

func (e *closedError) Is(target error) bool { return target == bitcnn.ErrClosed }

// modelError is about a model that cannot be loaded.
type modelError struct{ error }

func (e *modelError) Unwrap() error { return e.error }

// imageError is about a photo that cannot be read.
type imageError struct{ error }

// panicError is a mistake in this module.
type panicError struct{ value any }

func (e *panicError) Error() string { return fmt.Sprintf("internal error in bitcnn: %v", e.value) }

// statusOf tells errors apart for C.
func statusOf(err error) C.int {
	var inv *invalidError
	var missing *notFoundError
	var model *modelError
	var image *imageError
	var mistake *panicError
	var path *fs.PathError
	var number syscall.Errno
	switch {
	case errors.As(err, &mistake):
		return C.BITCNN_INTERNAL
	case errors.As(err, &inv):
		return C.BITCNN_INVALID
	case errors.As(err, &missing), errors.Is(err, fs.ErrNotExist):
		return C.BITCNN_NOT_FOUND
	case errors.As(err, &path), errors.As(err, &number), errors.As(err, &image):
		return C.BITCNN_IO
	case errors.Is(err, bitcnn.ErrClosed):
		return C.BITCNN_CLOSED
	case errors.Is(err, bitcnn.ErrShape):
		return C.BITCNN_SHAPE
	case errors.Is(err, bitcnn.ErrUnavailable):
		return C.BITCNN_UNAVAILABLE
	case errors.Is(err, bitcnn.ErrTooLarge):
		return C.BITCNN_TOO_LARGE
	case errors.As(err, &model):
		return C.BITCNN_MODEL
	case errors.Is(err, errors.ErrUnsupported):
		return C.BITCNN_UNSUPPORTED
	}
	return C.BITCNN_INVALID
}
