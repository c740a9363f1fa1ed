package serve

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"

	"github.com/bitcnn/bitcnn"
	"github.com/bitcnn/bitcnn/serve/internal/pb"
)

// counters count what happens to a model, over all of its loads: for the statistics of the
// protocol, and for Prometheus.
type counters struct {
	seen modelMetrics

	mu                          sync.Mutex
	success, fail               duration
	queue, input, infer, output duration
	images, runs                uint64
	last                        time.Time
	batches                     map[int]*duration // runs of the device, by images
}

// duration is a number of events and how long they took together.
type duration struct {
	count uint64
	took  time.Duration
}

func (d *duration) add(took time.Duration) {
	d.count++
	d.took += took
}

func (d duration) proto() *pb.StatisticDuration {
	return &pb.StatisticDuration{Count: d.count, Ns: uint64(d.took)}
}

func newCounters(seen modelMetrics) *counters {
	return &counters{seen: seen, batches: map[int]*duration{}}
}

// observe is the observer of the sessions.
func (c *counters) observe(o bitcnn.Observation) {
	c.seen.waiting.Observe(o.Waiting.Seconds())
	if o.Batch == 0 {
		return
	}
	c.seen.images.Add(float64(o.Images))
	if o.First {
		c.seen.running.Observe(o.Running.Seconds())
		c.seen.batch.Observe(float64(o.Batch))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queue.add(o.Waiting)
	c.infer.add(o.Running)
	c.images += uint64(o.Images)
	c.last = time.Now()
	if !o.First {
		return
	}
	c.runs++
	d := c.batches[o.Batch]
	if d == nil {
		d = &duration{}
		c.batches[o.Batch] = d
	}
	d.add(o.Running)
}

// converted counts the time that tensors of a request took, to be read and to be written.
func (c *counters) converted(input, output time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.input.add(input)
	c.output.add(output)
}

// done counts a request that has come to its end.
func (c *counters) done(protocol int, took time.Duration, err error) {
	c.seen.requests[protocol].Observe(took.Seconds())
	if err != nil {
		c.seen.failures.WithLabelValues(c.seen.name, protocols[protocol], classified(err).code.String()).Inc()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.fail.add(took)
		return
	}
	c.success.add(took)
}

// statistics are those of a version of a model in the form of the protocol.
func (c *counters) statistics(name, version string) *pb.ModelStatistics {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &pb.ModelStatistics{
		Name: name, Version: version, InferenceCount: c.images, ExecutionCount: c.runs,
		InferenceStats: &pb.InferStatistics{
			Success: c.success.proto(), Fail: c.fail.proto(), Queue: c.queue.proto(),
			ComputeInput: c.input.proto(), ComputeInfer: c.infer.proto(), ComputeOutput: c.output.proto(),
		},
	}
	if !c.last.IsZero() {
		s.LastInference = uint64(c.last.UnixMilli())
	}
	for _, n := range slices.Sorted(maps.Keys(c.batches)) {
		// What is in front of a run and behind it belongs to requests, not to batches.
		s.BatchStats = append(s.BatchStats, &pb.InferBatchStatistics{
			BatchSize: uint64(n), ComputeInput: &pb.StatisticDuration{},
			ComputeInfer: c.batches[n].proto(), ComputeOutput: &pb.StatisticDuration{},
		})
	}
	return s
}

// The protocols by which requests come.
const (
	overHTTP = iota
	overGRPC
)

var protocols = []string{overHTTP: "http", overGRPC: "grpc"}

// metrics are what /metrics shows, beside what Go and the process say of themselves.
type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.HistogramVec
	failures *prometheus.CounterVec
	images   *prometheus.CounterVec
	batch    *prometheus.HistogramVec
	waiting  *prometheus.HistogramVec
	running  *prometheus.HistogramVec
	models   *prometheus.GaugeVec
	progress prometheus.Gauge
	rejected *prometheus.CounterVec
	unloaded *prometheus.CounterVec
	loaded   *prometheus.GaugeVec
	weights  *prometheus.GaugeVec
}

// Reasons why requests and connections are turned away.
const (
	byMemory      = "memory"
	byRequests    = "requests"
	byHealth      = "health"
	byHeads       = "headers"
	byConnections = "connections"
)

// failureCodes are the codes that requests for a model fail with.
var failureCodes = []codes.Code{
	codes.Canceled, codes.DeadlineExceeded, codes.Internal, codes.InvalidArgument, codes.ResourceExhausted, codes.Unavailable,
}

// seconds are the bounds of the buckets of times: from 10 µs to 10 s, three for each power of
// ten.
var seconds = []float64{
	10e-6, 20e-6, 50e-6, 100e-6, 200e-6, 500e-6, 1e-3, 2e-3, 5e-3, 10e-3, 20e-3, 50e-3, .1, .2, .5, 1, 2, 5, 10,
}

func newMetrics(collectors ...prometheus.Collector) *metrics {
	histogram := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	}
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: histogram("bcnn_request_seconds", "Time of requests for a model, from their body to their response.",
			seconds, "model", "protocol"),
		failures: counter("bcnn_request_failures_total", "Requests for a model that failed, by code of gRPC.", "model",
			"protocol", "code"),
		images: counter("bcnn_images_total", "Images that a model processed.", "model"),
		batch: histogram("bcnn_batch_images", "Images per device run.", prometheus.ExponentialBuckets(1, 2, 9),
			"model"),
		waiting: histogram("bcnn_waiting_seconds", "Time that a request waited for others and for its turn on the device.",
			seconds, "model"),
		running: histogram("bcnn_running_seconds", "Time of a device run.", seconds, "model"),
		models: gauge("bcnn_model_info", "Models that are loaded, with the device that they run on: always 1.", "model",
			"version", "device", "name"),
		progress: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "bcnn_requests_in_progress", Help: "Requests for a model in progress or waiting.",
		}),
		rejected: counter("bcnn_rejected_total", "Rejected requests and connections, by reason.", "reason"),
		unloaded: counter("bcnn_model_load_failures_total", "Failed loads of a model; the previous one stays.", "model"),
		loaded: gauge("bcnn_model_loaded_timestamp_seconds", "When a model was loaded last, in seconds since 1970; 0 if never.",
			"model"),
		weights: gauge("bcnn_model_weight_bytes", "Bytes of the weights of a model in its file; 0 if it is not loaded.",
			"model"),
	}
	for _, reason := range []string{byMemory, byRequests, byHealth, byHeads, byConnections} {
		m.rejected.WithLabelValues(reason) // alerts want a 0
	}
	m.registry.MustRegister(m.requests, m.failures, m.images, m.batch, m.waiting, m.running, m.models, m.progress,
		m.rejected, m.unloaded, m.loaded, m.weights)
	m.registry.MustRegister(collectors...)
	return m
}

// modelMetrics are those of one model, looked up once.
type modelMetrics struct {
	name     string
	requests [2]prometheus.Observer // by protocol
	failures *prometheus.CounterVec
	images   prometheus.Counter
	batch    prometheus.Observer
	waiting  prometheus.Observer
	running  prometheus.Observer
	unloaded prometheus.Counter
	loaded   prometheus.Gauge
	weights  prometheus.Gauge
}

// of makes the series of a model: only for files and models that the server was given, so that
// clients cannot make any.
func (m *metrics) of(model string) modelMetrics {
	for _, protocol := range protocols {
		for _, code := range failureCodes {
			m.failures.WithLabelValues(model, protocol, code.String())
		}
	}
	return modelMetrics{
		name: model,
		requests: [2]prometheus.Observer{
			m.requests.WithLabelValues(model, protocols[overHTTP]), m.requests.WithLabelValues(model, protocols[overGRPC]),
		},
		failures: m.failures,
		images:   m.images.WithLabelValues(model),
		batch:    m.batch.WithLabelValues(model),
		waiting:  m.waiting.WithLabelValues(model),
		running:  m.running.WithLabelValues(model),
		unloaded: m.unloaded.WithLabelValues(model),
		loaded:   m.loaded.WithLabelValues(model),
		weights:  m.weights.WithLabelValues(model),
	}
}
