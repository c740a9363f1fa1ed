//go:build !purego

package fpmode

// word is FPCR. The flags of exceptions are in another register.
type word = uint64

const (
	control = 1<<32 - 1
	usual   = 0
)

// get returns the register.
func get() word

// set sets it.
func set(m word)
