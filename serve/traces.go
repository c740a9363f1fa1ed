package serve

import (
	"context"
	"net/http"

	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
)

// Requests carry the span that they belong to as W3C Trace Context has it.
var propagator = propagation.TraceContext{}

// tracedHTTP makes a span of each request, if there is a provider.
func tracedHTTP(h http.Handler, provider trace.TracerProvider) http.Handler {
	if provider == nil {
		return h
	}
	return otelhttp.NewHandler(h, "HTTP", otelhttp.WithTracerProvider(provider), otelhttp.WithPropagators(propagator))
}

// tracedGRPC makes a span of each call.
func tracedGRPC(provider trace.TracerProvider) []grpc.ServerOption {
	if provider == nil {
		return nil
	}
	return []grpc.ServerOption{grpc.StatsHandler(otelgrpc.NewServerHandler(
		otelgrpc.WithTracerProvider(provider), otelgrpc.WithPropagators(propagator)))}
}

// traced calls what the model does for a request: a span within that of the request, if that is
// traced.
func (m *model) traced(ctx context.Context, what string, do func(context.Context) error) error {
	request := trace.SpanFromContext(ctx)
	if !request.IsRecording() {
		return do(ctx)
	}
	tracer := request.TracerProvider().Tracer("github.com/bitcnn/bitcnn/serve")
	ctx, span := tracer.Start(ctx, what, trace.WithAttributes(
		attribute.String("bcnn.model", m.name), attribute.String("bcnn.device", m.session.Device().ID)))
	defer span.End()
	err := do(ctx)
	if err != nil {
		span.SetStatus(codes.Error, err.Error())
	}
	return err
}
