// Package samples has images to try models with.
package samples

import "embed"

// Digits are ten of the MNIST test set, digit-0.png to digit-9.png; NOTICE says where they are from.
//
//go:embed *.png
var Digits embed.FS
