package bincnn_test

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/bitcnn/bitcnn/bcnn/bincnn"
)

// A folder with the files of the publication; here all their weights are −1.
func ExampleLoad() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	for name, words := range map[string]int{
		"pkwConv1.bin": 32 * 3, "pkwConv2.bin": 32 * 32, "pkwD1.bin": 100 * 576, "pkwD2.bin": 100 * 4, "pkwD3.bin": 4 * 4,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), make([]byte, 4*words), 0o644); err != nil {
			log.Fatal(err)
		}
	}
	// The first layer once more, as int32.
	if err := os.WriteFile(filepath.Join(dir, "wConv1.bin"), bytes.Repeat([]byte{0xff}, 4*32*3*25), 0o644); err != nil {
		log.Fatal(err)
	}
	net, err := bincnn.Load(context.Background(), dir, bincnn.Thresh)
	if err != nil {
		log.Fatal(err)
	}
	for _, l := range net.Layers {
		fmt.Println(l.Name, l.Op.Kind())
	}
	// Output:
	// binarize binarize
	// conv1 conv2d
	// pool1 maxpool
	// sign1 sign
	// conv2 conv2d
	// pool2 maxpool
	// sign2 sign
	// flatten flatten
	// dense1 dense
	// sign3 sign
	// dense2 dense
	// sign4 sign
	// dense3 dense
}
