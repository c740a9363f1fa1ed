// Package trampoline has trampoline.h, by which the shims of CUDA and OpenCL call their
// drivers. They import it, so that they are compiled anew when it changes and go mod
// vendor copies it.
package trampoline

import _ "embed"

//go:embed trampoline.h
var _ string
