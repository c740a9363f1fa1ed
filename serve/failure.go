package serve

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/bitcnn/bitcnn"
)

// failure is an error with its code of gRPC, which says who is to blame, and whether another
// try makes sense.
type failure struct {
	code codes.Code
	error
}

func (f failure) Unwrap() error { return f.error }

// GRPCStatus is how package status of gRPC sees it.
func (f failure) GRPCStatus() *status.Status {
	if errors.Is(f.error, errBody) {
		return status.New(codes.ResourceExhausted, f.Error()) // as gRPC says of a message that is too large
	}
	return status.New(f.code, f.Error())
}

func failf(code codes.Code, format string, args ...any) error {
	return failure{code, fmt.Errorf(format, args...)}
}

// badf is the error of a request that makes no sense, whoever is asked.
func badf(format string, args ...any) error { return failf(codes.InvalidArgument, format, args...) }

// errBody is the error of a body that is too large.
var errBody = errors.New("the body is too large")

// classified returns an error as a failure.
func classified(err error) failure {
	var f failure
	switch {
	case errors.As(err, &f):
		return f
	case status.Code(err) != codes.Unknown: // of gRPC itself
		return failure{status.Code(err), errors.New(status.Convert(err).Message())}
	case errors.Is(err, context.DeadlineExceeded):
		return failure{codes.DeadlineExceeded, errors.New("the request timed out")}
	case errors.Is(err, context.Canceled):
		return failure{codes.Canceled, errors.New("the client disconnected")}
	case errors.Is(err, bitcnn.ErrClosed):
		return failure{codes.Unavailable, err}
	case errors.Is(err, bitcnn.ErrShape):
		return failure{codes.InvalidArgument, err}
	}
	return failure{codes.Internal, err}
}

// statusClientGone is what other servers call a request whose client has gone away.
const statusClientGone = 499

// httpStatus returns the status of HTTP for a failure.
func (f failure) httpStatus() int {
	switch f.code {
	case codes.InvalidArgument:
		if errors.Is(f.error, errBody) {
			return http.StatusRequestEntityTooLarge
		}
		return http.StatusBadRequest
	case codes.NotFound:
		return http.StatusNotFound
	case codes.PermissionDenied:
		return http.StatusForbidden
	case codes.Unauthenticated:
		return http.StatusUnauthorized
	case codes.Unimplemented:
		return http.StatusMethodNotAllowed
	case codes.ResourceExhausted:
		return http.StatusTooManyRequests
	case codes.Unavailable:
		return http.StatusServiceUnavailable
	case codes.DeadlineExceeded:
		return http.StatusGatewayTimeout
	case codes.Canceled:
		return statusClientGone
	}
	return http.StatusInternalServerError
}
