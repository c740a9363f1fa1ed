//go:build amd64 && !purego && amxemulated

package amx

import _ "github.com/bitcnn/bitcnn/internal/amxemulator" // executes the instructions

// Emulated says that package amxemulator executes the kernels.
const Emulated = true

// Permitted reports that tiles can be used: nobody needs to be asked.
func Permitted() (bool, error) { return true, nil }
