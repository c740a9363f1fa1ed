package serve

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/bitcnn/bitcnn"
)

// deviceCollector tells Prometheus of the devices of the machine.
type deviceCollector struct{}

var deviceMemory = prometheus.NewDesc("bcnn_device_memory_bytes",
	"Memory of a device, 0 if unknown.", []string{"device", "name"}, nil)

// Describe implements prometheus.Collector.
func (deviceCollector) Describe(c chan<- *prometheus.Desc) { c <- deviceMemory }

// Collect implements prometheus.Collector.
func (deviceCollector) Collect(c chan<- prometheus.Metric) {
	for _, d := range bitcnn.Devices() {
		c <- prometheus.MustNewConstMetric(deviceMemory, prometheus.GaugeValue, float64(d.Memory), d.ID, d.Name)
	}
}
