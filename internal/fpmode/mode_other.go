//go:build purego || !(amd64 || arm64)

package fpmode

type word = uint32

const control, usual = 0, 0

func get() word { return usual }

func set(word) {}
