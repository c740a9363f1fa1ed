package shim

import "embed"

// Files holds what C needs, and makes go mod vendor copy it: the folder has no Go
// files.
//
//go:embed include
var Files embed.FS
