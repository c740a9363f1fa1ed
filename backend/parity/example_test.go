package parity_test

import (
	"context"
	"fmt"
	"log"

	"github.com/bitcnn/bitcnn/backend"
	_ "github.com/bitcnn/bitcnn/backend/all"
	"github.com/bitcnn/bitcnn/backend/parity"
	"github.com/bitcnn/bitcnn/models"
)

// A device is held to the reference, on a network and on the whole table.
func ExampleCheck() {
	ctx := context.Background()
	dev, err := backend.Open("cpu")
	if err != nil {
		log.Fatal(err)
	}
	net, err := models.Load(ctx, "digits")
	if err != nil {
		log.Fatal(err)
	}
	cases := parity.NetworkCases(net) // parity.Cases() is the table
	failures, err := parity.Check(ctx, dev, backend.Options{}, cases, nil)
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range failures {
		fmt.Println(f)
	}
	fmt.Println(len(cases), "cases,", len(failures), "failures")
	// Output: 5 cases, 0 failures
}
