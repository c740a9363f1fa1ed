package gen

import (
	"bytes"
	"flag"
	"log"
	"os"
	"os/exec"
	"path/filepath"

	. "github.com/mmcloughlin/avo/build"
)

// Family is the kernels of an assembly file.
type Family struct {
	Name  string
	Write func()
}

// Write writes the kernels of an instruction set for amd64 to its package: a file
// of assembly for every family, and stubs.go, which declares all functions.
func Write(pkg string, families ...Family) {
	log.SetFlags(0)
	name := flag.String("family", "", "write this family only, and declare its functions on stdout")
	flag.Parse()
	for _, f := range families {
		if f.Name == *name {
			ConstraintExpr("amd64,!purego")
			f.Write()
			Generate()
			return
		}
	}
	if *name != "" {
		log.Fatalf("no family %q", *name)
	}
	// avo has one context for all that a process writes.
	self, err := os.Executable()
	if err != nil {
		log.Fatal(err)
	}
	stubs := Stubs{Arch: "amd64", Pkg: pkg}
	for _, f := range families {
		cmd := exec.Command(self, "-family", f.Name, "-pkg", pkg,
			"-out", filepath.Join("..", pkg, f.Name+"_amd64.s"), "-stubs", "-")
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			log.Fatalf("%s: %v", f.Name, err)
		}
		_, functions, _ := bytes.Cut(out, []byte("\npackage "+pkg+"\n"))
		stubs.Write(functions)
	}
	stubs.Save()
}
