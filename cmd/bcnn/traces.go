//go:build !wasm

package main

import (
	"context"
	"log/slog"
	"os"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/bitcnn/bitcnn"
)

// exportTraces sends spans to the collector that the environment names, by OTLP over HTTP, with
// the variables of OpenTelemetry's specification. flush sends what is left, but not after the drain that
// begins when ctx ends. Without a collector there is no provider.
func exportTraces(ctx context.Context, drain time.Duration, log *slog.Logger) (provider trace.TracerProvider, flush func(), err error) {
	if os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") == "" && os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") == "" {
		return nil, func() {}, nil
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn("traces", "error", err) }))
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, nil, err
	}
	about, err := resource.New(ctx, resource.WithAttributes(
		attribute.String("service.name", "bcnn"), attribute.String("service.version", bitcnn.Version())),
		resource.WithFromEnv(), resource.WithTelemetrySDK())
	if err != nil {
		return nil, nil, err
	}
	p := sdk.NewTracerProvider(sdk.WithBatcher(exporter), sdk.WithResource(about))
	drained, end := context.WithCancel(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, func() { time.AfterFunc(drain, end) })
	return p, func() {
		defer end()
		ctx, cancel := context.WithTimeout(drained, 5*time.Second)
		defer cancel()
		if err := p.Shutdown(ctx); err != nil {
			log.Warn("traces", "error", err)
		}
	}, nil
}
