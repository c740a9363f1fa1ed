package main

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/bitcnn/bitcnn"
)

// metrics are what GET /metrics shows to Prometheus.
type metrics struct {
	registry         *prometheus.Registry
	answers          *prometheus.CounterVec
	waiting, running prometheus.Histogram
}

func newMetrics() *metrics {
	seconds := prometheus.ExponentialBuckets(10e-6, 4, 10) // from 10 µs to 2.6 s
	m := &metrics{
		registry: prometheus.NewRegistry(),
		answers:  prometheus.NewCounterVec(prometheus.CounterOpts{Name: "photos_total", Help: "Answers by status."}, []string{"status"}),
		waiting: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "photo_waiting_seconds", Help: "How long photos have waited for the device.", Buckets: seconds,
		}),
		running: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "photo_running_seconds", Help: "How long the device has run.", Buckets: seconds,
		}),
	}
	m.registry.MustRegister(m.answers, m.waiting, m.running,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// observe is called by the session at the end of each run.
func (m *metrics) observe(o bitcnn.Observation) {
	m.waiting.Observe(o.Waiting.Seconds())
	if o.Batch > 0 { // the device was reached
		m.running.Observe(o.Running.Seconds())
	}
}

func (m *metrics) answered(status int) { m.answers.WithLabelValues(strconv.Itoa(status)).Inc() }
