package models_test

import (
	"context"
	"fmt"
	"log"

	"github.com/bitcnn/bitcnn/models"
)

func ExampleLoad() {
	net, err := models.Load(context.Background(), "vehiclenet")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(models.Names())
	fmt.Println(net.Inputs[0].Shape, net.Labels)
	// Output:
	// [vehiclenet vehiclenet-rgb vehiclenet-grey vehiclenet-lbp digits canvas vehicles cifar10 roadsigns streetview]
	// 96×96×3 [bike car juggernaut minibus pickup truck]
}
