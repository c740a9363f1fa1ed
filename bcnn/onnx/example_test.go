package onnx_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/onnx"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// A file of an exporter: a sign, written as comparison and choice, before a
// convolution whose weights are ±1.
func ExampleRead() {
	ctx := context.Background()
	net, report, err := onnx.Read(ctx, os.DirFS("testdata"), "small.onnx", onnx.Options{Name: "small"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(report.Nodes, "nodes, of which", len(report.Folded), "became no layers of their own")
	for _, l := range net.Layers {
		fmt.Println(l.Name, l.Op.Kind())
	}

	// Which layers are binary, and what they take.
	p, err := lower.Network(ctx, net, lower.Options{})
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range plan.Summarize(net, p) {
		fmt.Println(r.Layer, r.Precision, r.BytesFloat, "→", r.BytesPacked, "bytes")
	}
	// Output:
	// 3 nodes, of which 1 became no layers of their own
	// n_y sign
	// n_z conv2d
	// n_z binary 9216 → 288 bytes
}
