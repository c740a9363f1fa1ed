//go:build arm64 && !purego

package kern

// Every arm64 processor that Go runs on has the instructions.
func init() { sets = append([]*Set{&neon}, sets...) }
