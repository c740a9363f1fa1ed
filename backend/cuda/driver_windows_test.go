//go:build cuda && cgo && amd64

package cuda

// findDriver has nothing to do: Windows looks beside the program, and in PATH.
func findDriver() {}
