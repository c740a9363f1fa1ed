package shim

import "embed"

// Files holds what C needs, and makes go mod vendor copy it: the folders have no
// Go files.
//
//go:embed include lib
var Files embed.FS
