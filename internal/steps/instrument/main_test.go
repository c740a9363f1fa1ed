package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestInstrument(t *testing.T) {
	src := `// Package p.
package p // a package

func none() {}

func asm(x int)

func f(n int) (s int) {
	for i := range n { // a loop
		g := func() { s += i }
		for s < 3 {
			g()
		}
	}
	return s
}
`
	want := `// Package p.
package p; import steps__ "github.com/bitcnn/bitcnn/internal/steps" // a package

func none() {steps__.N++;}

func asm(x int)

func f(n int) (s int) {steps__.N++;
	for i := range n {steps__.N++; // a loop
		g := func() {steps__.N++; s += i }
		for s < 3 {steps__.N++;
			g()
		}
	}
	return s
}
`
	got, err := instrument("p.go", []byte(src))
	require.NoError(t, err)
	require.Equal(t, want, string(got))

	types := "package p\n\ntype T int\n"
	got, err = instrument("p.go", []byte(types))
	require.NoError(t, err)
	require.Equal(t, types, string(got))

	_, err = instrument("p.go", []byte("package"))
	require.Error(t, err)
}
