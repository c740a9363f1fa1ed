//go:build !purego

package fpmode

// word is MXCSR; its lowest bits are the flags of exceptions.
type word = uint32

const (
	control = 0xffc0
	usual   = 0x1f80
)

// get returns the register.
func get() word

// set sets it.
func set(m word)
